"""The records that `load` produces, in YAML:

topics:
  orders:
    partitions: 4          # the topic is created if it does not exist
    records: 100000
    key: order-{n % 1000}  # {n}: the record's number; {n % m}, {n // m}; absent: no key
    value: '{"id": {n}, "state": "new"}'
    size: 100              # instead of a value: this number of bytes, the same for the same seed
    seed: 7
    headers: {source: load}
    codec: lz4             # none, gzip, snappy, lz4, zstd
"""

from __future__ import annotations

import re
from typing import NamedTuple

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
    """Parses a specification. Raises ValueError with the place of the error."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from None
    topics = found.get("topics") if isinstance(found, dict) else None
    if not isinstance(topics, dict) or not topics:
        raise ValueError("a specification needs `topics`: a mapping from topic names to their records")
    return [_topic(str(name), one) for name, one in topics.items()]


def _topic(name: str, found: object) -> Topic:
    if not isinstance(found, dict):
        raise ValueError(f"topics.{name}: must be a mapping")
    unknown = set(found) - _KNOWN
    if unknown:
        raise ValueError(f"topics.{name}: unknown keys: {', '.join(sorted(map(str, unknown)))}")
    codec, headers = found.get("codec", "none"), found.get("headers", {})
    if codec not in CODECS:
        raise ValueError(f"topics.{name}.codec: must be one of {', '.join(CODECS)}, found {codec!r}")
    if not isinstance(headers, dict):
        raise ValueError(f"topics.{name}.headers: must be a mapping from names to values")
    if ("value" in found) == ("size" in found):
        raise ValueError(f"topics.{name}: give either `value` or `size`, not both")
    numbers = {
        key: _number(name, key, found.get(key, default))
        for key, default in (("partitions", 1), ("records", None), ("size", 0), ("seed", 0))
    }
    return Topic(
        name, numbers["partitions"], numbers["records"], _template(name, "key", found.get("key")), _template(name,
        "value", found.get("value")),
        numbers["size"], numbers["seed"], {str(k): str(v) for k, v in headers.items()}, codec,
    )  # fmt: skip


def _number(name: str, key: str, value: object) -> int:
    least = 1 if key == "partitions" else 0
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"topics.{name}.{key}: must be a number of at least {least}, found {value!r}")
    return value


def _template(name: str, key: str, value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, dict | list):
        raise ValueError(f"topics.{name}.{key}: must be a string; put it into quotes")
    return str(value)


def expression(template: str) -> str:
    """Returns SQL that fills a template from the column `n`."""
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
