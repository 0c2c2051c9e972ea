"""Traces: what clients and the broker say to each other, written as lines of JSON."""
