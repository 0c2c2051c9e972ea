"""What dispatch knows of an API: its key, its versions, and the functions of its file,
which is imported on first use.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..error_places import Places
    from ..security.authorization import Authorization, Narrow

# Kafka lists Produce from version 0 because librdkafka infers its compression support from it (KAFKA-18659); it still
# refuses 0 to 2.
LISTED_FROM = {0: 0}
Handler = Callable[..., Any]


@dataclass(slots=True)
class Api:
    """One API: its key, its supported versions, and its module in `package`."""

    key: int
    package: str
    module: str
    request: str
    response: str
    low: int
    high: int
    has_records: bool
    elements_max: int
    _handle: Handler | None = None
    _failed: Handler | None = None
    _errors: Places = ()
    _needs_request: bool = False
    _authorization: Authorization = ()
    _narrowed: Narrow | None = None

    @property
    def name(self) -> str:
        return self.request.removesuffix("Request")

    @property
    def listed_low(self) -> int:
        return LISTED_FROM.get(self.key, self.low)

    @property
    def handle(self) -> Handler:
        return self._handle or self._import()

    @property
    def failed(self) -> Handler | None:
        """Makes the reply to a request that failed as a whole, if the module defines it because that reply is not what
        `errors` declares.
        """
        if self._handle is None:
            self._import()
        return self._failed

    @property
    def errors(self) -> Places:
        """Where errors stand in a reply."""
        if self._handle is None:
            self._import()
        return self._errors

    @property
    def needs_request(self) -> bool:
        """Whether the reply to a request that failed as a whole is made of the request."""
        if self._handle is None:
            self._import()
        return self._needs_request

    @property
    def authorization(self) -> Authorization:
        """What a principal must be allowed."""
        if self._handle is None:
            self._import()
        return self._authorization

    @property
    def narrowed(self) -> Narrow | None:
        """Takes what the principal may not use out of a request, if the module defines it."""
        if self._handle is None:
            self._import()
        return self._narrowed

    def _import(self) -> Handler:
        module = importlib.import_module(f"{self.package}.{self.module}")
        self._failed, self._narrowed = getattr(module, "failed", None), getattr(module, "narrowed", None)
        self._authorization, self._errors = module.AUTHORIZATION, module.ERRORS
        of_elements = any(one.of_whole and (one.levels or one.copied) for one in self._errors)
        self._needs_request = of_elements or self._failed is not None
        handle: Handler = module.handle
        self._handle = handle
        return handle
