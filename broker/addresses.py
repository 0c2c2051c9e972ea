"""Addresses of clients and of hosts, and the sockets that listen at them."""

from __future__ import annotations

import errno
import os
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import Server

Address = IPv4Address | IPv6Address
LOOPBACK = "127.0.0.1"


class PortTaken(Exception):
    """The address of a listener is in use or not available. `name`: of the port, for words; `error`: why."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(f"{name}: {getattr(error, 'strerror', None) or error}")


def address(text: str) -> Address | None:
    """Returns the address that a text is; None for the name of a host. An IPv4 address over IPv6 is an IPv4 address."""
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


def text_of(end: object) -> str | None:
    """Returns the address and port of one end of a connection, as a transport names it; None if it does not."""
    return f"{end[0]}:{end[1]}" if isinstance(end, tuple) else None


def addresses_of(host: str) -> list[Address]:
    """Returns the addresses of a host; none if there are none. An empty name is the loopback address, as in Java's
    `InetAddress.getByName`. It may wait for another machine: call it in a thread.
    """
    own = address(host or LOOPBACK)
    if own is not None:
        return [own]
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [one for *_, where in found if (one := address(str(where[0]))) is not None]


async def start_serving(server: Server, name: str) -> None:
    """Lets clients connect. `name`: of the port, for words. Raises PortTaken if others have begun to listen since the
    address was bound: of that, uvloop says nothing.
    """
    sockets = server.sockets
    try:
        await server.start_serving()
        if not all(_listens(one.fileno()) for one in sockets):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    except OSError as error:
        raise PortTaken(name, error) from None


def _listens(descriptor: int) -> bool:
    try:
        with socket.socket(fileno=os.dup(descriptor)) as same:
            return bool(same.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:  # uvloop has closed it
        return False
