"""Share groups on a broker: share-partitions over their logs, sessions, fetches, dead letters, and the share
coordinators' shards.
"""
