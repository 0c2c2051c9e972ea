"""Sends what the clients of a trace sent to another broker, and tells what it answers differently."""
