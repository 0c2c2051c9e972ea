"""Consumer groups (KIP-848): the group and its members, and ConsumerGroupHeartbeat."""
