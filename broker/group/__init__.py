"""Connects the group coordinators' shards to `__consumer_offsets`: their environment, configuration and metrics."""
