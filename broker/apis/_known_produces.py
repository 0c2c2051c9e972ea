"""A Produce request that was decoded, and what is the same for those that are like it (`_repeated_produces.py`)."""

from __future__ import annotations

import struct
from time import perf_counter_ns
from typing import TYPE_CHECKING

from ...protocol import codec, headers, messages
from ...protocol.buffers import Data
from ...protocol.layouts import RecordsLayout
from ..net.context import Context
from ..peer import Peer
from ..repeated import DECODE, Served
from ..replies import Reply, Send
from ..steps import TooLong
from ._produce_appends import Appending, answered_when_reached, is_transactional
from ._repeated import Known

if TYPE_CHECKING:
    from ..net.dispatch import Dispatcher

Answer = messages.ProduceResponse.PartitionProduceResponse

START_OFFSETS_SINCE = 5
_CORRELATION_ID_AT = 4  # in a frame
_INT = struct.Struct(">i")


class KnownProduce(Known):
    """A request that was decoded, and what is the same for those that are like it."""

    __slots__ = ("_count", "_numbers", "_numbers_at", "_reply", "layout", "request", "spare", "wanted")

    def __init__(self, context: Context, request: messages.ProduceRequest) -> None:
        super().__init__(context)
        api, version = self.api, self.version
        self.request = self._like(request, 0, b"")
        self.wanted = self.request.topic_data[0].partition_data[0]
        frame = headers.request_frame(api.name, version, self.request, 0, self.client_id)
        is_flexible = headers.request_header_version(api.request, version) >= headers.FLEXIBLE_SINCE
        self.layout = RecordsLayout(frame[_INT.size :], is_flexible)
        self.size = self.layout.size
        zeros, ones = map(self._reply_with, (0, -1))
        self._numbers_at = next(at for at, pair in enumerate(zip(zeros, ones, strict=True)) if pair[0] != pair[1])
        self._count = 5 if version >= START_OFFSETS_SINCE else 4
        self._numbers = struct.Struct(">ihqqq"[: 1 + self._count])
        self._reply = zeros
        self.spare: Answer | None = None  # an answer without an error that was sent
        _INT.pack_into(zeros, 0, len(zeros) - _INT.size)

    @staticmethod
    def _like(request: messages.ProduceRequest, index: int, records: Data) -> messages.ProduceRequest:
        """Returns a request that produces other records to some partition of the same topic."""
        r = messages.ProduceRequest
        (topic,) = request.topic_data
        wanted = r.PartitionProduceData(index=index, records=records)
        topic = r.TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[wanted])
        acks, timeout_ms = request.acks, request.timeout_ms
        return r(transactional_id=request.transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=[topic])

    def response(self, answer: Answer) -> messages.ProduceResponse:
        r = messages.ProduceResponse
        (topic,) = self.request.topic_data
        return r(
            responses=[r.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[answer])]
        )

    def _reply_with(self, value: int) -> bytearray:
        """Returns the frame of a reply with `value` for all of its numbers, but for the correlation id."""
        answer = Answer(index=value, error_code=value, base_offset=value, log_append_time_ms=value)
        answer.log_start_offset = value
        response = self.response(answer)
        head = headers.start_response(self.api.response, self.version, 0)
        return codec.build(self.api.response, self.version, response, head)

    def context_of(self, dispatcher: Dispatcher, peer: Peer, frame: memoryview) -> Context:
        (correlation_id,) = _INT.unpack_from(frame, _CORRELATION_ID_AT)
        return Context(dispatcher.broker, self.api, self.version, correlation_id, self.client_id, peer)

    def serve(
        self, dispatcher: Dispatcher, peer: Peer, frame: memoryview, index: int, records: memoryview, send: Send
    ) -> Served:
        """Serves a request, and calls `send` once. Returns what is pending, or DECODE."""
        api, times, request = self.api, self.times, self.request
        context = self.context_of(dispatcher, peer, frame)
        self.wanted.index, self.wanted.records = index, records
        try:
            if dispatcher.seam is not None:
                if dispatcher.seam.concerns(context, request):
                    return DECODE
                send = dispatcher.seam.watched(context, request, frame, send)
            self.count(peer, request)
            began = perf_counter_ns()
            try:
                outcome = self._append(dispatcher, context, request)
            except Exception as error:
                outcome = dispatcher.failed(api, context, request, error)
            handled = perf_counter_ns()
            times.handle_ns += handled - began
            if not isinstance(outcome, Answer):
                return dispatcher.conclude(api, context, request, outcome, send, times)
        finally:
            self.wanted.records = b""  # those of the connection's buffer, which it uses again
        send(Reply(self.accepted(context.correlation_id, outcome), []), False)
        self.spare = outcome
        times.send_ns += perf_counter_ns() - handled
        return None

    def _append(self, dispatcher: Dispatcher, context: Context, request: messages.ProduceRequest) -> object:
        """Returns the part of the reply for the partition alone, if the reply is that of most requests."""
        wanted = self.wanted
        spare, self.spare = self.spare, None
        appending = Appending(context, request, {})
        try:
            if is_transactional(wanted.records):
                raise TooLong
            answer = appending.one(request.topic_data[0], wanted, None, spare)
        except TooLong:  # such a request needs several steps, and is kept for them
            return dispatcher.call(self.api, context, self._like(request, wanted.index, wanted.records))
        if appending.failed or request.acks == 0 or appending.unreached():
            return answered_when_reached(context, request, self.response(answer), appending)
        return answer

    def accepted(self, correlation_id: int, answer: Answer) -> bytearray:
        """Returns the reply to a request without an error."""
        head = self._reply.copy()
        _INT.pack_into(head, _INT.size, correlation_id)
        numbers = (answer.index, 0, answer.base_offset, answer.log_append_time_ms, answer.log_start_offset)
        self._numbers.pack_into(head, self._numbers_at, *numbers[: self._count])
        return head
