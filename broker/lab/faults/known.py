"""What can be said of a match without a server: whether Kafka has its APIs, and whether they name what it looks for."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import NamedTuple

from ....protocol import schema
from .matching import Match
from .possible import keys_of_requests
from .rules import Fault, keys_of


class KnownApi(NamedTuple):
    """An API by its schemas. Its versions begin with 0, because a broker may emulate an earlier release."""

    key: int
    name: str
    request: str
    response: str
    low: int
    high: int


class KnownApis:
    """All APIs that Kafka has."""

    def __init__(self) -> None:
        self._apis = {int(key): _known(int(key), one["request"]) for key, one in schema.index()["apis"].items()}

    def api_keys(self) -> Collection[int]:
        return self._apis.keys()

    def api(self, key: int) -> KnownApi:
        return self._apis[key]


def _known(key: int, request: str) -> KnownApi:
    name = request.removesuffix("Request")
    return KnownApi(key, name, request, f"{name}Response", 0, schema.load(request).valid.high)


@cache
def apis() -> KnownApis:
    return KnownApis()


def check(match: Match) -> None:
    """Raises Invalid for what no broker takes. One that emulates an earlier release may lack more."""
    if isinstance(match, Fault):
        keys_of(match, apis())
    else:
        keys_of_requests(match, apis())
