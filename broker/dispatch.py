"""From a frame to a reply: header, version, message, handler, and the bytes of what it answers.

A handler returns a message, a `Later` of one, a coroutine that awaits `Later`s, or one of two marks: NO_REPLY (a Produce with
acks=0) and CLOSE. ApiError from a handler becomes the reply that the API's `failed` makes of it, or an error at the response's top.
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Callable
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from ..protocol import codec, headers, messages
from ..protocol.errors import ApiError, Errors, MalformedMessage
from . import error_counts
from .broker import Broker
from .context import Context, Peer
from .later import Later, drive
from .metrics import ApiTimes
from .registry import Api, apis

if TYPE_CHECKING:
    from .request_log import RequestLog

logger = logging.getLogger("ottla")
_START = struct.Struct(">hhi")
_LENGTH = struct.Struct(">i")
NO_REPLY: Final = object()
CLOSE: Final = object()
API_VERSIONS = 18


class Refused(Exception):
    """A frame that ends the connection, as in Kafka."""


class Reply:
    """Bytes to send: a frame's head, and records to be read from files at their places in it."""

    __slots__ = ("head", "parts")

    def __init__(self, head: bytearray, parts: list[tuple[int, Any]]) -> None:
        self.head = head
        self.parts = parts

    @property
    def size(self) -> int:
        size = len(self.head)
        for _, part in self.parts:
            size += len(part)
        return size


Send = Callable[[Reply | None, bool], None]
"""Called with the reply (None for none) and whether the connection ends."""


class Dispatcher:
    """Serves frames. `log` is the request log, when there is one."""

    def __init__(self, broker: Broker, log: RequestLog | None = None) -> None:
        self.broker = broker
        self.apis = apis(broker.config["unstable.api.versions.enable"])
        self.log = log
        self.frame_bytes_max = broker.config["ottla.frame.max.bytes"]

    def handle(self, peer: Peer, frame: Any, send: Send) -> Later[Any] | None:
        """Serves one frame and calls `send` once, now or later. Returns what is waited for, so that it can be cancelled.

        Raises Refused for a frame after which Kafka closes the connection.
        """
        started = time.perf_counter_ns()
        if len(frame) < 8:
            raise Refused(f"a request of {len(frame)} bytes")
        key, version, correlation_id = _START.unpack_from(frame)
        api = self.apis.get(key)
        if api is None:
            raise Refused(f"API key {key} is not served")
        if not api.low <= version <= api.high:
            if key == API_VERSIONS:
                self._answer_unsupported(api, frame, correlation_id, send)
                return None
            raise Refused(f"{api.name} has no version {version}")
        if not api.has_records and len(frame) > self.frame_bytes_max:
            raise Refused(f"{api.name} of {len(frame)} bytes")
        context, request = self._parse(api, version, frame, peer)
        times = self.broker.metrics.api(key, version)
        times.count += 1
        parsed = time.perf_counter_ns()
        times.parse_ns += parsed - started
        if self.log is not None:
            self.log.request(context, request)
        outcome = self._call(api, context, request)
        times.handle_ns += time.perf_counter_ns() - parsed
        if isinstance(outcome, Later):
            return self._park(api, context, request, outcome, send, times)
        self._finish(api, context, outcome, send, times)
        return None

    def _parse(self, api: Api, version: int, frame: Any, peer: Peer) -> tuple[Context, Any]:
        try:
            header, start = headers.parse_request_header(headers.request_header_version(api.request, version), frame)
            request = codec.parse(api.request, version, frame if api.has_records else bytes(frame), start)
        except MalformedMessage as error:
            self.broker.metrics.malformed += 1
            raise Refused(f"{api.name} v{version}: {error}") from None
        return Context(self.broker, api, version, header.correlation_id, header.client_id, peer), request

    def _call(self, api: Api, context: Context, request: Any) -> Any:
        try:
            outcome = api.handle(context, request)
            return drive(outcome) if type(outcome) is CoroutineType else outcome
        except ApiError as error:
            return self._error_reply(api, context, request, error)
        except MalformedMessage as error:
            raise Refused(f"{api.name}: {error}") from None
        except Exception:
            self.broker.metrics.bugs += 1
            logger.exception("%s v%d failed", api.name, context.version)
            return self._error_reply(api, context, request, ApiError(Errors.UNKNOWN_SERVER_ERROR))

    def _park(self, api: Api, context: Context, request: Any, later: Later[Any], send: Send, times: ApiTimes) -> Later[Any]:
        since = time.perf_counter_ns()
        kept = None if api.failed is None else request  # what nobody needs any more goes while the reply waits
        times.parked += 1

        def done(finished: Later[Any]) -> None:
            times.parked -= 1
            times.park_ns += time.perf_counter_ns() - since
            outcome, error = finished.result, finished.error
            if isinstance(error, ApiError):
                outcome = self._error_reply(api, context, kept, error)
            elif error is not None:
                self.broker.metrics.bugs += 1
                logger.error("%s v%d failed", api.name, context.version, exc_info=error)
                outcome = self._error_reply(api, context, kept, ApiError(Errors.UNKNOWN_SERVER_ERROR))
            self._finish(api, context, outcome, send, times)

        later.when_done(done)
        return later

    def _finish(self, api: Api, context: Context, outcome: Any, send: Send, times: ApiTimes) -> None:
        if outcome is NO_REPLY or outcome is CLOSE:
            send(None, outcome is CLOSE)
            return
        if self.log is not None:
            self.log.reply(context, outcome)
        began = time.perf_counter_ns()
        error_counts.count(outcome, error_counts.plan_of(api.response), api.key, self.broker.metrics.errors)
        head = headers.start_response(api.response, context.version, context.correlation_id)
        try:
            parts = codec.build_parts(api.response, context.version, outcome, head)
        except MalformedMessage:
            self.broker.metrics.bugs += 1
            logger.exception("%s v%d has a reply that its version cannot hold", api.name, context.version)
            send(None, True)
            return
        reply = Reply(head, parts)
        _LENGTH.pack_into(head, 0, reply.size - 4)
        send(reply, False)
        times.send_ns += time.perf_counter_ns() - began

    def _answer_unsupported(self, api: Api, frame: Any, correlation_id: int, send: Send) -> None:
        """A version of ApiVersions that is not known gets version 0 of the reply, with what is known of this key alone."""
        try:
            headers.parse_request_header(headers.request_header_version(api.request, api.high), frame)
        except MalformedMessage as error:
            raise Refused(f"{api.name}: {error}") from None
        r = messages.ApiVersionsResponse
        own = [r.ApiVersion(api_key=api.key, min_version=api.low, max_version=api.high)]
        head = headers.start_response(api.response, 0, correlation_id)
        codec.build(api.response, 0, r(error_code=Errors.UNSUPPORTED_VERSION, api_keys=own), head)
        _LENGTH.pack_into(head, 0, len(head) - 4)
        send(Reply(head, []), False)

    def _error_reply(self, api: Api, context: Context, request: Any, error: ApiError) -> Any:
        """What an error of the whole request is answered with, or the connection's end where the API's response has no place for it."""
        if api.failed is not None:
            return api.failed(context, request, error)
        response = getattr(messages, api.response)()
        if hasattr(response, "error_code"):
            response.error_code = error.code
            if hasattr(response, "error_message"):
                response.error_message = error.message
            return response
        return CLOSE
