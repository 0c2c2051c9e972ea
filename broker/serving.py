"""Sockets that listen, of Kafka's listeners and of the lab."""

from __future__ import annotations

import asyncio
import errno
import os
import socket


class PortTaken(Exception):
    """The address of a listener is in use or not available."""


async def start_serving(server: asyncio.Server, name: str) -> None:
    """Lets clients connect. `name`: of the port, for words. Raises PortTaken if others have begun to listen since the
    address was bound: of that, uvloop says nothing.
    """
    sockets = server.sockets
    try:
        await server.start_serving()
        taken = not all(_listens(one.fileno()) for one in sockets)
    except OSError as error:
        raise PortTaken(f"{name}: {error.strerror or error}") from None
    if taken:
        raise PortTaken(f"{name}: {os.strerror(errno.EADDRINUSE)}")


def _listens(descriptor: int) -> bool:
    try:
        with socket.socket(fileno=os.dup(descriptor)) as same:
            return bool(same.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:  # uvloop has closed it
        return False
