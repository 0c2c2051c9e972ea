"""Metrics that clients push (KIP-714): which client is asked for which, and when it may push."""
