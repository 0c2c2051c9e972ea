"""Records on disk in Kafka's own files. Imports only the package `protocol`."""
