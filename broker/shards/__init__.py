"""Connects the shards of coordinators to the partitions of their topics: loading, appending,
timers, and routing of requests.
"""
