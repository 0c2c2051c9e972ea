"""Share groups (KIP-932): the group and its members, ShareGroupHeartbeat, and the share-partitions of a group."""
