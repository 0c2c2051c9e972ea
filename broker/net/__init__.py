"""Sockets and requests: listeners, connections, frames, dispatch, limits, the request log.

Uses the broker only through narrow interfaces and knows neither coordinators nor APIs: the table of APIs is an argument
of the server.
"""
