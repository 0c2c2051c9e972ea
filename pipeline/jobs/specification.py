"""What `load` is to produce, in YAML:

topics:
  orders:
    partitions: 4          # made when it is not there
    records: 100000
    key: order-{n % 1000}  # {n}: the record's number; {n % m}, {n // m}; absent: no key
    value: '{"id": {n}, "state": "new"}'
    size: 100              # instead of a value: so many bytes, the same for the same seed
    seed: 7
    headers: {source: load}
    codec: lz4             # none, gzip, snappy, lz4, zstd
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_KNOWN = {"partitions", "records", "key", "value", "size", "seed", "headers", "codec"}
_NUMBER = re.compile(r"\{n(?:\s*(%|//)\s*(\d+))?\}")


class Topic(NamedTuple):
    """The records of one topic."""

    name: str
    partitions: int
    records: int
    key: str | None
    value: str | None
    size: int
    seed: int
    headers: dict[str, str]
    codec: str


def parse(text: str) -> list[Topic]:
    """ValueError with the place for what is not a specification."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from None
    topics = found.get("topics") if isinstance(found, dict) else None
    if not isinstance(topics, dict) or not topics:
        raise ValueError("a specification has `topics`, with the name of each topic and what it gets")
    return [_topic(str(name), one) for name, one in topics.items()]


def _topic(name: str, found: Any) -> Topic:
    if not isinstance(found, dict):
        raise ValueError(f"topics.{name}: not what a topic gets")
    unknown = set(found) - _KNOWN
    if unknown:
        raise ValueError(f"topics.{name}: no such key: {', '.join(sorted(map(str, unknown)))}")
    codec, headers = found.get("codec", "none"), found.get("headers", {})
    if codec not in CODECS:
        raise ValueError(f"topics.{name}.codec: one of {', '.join(CODECS)}, not {codec!r}")
    if not isinstance(headers, dict):
        raise ValueError(f"topics.{name}.headers: names and values")
    if ("value" in found) == ("size" in found):
        raise ValueError(f"topics.{name}: either `value` or `size`")
    numbers = {key: _number(name, key, found.get(key, default)) for key, default in (("partitions", 1), ("records", None), ("size", 0), ("seed", 0))}
    return Topic(
        name, numbers["partitions"], numbers["records"], _template(name, "key", found.get("key")), _template(name, "value", found.get("value")),
        numbers["size"], numbers["seed"], {str(k): str(v) for k, v in headers.items()}, codec,
    )  # fmt: skip


def _number(name: str, key: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < (1 if key == "partitions" else 0):
        raise ValueError(f"topics.{name}.{key}: a number, not {value!r}")
    return value


def _template(name: str, key: str, value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, dict | list):
        raise ValueError(f"topics.{name}.{key}: text, with quotes where YAML would read something else in it")
    return str(value)


def expression(template: str) -> str:
    """SQL that fills a template from the column `n`."""
    parts, at = [], 0
    for found in _NUMBER.finditer(template):
        parts.append(_quoted(template[at : found.start()]))
        operation = {"%": f"n % {found[2]}", "//": f"n div {found[2]}", None: "n"}[found[1]]
        parts.append(f"cast({operation} AS string)")
        at = found.end()
    parts.append(_quoted(template[at:]))
    return f"concat({', '.join(parts)})"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
