"""Transactions on a broker: the transaction coordinators' shards, markers to partitions, verification of producers."""
