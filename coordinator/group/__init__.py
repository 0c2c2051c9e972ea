"""The group coordinator: classic and consumer groups and committed offsets, replayed from `__consumer_offsets`."""
