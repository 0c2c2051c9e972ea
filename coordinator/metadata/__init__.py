"""The controller: topics, configs, features and producer ids as records of `__cluster_metadata`."""
