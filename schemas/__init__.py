"""Kafka's message and record schemas as facts: JSON in Kafka's grammar, derived from the jars by `make schemas`."""
