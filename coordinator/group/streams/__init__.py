"""Streams groups: the members are the threads of a Kafka Streams application, which get tasks (KIP-1071)."""
