"""Sockets, dispatch and wiring: joins protocol, storage and coordinators into a broker."""
