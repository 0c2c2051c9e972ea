"""Produce requests for one partition that a client has sent ahead: their batches are written to the file at once, and
then each is answered.

Each request is checked as if it were alone, and each batch against the one before it. Between the first of them and
`finish` nothing happens but their own handling, so nobody sees a log that does not have them yet. If they cannot be
written, the log is as it was, and each gets the error.

They are for partitions whose high watermark follows each append at once. Where a reply may have to wait, the next
request is not taken before it is sent, as in Kafka.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING

from ...protocol import messages
from ...protocol.buffers import WritableData
from ...protocol.errors import ApiError
from ...protocol.records import BatchAt
from ...storage.batch_info import Appended
from ...storage.gathered import Gathered
from .. import bugs
from ..net.context import Context
from ..peer import Peer
from ..replica.partition import Partition
from ..replies import Reply, Send
from ..steps import TooLong
from ._known_produces import KnownProduce
from ._produce_appends import Appending, answered_when_reached, find, is_transactional

if TYPE_CHECKING:
    from ..net.dispatch import Dispatcher

Answer = messages.ProduceResponse.PartitionProduceResponse


class _Waiting:
    """A request that is not answered yet. `reply`: to send when its batch is written; `answer`: if it is refused."""

    __slots__ = ("answer", "appending", "context", "reply", "send")

    def __init__(
        self, context: Context, appending: Appending, answer: Answer | None, reply: bytearray, send: Send
    ) -> None:
        self.context = context
        self.appending = appending
        self.answer = answer
        self.reply = reply
        self.send = send


class GatheredProduces:
    """Requests of one connection that are like `known`, for one partition."""

    __slots__ = ("_dispatcher", "_gathered", "_index", "_known", "_partition", "_peer", "_waiting")

    def __init__(
        self, known: KnownProduce, dispatcher: Dispatcher, peer: Peer, index: int, partition: Partition
    ) -> None:
        self._known = known
        self._dispatcher = dispatcher
        self._peer = peer
        self._index = index
        self._partition = partition
        self._gathered: Gathered | None = None
        self._waiting: list[_Waiting] = []

    @classmethod
    def begun(
        cls, known: KnownProduce, dispatcher: Dispatcher, peer: Peer, frame: memoryview, index: int
    ) -> GatheredProduces | None:
        """Returns what takes the request of a frame for partition `index`; None where it has to be served alone."""
        if dispatcher.seam is not None or known.request.acks == 0:
            return None
        try:
            partition = find(known.context_of(dispatcher, peer, frame), known.request.topic_data[0], index)
        except ApiError:
            return None
        if not dispatcher.broker.appender.gathers(partition):
            return None
        return cls(known, dispatcher, peer, index, partition)

    def takes(self, frame: memoryview, send: Send) -> bool:
        """Whether the request of a frame is one of these; then it calls `send` once, at the latest in `finish`. Raises
        Refused.
        """
        known = self._known
        found = known.layout.records_of(frame)
        if found is None or found[0] != self._index or is_transactional(found[1]):
            return False
        began = perf_counter_ns()
        context, request = known.context_of(self._dispatcher, self._peer, frame), known.request
        appending = Appending(context, request, {}, self)
        spare, known.spare = known.spare, None
        known.wanted.index, known.wanted.records = found
        try:
            answer = appending.one(request.topic_data[0], known.wanted, None, spare)
        except TooLong:  # such a request needs several steps
            return False
        except Exception as error:
            self.finish()
            outcome = self._dispatcher.failed(known.api, context, request, error)
            self._dispatcher.conclude(known.api, context, request, outcome, send, known.times)
            return True
        finally:
            known.wanted.records = b""  # those of the connection's buffer, which it uses again
        known.count(self._peer, request)
        if appending.failed:
            self._waiting.append(_Waiting(context, appending, answer, bytearray(), send))
        else:
            reply = known.accepted(context.correlation_id, answer)
            self._waiting.append(_Waiting(context, appending, None, reply, send))
            known.spare = answer
        self._peer.gathered = self
        known.times.handle_ns += perf_counter_ns() - began
        return True

    def add(self, data: WritableData, at: BatchAt, now_ms: int) -> Appended:
        """Adds a validated batch; one for which there is no room is appended after the others. Raises ApiError."""
        gathered = self._gathered
        if gathered is None:
            gathered = self._gathered = Gathered(self._partition.open_log(), self._partition.leader_epoch, now_ms)
        if gathered.has_room(at.header):
            return gathered.add(data, at)
        error = self._finished()
        if error is not None:
            raise error
        return self._dispatcher.broker.appender.store(self._partition, data, [at], now_ms)

    def finish(self) -> None:
        """Writes the batches and answers the requests. The frames must have stayed as they were."""
        self._finished()
        self._dispatcher.broker.turn.settle_soon()

    def _finished(self) -> ApiError | None:
        """Like `finish`; returns why the batches could not be written."""
        self._peer.gathered = None
        waiting, self._waiting = self._waiting, []
        began = perf_counter_ns()
        error = self._written()
        written = perf_counter_ns()
        for one in waiting:
            try:
                self._answer(one, error)
            except Exception as bug:
                bugs.report("answering a Produce", bug)
                one.send(None, True)
        times = self._known.times
        times.handle_ns += written - began
        times.send_ns += perf_counter_ns() - written
        return error

    def _written(self) -> ApiError | None:
        gathered, self._gathered = self._gathered, None
        if gathered is None or not len(gathered):
            return None
        broker = self._dispatcher.broker
        try:
            broker.appender.write(self._partition, gathered, broker.schedule.now_ms())
        except ApiError as error:
            return error
        return None

    def _answer(self, one: _Waiting, error: ApiError | None) -> None:
        known, context, appending = self._known, one.context, one.appending
        answer = one.answer
        if answer is None and error is not None:
            answer = appending.refused(self._partition, self._index, error)
        if answer is not None:
            outcome = answered_when_reached(context, known.request, known.response(answer), appending)
            self._dispatcher.conclude(known.api, context, known.request, outcome, one.send, known.times)
        elif appending.unreached():  # which can only be a fault of the broker: nothing is acknowledged
            one.send(None, True)
        else:
            one.send(Reply(one.reply, []), False)
