"""A broker of Kafka 0.8 to 3.9 as a real ZooKeeper shows it (`zookeeper.connect` with `ottla.emulate`)."""
