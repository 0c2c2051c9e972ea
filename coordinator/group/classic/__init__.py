"""The classic protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup): its groups, and what members do with them."""
