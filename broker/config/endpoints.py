"""What is wrong with a list of listeners, in Kafka's words (SocketServerConfigs.listenerListToEndPoints).

The start has words of its own, which say what to write. These are of values that are given to a broker that runs.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from ipaddress import ip_address

from .listener_values import Listener

_ENDPOINT = re.compile(r"(?P<name>.*)://\[?(?P<host>[0-9a-zA-Z\-%._:]*)\]?:(?P<port>-?[0-9]+)", re.ASCII)
INT_MAX = 2**31 - 1
SECURED = frozenset(("SSL", "SASL_PLAINTEXT", "SASL_SSL"))


class Unreadable(ValueError):
    """A list of listeners that Kafka refuses."""


def plain_controllers(texts: Sequence[str], controllers: Sequence[str]) -> Sequence[str]:
    """Returns the controllers' listeners that have a security protocol without a map of their own: all of them, or none
    if a listener is named after SSL or SASL (KafkaConfig.effectiveListenerSecurityProtocolMap). The listeners up to
    that one must have names. Raises Unreadable with Kafka's words.
    """
    if not SECURED.isdisjoint(controllers):
        return ()
    for text in texts:
        name, colon, _ = text.partition(":")
        if not colon:
            raise Unreadable(f"Unable to parse a listener name from {text}")
        if name.upper() in SECURED:
            return ()
    return controllers


def endpoints(texts: Sequence[str], known: Container[str]) -> list[Listener]:
    """Parses listeners as Kafka does, which takes ports that none can have. `known`: names with a security protocol.
    Raises Unreadable with Kafka's words.
    """
    shown = f"[{', '.join(texts)}]"
    try:
        found = [_endpoint(text, known) for text in texts]
        if len({one.name for one in found}) < len(found):
            raise Unreadable(f"Each listener must have a different name, listeners: {shown}")
        by_port: dict[int, list[str]] = {}
        for one in found:
            if one.port:
                by_port.setdefault(one.port, []).append(one.host)
        for port, hosts in by_port.items():
            _check_shared(port, hosts, shown)
    except Unreadable as error:
        raise Unreadable(f"Error creating broker listeners from '{shown}': {error}") from None
    return found


def _endpoint(text: str, known: Container[str]) -> Listener:
    parts = _ENDPOINT.fullmatch(text)
    if parts is None:
        raise Unreadable(f"Unable to parse {text} to a broker endpoint")
    name, port = parts["name"].strip().upper(), parts["port"]
    if not name:
        raise Unreadable("The provided listener name is null or empty string")
    if len(port) > len(str(INT_MAX)) + 1 or not -INT_MAX - 1 <= int(port) <= INT_MAX:
        raise Unreadable(f'For input string: "{port}"')
    if name not in known:
        raise Unreadable(f"No security protocol defined for listener {name}")
    return Listener(name, parts["host"], int(port))


def _check_shared(port: int, hosts: list[str], shown: str) -> None:
    """Raises Unreadable, unless a port is of one listener, or of two of which one is IPv4 and the other IPv6."""
    versions = list(_versions(hosts))
    if len(hosts) - len(versions) > 1:
        raise Unreadable(f"Each listener must have a different port, listeners: {shown}")
    if len(hosts) < 2 or not versions:
        return
    if len(versions) != 2:
        raise Unreadable(
            "Each listener must have a different port unless exactly one listener has an IPv4 address and the other "
            f"IPv6 address, listeners: {shown}, port: {port}"
        )
    if versions[0] == versions[1] or len(hosts) > 2:
        raise Unreadable(
            "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, listeners: "
            f"{shown}, port: {port}"
        )


def _versions(hosts: list[str]) -> Iterator[int]:
    """Yields the version of each host that is an address."""
    for host in hosts:
        try:
            yield ip_address(host).version
        except ValueError:  # a name
            continue
