"""How consumers of Kafka 0.8 share out partitions by ZooKeeper: the algorithm, without a socket, a thread or a clock.

`member` is the algorithm of one consumer. It yields operations (`operations`) and is sent what they gave, so that a
connector drives it over a real ZooKeeper, and a simulator over a model of one.
"""
