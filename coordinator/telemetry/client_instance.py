"""A client that pushes metrics, and which of its requests are taken when (ClientMetricsInstance)."""

from __future__ import annotations

import math

from ...protocol.errors import ApiError, Errors
from .subscriptions import Wanted

RETRIED_AT_ONCE = (Errors.UNKNOWN_SUBSCRIPTION_ID, Errors.UNSUPPORTED_COMPRESSION_TYPE)
CODECS = range(5)


class ClientInstance:
    """A client, with what it is asked for under one version of the subscriptions. Times are monotonic, in ms."""

    __slots__ = ("_last_get_ms", "_last_push_ms", "last_error", "name", "terminating", "version", "wanted")

    def __init__(self, name: str, wanted: Wanted, version: int) -> None:
        self.name = name
        self.wanted = wanted
        self.version = version
        self.last_error = 0
        self.terminating = False
        self._last_get_ms = self._last_push_ms = -math.inf

    def take_get(self, now_ms: float) -> None:
        """Takes a request for the subscriptions. Raises ApiError(THROTTLING_QUOTA_EXCEEDED): it comes too early, and
        not because a push was refused with an error after which clients ask at once.
        """
        if now_ms - max(self._last_get_ms, self._last_push_ms) >= self.wanted.interval_ms:
            self._last_get_ms = now_ms
        elif self.last_error not in RETRIED_AT_ONCE:
            raise self._too_early()
        self.last_error = 0

    def take_push(
        self, now_ms: float, subscription_id: int, codec: int, size: int, bytes_max: int, terminating: bool
    ) -> None:
        """Takes a push of `size` bytes. Raises ApiError; a client that has sent its last push may send another one
        after an error (INVALID_REQUEST), as in Kafka.
        """
        try:
            self._check_push(now_ms, subscription_id, codec, size, bytes_max, terminating)
        except ApiError as error:
            self.last_error = error.code
            raise
        finally:
            self.terminating = terminating

    def _check_push(
        self, now_ms: float, subscription_id: int, codec: int, size: int, bytes_max: int, terminating: bool
    ) -> None:
        if self.terminating:
            words = f"Client [{self.name}] sent the previous request with state terminating to TRUE, can not accept"
            raise ApiError(Errors.INVALID_REQUEST, f"{words}any requests after that")
        # the first push after the subscriptions may come at any time: clients wait half to one and a half intervals
        if self._last_get_ms > self._last_push_ms or now_ms - self._last_push_ms >= self.wanted.interval_ms:
            self._last_push_ms = now_ms
        elif not terminating:
            raise self._too_early()
        if subscription_id != self.wanted.subscription_id:
            raise ApiError(
                Errors.UNKNOWN_SUBSCRIPTION_ID, f"Unknown client subscription id for the client [{self.name}]"
            )
        if codec not in CODECS:
            words = f"Unknown compression type [{codec}] is received in telemetry request from [{self.name}]"
            raise ApiError(Errors.UNSUPPORTED_COMPRESSION_TYPE, words)
        if size > bytes_max:
            words = f"Telemetry request from [{self.name}] is larger than the maximum allowed size [{bytes_max}]"
            raise ApiError(Errors.TELEMETRY_TOO_LARGE, words)

    def _too_early(self) -> ApiError:
        words = f"Request from the client [{self.name}] arrived before the next push interval time"
        return ApiError(Errors.THROTTLING_QUOTA_EXCEEDED, words)
