"""Traces, read: shown, filtered, and written as captures of packets."""
