"""JSON in the values of ZooKeeper's nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping


class Malformed(ValueError):
    """The value of a node is not what it has to be. The message says what is wrong, without the path."""


def encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def decoded(data: bytes | None) -> object:
    """Raises Malformed."""
    try:
        found: object = json.loads((data or b"").decode())
    except (ValueError, RecursionError):
        raise Malformed("the value is not JSON") from None
    return found


def decoded_object(data: bytes | None) -> dict[str, object]:
    """Raises Malformed."""
    found = decoded(data)
    if not isinstance(found, dict):
        raise Malformed("the value is not a JSON object")
    return found


# parts of values; each raises TypeError or ValueError for what is something else


def int_of(value: object) -> int:
    if not isinstance(value, int | str):
        raise TypeError(value)
    return int(value)


def list_of(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(value)
    return value


def ints_of(value: object) -> tuple[int, ...]:
    return tuple(map(int_of, list_of(value)))


def mapping_of(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError(value)
    return value


def text_of(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def ordered(values: Mapping[str, object], order: str) -> dict[str, object]:
    return {name: values[name] for name in order.split() if name in values}
