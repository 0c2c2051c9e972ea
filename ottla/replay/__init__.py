"""Sends what the clients of a trace sent to another broker, and reports what it answers differently."""
