"""Addresses on the command line."""

from __future__ import annotations

from typing import NamedTuple

import click

from .protocol.text import host_and_port


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)

    @classmethod
    def parse(cls, text: str) -> Address:
        """Raises ValueError for anything but HOST:PORT."""
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65535:
            raise ValueError(f"{text!r} is not HOST:PORT")
        return cls(host.strip("[]") or "127.0.0.1", int(port))


class AddressType(click.ParamType[Address]):
    name = "HOST:PORT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        try:
            return value if isinstance(value, Address) else Address.parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
