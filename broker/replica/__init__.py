"""Partitions on their leader: logs, high watermarks, simulated followers, fetches,
flushing, the cleaner, log directories.

Knows `storage` and the metadata's image, and no coordinator.
"""
