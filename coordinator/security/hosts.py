"""Host patterns of access control entries: `*`, one address, or a range of addresses in CIDR notation."""

from __future__ import annotations

import ipaddress
import re

_V4 = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
V6_BITS = 128
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def network_of(pattern: str) -> Network:
    """Returns the range that a pattern with a `/` stands for. Raises ValueError, with Kafka's words."""
    return _v6(pattern) if ":" in pattern else _v4(pattern)


def _v4(pattern: str) -> ipaddress.IPv4Network:
    found = _V4.fullmatch(pattern)
    if found is None:
        raise ValueError(f"Could not parse [{pattern}]")
    numbers = [int(part) for part in found.groups()]
    for number, most in zip(numbers, (255, 255, 255, 255, 32), strict=True):
        if number > most:
            raise ValueError(f"Value [{number}] not in range [0,{most}]")
    return ipaddress.IPv4Network((bytes(numbers[:4]), numbers[4]), strict=False)


def _v6(pattern: str) -> ipaddress.IPv6Network:
    address, _, bits = pattern.partition("/")
    if not _NUMBER.fullmatch(bits):
        raise ValueError(f"Could not parse [{pattern}] - invalid prefix length")
    if not 0 <= int(bits) <= V6_BITS:
        raise ValueError(f"Could not parse [{pattern}] - prefix length must be between 0 and {V6_BITS}")
    try:
        return ipaddress.IPv6Network((address.strip("[]"), int(bits)), strict=False)
    except ValueError:
        raise ValueError(f"Could not parse [{address}]") from None


def contains(network: Network, host: str) -> bool:
    """Whether a client's address is in a range. The address 0.0.0.0 is in none, as in Kafka."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address in network and not (address.version == 4 and address.is_unspecified)
