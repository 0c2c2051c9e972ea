"""Pure state machines over replayed logs: no async, no clock, no files, no sockets."""
