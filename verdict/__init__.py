"""Examines how clients use the protocol: rules over a stream of events, which a live broker or a trace gives."""
