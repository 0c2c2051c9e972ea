"""The client of Kafka 0.8's time, with Python's names.

It is for study and for old installations: its consumers share groups with those of Kafka 0.8 to 1.1 in a ZooKeeper.
Whoever writes something new takes a client of today.
"""
