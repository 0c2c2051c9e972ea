"""From a frame to a reply: decodes header and message, calls the handler, encodes the reply.

A handler returns a message, a `Later` of one, a coroutine that awaits `Later`s, or a mark: NO_REPLY (a Produce with
acks=0) or CLOSE. An ApiError of a handler becomes the reply that the API's `failed` makes of it, or the error in all
places that the API declares for errors of a whole request.

A large request is decoded, handled and answered in three turns of the loop, and a very large one is decoded, and its
reply encoded, in several, so that each is short enough for others to wait for it; a small one is served at once.
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from ...protocol import codec, headers, messages
from ...protocol.errors import ApiError, Errors, MalformedMessage, StringTooLong, TooManyElements
from ...protocol.structs import Struct
from .. import bugs
from ..broker import Broker
from ..client_quotas import Usage
from ..clock import Cancellable
from ..later import LargeReply, Later, after, drive
from ..limits import REPLY_BYTES, REQUEST_BYTES, REQUEST_ELEMENTS, Limit
from ..metrics import ApiTimes
from ..peer import Peer
from ..repeated import DECODE
from ..replies import CLOSE, NO_REPLY, Reply, Send, Silence
from ..security.authorization import Complete, check_request
from ..unsupported_version import Listed, unsupported_version
from . import error_counts
from .answers import ReplyTooLarge
from .api import Api
from .context import Context
from .watching import NotesRequests, Pending, Seam

logger = logging.getLogger("ottla.kafka.network.Processor")
_START = struct.Struct(">hhi")
_LENGTH = struct.Struct(">i")
_SETTLED = (Struct, Later, Silence)  # what a handler returns that is no coroutine; a compiled one has its own type
# Handling an element costs more than decoding the ten or more bytes that most of them have: it is the number of
# elements that takes time. A frame with records has few.
LARGE_BYTES = 8 << 10
STEPS_BYTES = 32 << 10  # of a frame that is read in steps


class Refused(Exception):
    """A frame that closes the connection, as in Kafka. `limit`: the limit beyond which it is."""

    def __init__(self, reason: str, limit: Limit | None = None) -> None:
        super().__init__(reason)
        self.limit = limit


class Dispatcher:
    """Serves frames. `apis`: those served, by key. `log` notes requests, `seam` intercepts them; each may be None."""

    has_quotas = True  # whether requests count for the quotas of clients
    is_own = True  # whether requests are served as by the newest release, and not as by an emulated one

    def __init__(self, broker: Broker, apis: Mapping[int, Api], log: NotesRequests | None = None) -> None:
        self.broker = broker
        self.apis = apis
        self.log = log
        self.seam: Seam[Dispatcher] | None = None
        self.request_bytes_max = broker.config["socket.request.max.bytes"]
        self.frame_bytes_max = broker.config["ottla.frame.max.bytes"]
        self.reply_bytes_max = broker.config["ottla.reply.max.bytes"]

    def handle(self, peer: Peer, frame: memoryview, send: Send) -> Cancellable | None:
        """Serves one frame and calls `send` once, now or later. Returns what is pending, so that it can be cancelled.

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
            if key == headers.API_VERSIONS:
                self._answer_unsupported(api, frame, correlation_id, send)
                return None
            raise Refused(f"{api.name} has no version {version}")
        if key in peer.repeated and self._is_plain():
            pending = peer.repeated[key].serve(self, peer, frame, send)
            if pending is not DECODE:
                return pending
        if len(frame) > self.frame_bytes_max:
            self.check_size(key, len(frame))
        times = self.broker.metrics.apis[key, version]
        if len(frame) > STEPS_BYTES and not api.has_records:
            from .turns import read_in_steps  # a start needs none of them

            later = drive(read_in_steps(self, api, version, correlation_id, bytes(frame), peer, send, times))
            if not later.done:
                return later
            later.get()
            return None
        context, request = self._parse(api, version, correlation_id, frame, peer)
        times.parse_ns += time.perf_counter_ns() - started
        return self.take(context, request, frame, send, times)

    def _is_plain(self) -> bool:
        """Whether nothing looks at the messages of requests, or counts them, before their handlers do."""
        broker = self.broker
        return (
            self.is_own
            and self.log is None
            and (self.seam is None or not self.seam.reads_messages)
            and broker.authorizer is None
            and not broker.quotas.limits.is_used
        )

    def refused(self, peer: Peer, frame: memoryview | None, error: Refused) -> None:
        """Notes a frame that closes its connection. `frame`: None for one that is not read any more."""
        if self.seam is not None and frame is not None:
            self.seam.refused(peer, frame, str(error))
        if error.limit is not None:
            self.broker.limits.reached(error.limit, f"{peer.address}: {error}")

    def refuse(self, peer: Peer, frame: memoryview, send: Send, error: Exception) -> None:
        """Closes the connection of a frame that is refused, or cannot be taken, in a later step."""
        if not isinstance(error, Refused):
            bugs.report("taking a request", error)
            return send(None, True)
        self.refused(peer, frame, error)
        logger.debug("closing the connection from %s: %s", peer.address, error)
        send(None, True)

    def take(self, context: Context, request: Struct, frame: memoryview, send: Send, times: ApiTimes) -> Pending | None:
        """Serves a request that was read. Returns what is pending. Raises Refused."""
        quotas, peer, api = self.broker.quotas, context.peer, context.api
        if quotas.limits.is_used and self.has_quotas:
            peer.usage = Usage(quotas, peer.principal, context.client_id, len(frame))
        times.count += 1
        if self.log is not None:
            self.log.request(context, request)
        if peer.activity is not None:
            peer.activity.note(api.key, context.version, context.client_id, request)
        if self.seam is not None:
            return self.seam.serve(self, context, request, frame, send, times)
        return self.serve(context, request, len(frame), send, times)

    def serve(self, context: Context, request: Struct, size: int, send: Send, times: ApiTimes) -> Pending | None:
        """Handles a request that came in a frame of `size` bytes, and calls `send` once. Returns what is pending."""
        api = context.api
        if size > LARGE_BYTES and not api.has_records:
            from .turns import in_turns

            outcome: object = drive(in_turns(self, api, context, request))
        else:
            began = time.perf_counter_ns()
            outcome = self.call(api, context, request)
            times.handle_ns += time.perf_counter_ns() - began
        return self.conclude(api, context, request, outcome, send, times)

    def conclude(
        self, api: Api, context: Context, request: Struct, outcome: object, send: Send, times: ApiTimes
    ) -> Pending | None:
        """Calls `send` with what a handler has returned, or returns it if it is pending."""
        if isinstance(outcome, Later):
            if not outcome.done:
                return self._park(api, context, request, outcome, send, times)
            outcome = self.outcome_of(api, context, request, outcome)
        self.finish(api, context, request, outcome, send, times)
        return None

    def check_size(self, key: int, size: int) -> None:
        """Raises Refused if a frame of `size` bytes is larger than requests of its API may be."""
        if size > self.frame_bytes_max:
            api = self.apis.get(key)
            if api is None or not api.has_records:
                name = f"API key {key}" if api is None else api.name
                raise Refused(f"a request of {size} bytes for {name}", REQUEST_BYTES)

    def _parse(
        self, api: Api, version: int, correlation_id: int, frame: memoryview, peer: Peer
    ) -> tuple[Context, Struct]:
        try:
            client_id, start = headers.client_id_of(headers.request_header_version(api.request, version), frame)
            request = codec.parse(
                api.request, version, frame if api.has_records else bytes(frame), start, api.elements_max
            )
        except MalformedMessage as error:
            raise self.malformed(api, version, error) from None
        return Context(self.broker, api, version, correlation_id, client_id, peer), request

    def malformed(self, api: Api, version: int, error: MalformedMessage) -> Refused:
        self.broker.metrics.malformed += 1
        limit = REQUEST_ELEMENTS if isinstance(error, TooManyElements) else None
        return Refused(f"{api.name} v{version}: {error}", limit)

    def call(self, api: Api, context: Context, request: Struct) -> object:
        try:
            handle = api.handle
            if self.broker.authorizer is not None:
                check_request(context, api.name, api.authorization, request)
                if api.narrowed is not None:
                    return self._narrowed(api, context, request, drive(api.narrowed(context, request)))
            outcome = handle(context, request)
            return outcome if isinstance(outcome, _SETTLED) else drive(outcome)
        except Exception as error:
            return self.failed(api, context, request, error)

    def failed(self, api: Api, context: Context, request: Struct, error: Exception) -> Struct | Silence:
        """Returns the reply to a request whose handler raised an exception. Raises Refused."""
        if isinstance(error, MalformedMessage):
            raise Refused(f"{api.name}: {error}") from None
        told = error if isinstance(error, ApiError) else self._unexpected(api, context, error)
        return self.error_reply(api, context, request, told)

    def _narrowed(
        self, api: Api, context: Context, request: messages.Struct, narrowing: Later[Complete | None]
    ) -> object:
        """Serves the parts of a request that the principal may use, once it is known which."""
        if narrowing.done:
            return self._served(api, context, request, narrowing.get())
        return drive(self._narrowed_later(api, context, request, narrowing))

    async def _narrowed_later(
        self, api: Api, context: Context, request: messages.Struct, narrowing: Later[Complete | None]
    ) -> object:
        outcome = self._served(api, context, request, await narrowing)
        return await outcome if isinstance(outcome, Later) else outcome

    def _served(self, api: Api, context: Context, request: messages.Struct, complete: Complete | None) -> object:
        """Serves the parts of a request that the principal may use; `complete` adds the errors of the others."""
        try:
            outcome = api.handle(context, request)
        except ApiError as error:
            outcome = self.error_reply(api, context, request, error)
        if not isinstance(outcome, _SETTLED):
            outcome = drive(outcome)
        if complete is None:
            return outcome
        if isinstance(outcome, Later):
            return after(outcome, partial(self._completed_later, api, context, request, complete))
        return _completed(complete, outcome)

    def _completed_later(
        self, api: Api, context: Context, request: messages.Struct, complete: Complete, later: Later[object]
    ) -> object:
        error = later.error
        found = self.error_reply(api, context, request, error) if isinstance(error, ApiError) else later.get()
        return _completed(complete, found)

    def _unexpected(self, api: Api, context: Context, error: BaseException) -> ApiError:
        """Returns the error for a request whose handler raised an exception: a failed disk, or a bug."""
        if isinstance(error, OSError):
            return self.broker.log_directories.storage_error(error)
        if not isinstance(error, StringTooLong):  # such a string comes from the client
            bugs.report(f"{api.name} v{context.version}", error)
        return ApiError(Errors.UNKNOWN_SERVER_ERROR)

    def _park(
        self,
        api: Api,
        context: Context,
        request: Struct,
        later: Pending,
        send: Send,
        times: ApiTimes,
    ) -> Pending:
        if type(later) is LargeReply:
            from .turns import large_reply

            later = drive(large_reply(self, context, later))
        if context.usage is not None:
            context.usage.pause()
        # a request that is not needed any more is freed while the reply waits
        kept = request if api.needs_request and not api.has_records else None
        parked = _Parked(self, context, kept, send, times)
        later.when_done(parked.done)
        later.when_cancelled(parked.ended)
        return later

    def outcome_of(self, api: Api, context: Context, request: Struct | None, finished: Later[object]) -> object:
        """Returns what a handler returned later, or what its exception becomes."""
        error = finished.error
        if error is None:
            return finished.result
        if isinstance(error, ReplyTooLarge):
            return self._too_large(context)
        if isinstance(error, Refused):
            logger.debug("closing the connection from %s: %s", context.client_address, error)
            return CLOSE
        if not isinstance(error, ApiError):
            error = self._unexpected(api, context, error)
        return self.error_reply(api, context, request, error)

    def finish(
        self, api: Api, context: Context, request: Struct | None, outcome: Any, send: Send, times: ApiTimes
    ) -> None:
        if context.peer.usage is not None:
            context.throttle(context.peer.usage, outcome)
        if outcome is NO_REPLY or outcome is CLOSE:
            send(None, outcome is CLOSE)
            return
        began = time.perf_counter_ns()
        try:
            reply = self._reply(api, context, outcome)
        except ReplyTooLarge:
            return send(None, self._too_large(context) is CLOSE)
        except Exception as error:
            if not isinstance(error, StringTooLong):  # such a string comes from the client
                bugs.report(f"the reply of {api.name} v{context.version}", error)
            instead = self._unencodable(api, context, request)
            if instead is None:
                return send(None, True)
            reply = instead
        send(reply, False)
        times.send_ns += time.perf_counter_ns() - began

    def told(self, context: Context, outcome: Struct) -> Struct:
        """Returns a reply with the errors that the release in force knows."""
        return outcome

    def _reply(self, api: Api, context: Context, outcome: Struct) -> Reply:
        outcome = self.told(context, outcome)
        if self.log is not None:
            self.log.reply(context, outcome)
        error_counts.count(outcome, error_counts.plan_of(api.response), api.key, self.broker.metrics.errors)
        head = headers.start_response(api.response, context.version, context.correlation_id)
        reply = Reply(head, codec.build_parts(api.response, context.version, outcome, head))
        if len(head) > self.reply_bytes_max:
            reply.release()
            raise ReplyTooLarge
        _LENGTH.pack_into(head, 0, reply.size - 4)
        return reply

    def _unencodable(self, api: Api, context: Context, request: Struct | None) -> Reply | None:
        """Returns the reply in place of one that cannot be encoded, for example because it has a string that is too
        long: UNKNOWN_SERVER_ERROR, as in Kafka; None if that cannot be encoded either.
        """
        outcome = self.error_reply(api, context, request, ApiError(Errors.UNKNOWN_SERVER_ERROR))
        if isinstance(outcome, Silence):
            return None
        try:
            return self._reply(api, context, outcome)
        except Exception as error:
            bugs.report(f"the error of {api.name} v{context.version}", error)
            return None

    def _too_large(self, context: Context) -> Silence:
        """Closes the connection of a peer whose reply would exceed the size limit."""
        self.broker.limits.reached(REPLY_BYTES, f"{context.api.name} of {context.client_address}")
        return CLOSE

    def _answer_unsupported(self, api: Api, frame: memoryview, correlation_id: int, send: Send) -> None:
        """Replies to an unknown version of ApiVersions with version 0, which lists only this key."""
        try:
            headers.parse_request_header(headers.request_header_version(api.request, api.high), frame)
        except MalformedMessage as error:
            raise Refused(f"{api.name}: {error}") from None
        send(unsupported_version(correlation_id, self.listed_if_unsupported(api)), False)

    def listed_if_unsupported(self, api: Api) -> list[Listed]:
        """Returns what the reply to an unknown version of ApiVersions lists."""
        return [Listed(api_key=api.key, min_version=api.low, max_version=api.high)]

    def error_reply(self, api: Api, context: Context, request: Struct | None, error: ApiError) -> Struct | Silence:
        """Returns the reply for an error of the whole request; closes the connection if the request is not there any
        more and its elements had to be answered.
        """
        if request is None and api.needs_request:
            return CLOSE
        try:
            if api.failed is None:
                from ..error_replies import reply_with_error  # a start needs none

                return reply_with_error(api, context.version, request, error)
            reply: Struct | Silence = api.failed(context, request, error)
            return reply
        except Exception as bug:
            bugs.report(f"{api.name} v{context.version} with an error of its whole", bug)
            return CLOSE


class _Parked:
    """A request whose reply is not there yet. `request`: None if what becomes of it does not need it."""

    __slots__ = ("_context", "_dispatcher", "_request", "_send", "_since_ns", "_times")

    def __init__(
        self, dispatcher: Dispatcher, context: Context, request: Struct | None, send: Send, times: ApiTimes
    ) -> None:
        self._dispatcher = dispatcher
        self._context = context
        self._request = request
        self._send = send
        self._times = times
        self._since_ns = time.perf_counter_ns()
        times.parked += 1

    def ended(self) -> None:
        self._times.parked -= 1
        self._times.park_ns += time.perf_counter_ns() - self._since_ns

    def done(self, finished: Pending) -> None:
        self.ended()
        dispatcher, context, request = self._dispatcher, self._context, self._request
        if context.usage is not None:
            context.usage.resume()
        outcome = dispatcher.outcome_of(context.api, context, request, finished)
        dispatcher.finish(context.api, context, request, outcome, self._send, self._times)


def _completed(complete: Complete, found: object) -> object:
    return found if found is CLOSE else complete(found)
