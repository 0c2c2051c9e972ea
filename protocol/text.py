"""What is shown to people: plain values, and names that peers chose with the characters escaped that would control a
terminal or forge a log line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


def host_and_port(host: str, port: int) -> str:
    """Returns an address as clients and configurations write it: an IPv6 host stands in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def printable(text: str, keep: str = "") -> str:
    """Returns the text with unprintable characters escaped. `keep`: characters that stay, such as line ends."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in keep else one.encode("unicode_escape").decode("ascii") for one in text
    )
