"""The oracle: Apache Kafka 4.4.0 and its tools, fetched by Maven, for tests and benchmarks."""
