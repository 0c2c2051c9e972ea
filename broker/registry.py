"""The table of what is supported: one file per API key in `apis`, found by its name and imported when it is first needed.

A file `k03_metadata.py` serves key 3 with a function `handle(context, request)` in all released versions that the schemas list. Where a
request that fails as a whole is told so part by part, a function `failed(context, request, error)` makes that reply.
ApiVersions, the README's table and the tests' coverage are computed from here.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..protocol import headers, schema

_FILE = re.compile(r"k(\d\d)_(\w+)")
# Kafka lists Produce from 0 because librdkafka looks there for what it may compress (KAFKA-18659); it refuses 0 to 2 all the same.
LISTED_FROM = {0: 0}


@dataclass(slots=True)
class Api:
    """One API: its key, the versions that are served, and the module that serves them."""

    key: int
    module: str
    request: str
    response: str
    low: int
    high: int
    has_records: bool
    _handle: Callable[..., Any] | None = None
    failed: Callable[..., Any] | None = None  # what makes the reply to a request that failed as a whole, where the module has it; known with `handle`

    @property
    def name(self) -> str:
        return self.request.removesuffix("Request")

    @property
    def listed_low(self) -> int:
        return LISTED_FROM.get(self.key, self.low)

    @property
    def handle(self) -> Callable[..., Any]:
        if self._handle is None:
            module = importlib.import_module(f"{__package__}.apis.{self.module}")
            self._handle, self.failed = module.handle, getattr(module, "failed", None)
        return self._handle


@cache
def apis(unstable: bool = False) -> dict[int, Api]:
    """Every API that is served, by key; with `unstable` also the versions that Kafka has not promised yet. Two files for one key are refused."""
    from . import apis as package

    found: dict[int, Api] = {}
    for info in pkgutil.iter_modules(package.__path__):
        parts = _FILE.fullmatch(info.name)
        if parts is None:
            continue
        key = int(parts[1])
        if key in found:
            raise ImportError(f"two files for API key {key}: {found[key].module}, {info.name}")
        names = schema.index()["apis"][str(key)]
        versions = schema.Versions.parse(names["versions"])
        high = versions.high - 1 if names["unstable"] and not unstable else versions.high
        found[key] = Api(key, info.name, names["request"], headers.response_name(key), versions.low, high, key == 0)
    return dict(sorted(found.items()))
