"""A request of every API and version, and what Kafka's classes answer if it fails as a whole (`getErrorResponse`).

python -m tests.oracle.error_reply_cases     asks Kafka's own classes again, and writes `recorded/error_replies.json`
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ottla.broker.apis import apis
from ottla.broker.net.api import Api
from ottla.protocol import codec, schema
from ottla.protocol.errors import ApiError, Errors, default_message
from ottla.protocol.messages import struct_class
from ottla.protocol.schema import FieldSchema, Schema, StructSchema

from .recorded_cases import Answer, ask, read, write

RECORDED = Path(__file__).parent / "recorded" / "error_replies.json"
ERRORS = (
    ApiError(Errors.INVALID_REQUEST, "why"),
    ApiError(Errors.CLUSTER_AUTHORIZATION_FAILED, default_message(Errors.CLUSTER_AUTHORIZATION_FAILED)),
    ApiError(Errors.UNKNOWN_SERVER_ERROR, "why"),
)
FILLS = (
    "full",
    "null values",
    "null",
)  # with all values; without those that can be null, but with arrays; without both
KNOWN = ("resource_type", "pattern_type", "operation", "permission_type")  # of ACLs: 0 is refused while parsing


@dataclass(frozen=True)
class Case:
    """A request that fails. `fill`: one of FILLS."""

    api: Api
    version: int
    fill: str
    error: ApiError

    def __str__(self) -> str:
        return f"{self.api.name}-{self.version}-{self.fill}-{Errors(self.error.code).name}"

    @property
    def request(self) -> bytes:
        return _request(self.api.request, self.version, self.fill)

    @property
    def question(self) -> dict[str, object]:
        text = self.error.own_message
        asked = {"key": self.api.key, "version": self.version, "request": self.request.hex()}
        return {**asked, "code": int(self.error.code), "text": text}


@cache
def _request(name: str, version: int, fill: str) -> bytes:
    loaded = schema.load(name)
    return bytes(codec.build(name, version, _struct(loaded, loaded.root, version, 1, fill)))


def _struct(loaded: Schema, struct: StructSchema, version: int, n: int, fill: str) -> Any:
    made: Any = struct_class(loaded, struct)()
    for f in struct.fields:
        if version in f.versions and version not in f.tagged:
            setattr(made, f.name, _field(loaded, f, version, n, fill))
    return made


def _field(loaded: Schema, f: FieldSchema, version: int, n: int, fill: str) -> Any:
    if version in f.nullable and (fill == "null" or (fill == "null values" and not f.is_array)):
        return None
    if f.is_array:
        return [_value(loaded, f, version, i, fill) for i in (1, 2)]
    return _value(loaded, f, version, n, fill)


def _value(loaded: Schema, f: FieldSchema, version: int, n: int, fill: str) -> Any:
    if f.struct is not None:
        return _struct(loaded, f.struct, version, n, fill)
    if f.name.startswith(KNOWN) or f.name.removeprefix("resource_").startswith(KNOWN):
        return 3
    kinds: dict[str, Any] = {"string": f"{f.name}-{n}", "bool": False, "uuid": bytes(15) + bytes((n,))}
    return {**kinds, "float64": float(n), "bytes": b"%d" % n, "records": b""}.get(f.element_type, n)


def cases() -> list[Case]:
    return [
        Case(api, version, fill, error)
        for api in apis(unstable=True).values()
        for version in range(api.low, api.high + 1)
        for fill in {_request(api.request, version, fill): fill for fill in reversed(FILLS)}.values()
        for error in ERRORS
    ]


def recorded() -> list[Answer]:
    return read(RECORDED)


def asked() -> list[Answer]:
    """What Kafka's classes say now."""
    return ask("ErrorReplies", [case.question for case in cases()])


if __name__ == "__main__":
    write(RECORDED, asked())
