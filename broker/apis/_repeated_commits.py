"""OffsetCommits of a connection that are like an earlier one, served without decoding them.

A consumer commits the same partitions again and again: its requests differ in the correlation id, the offsets and the
leader epochs. After some requests the connection keeps what they have in common: the layout of their frames
(`protocol.layouts`), the request as it was read, and its reply. A frame of that layout is neither decoded nor looked up
in the metadata, nor is its reply encoded. Who may commit is decided each time (`routes.commit_offsets_again`).

Everything else takes the ordinary way, which says what is right: requests with metadata or a retention time, topics
that do not exist, those that an interceptor may act on, and all requests while something looks at their messages, or
counts them (the dispatcher finds that). A trace and a verdict record frames, so they get what is not decoded, too.
"""

from __future__ import annotations

import struct
from time import perf_counter_ns
from typing import TYPE_CHECKING

from ...coordinator.group import routes
from ...coordinator.group.offsets.repeated import RepeatedCommit, is_repeatable
from ...coordinator.shard import Result
from ...protocol import codec, headers, messages
from ...protocol.errors import ApiError, Errors
from ...protocol.layouts import Layout
from ..net.context import Context
from ..peer import Peer
from ..repeated import DECODE, Served
from ..replies import Reply, Send
from ._offset_commits import Kind, errors_of, is_all_there
from ._repeated import Known, Repeats

if TYPE_CHECKING:
    from ...coordinator.group.shard import GroupShard
    from ..net.dispatch import Dispatcher

VERSION_MIN = 2  # older ones are those of emulated releases
_LENGTH = _CORRELATION_ID = struct.Struct(">i")


def note(context: Context, request: messages.OffsetCommitRequest, kind: Kind[messages.OffsetCommitResponse]) -> None:
    """Notes that a commit was decoded. All of its partitions exist, or it is what is left without those that do not."""
    repeated = RepeatedCommits.of(context)
    if repeated is not None and repeated.is_due() and context.version >= VERSION_MIN and is_repeatable(request):
        repeated.learn(_Known(context, request, kind))


class RepeatedCommits(Repeats["_Known"]):
    """What a connection commits again and again."""

    __slots__ = ()

    def serve(self, dispatcher: Dispatcher, peer: Peer, frame: memoryview, send: Send) -> Served:
        recognized = self.recognized(dispatcher, peer, frame, send)
        return DECODE if recognized is None else recognized.begin()

    def recognized(self, dispatcher: Dispatcher, peer: Peer, frame: memoryview, send: Send) -> _Commit | None:
        """Returns the commit of a frame that can be served here; None for another one."""
        known = self.known
        if known is None:
            return None
        numbers = known.layout.numbers_of(frame)
        if numbers is None:
            return None
        if known.image_version != dispatcher.broker.groups.image.version and not known.is_there_still(dispatcher, peer):
            self.forget()
            return None
        self.used()
        if dispatcher.seam is not None:
            context = known.context(dispatcher, peer, numbers[0])
            if dispatcher.seam.concerns(context, known.commit.request):
                return None
            send = dispatcher.seam.watched(context, known.commit.request, frame, send)
        return _Commit(known, dispatcher, peer, numbers, send)


class _Known(Known):
    """A commit that was decoded, and what is the same for those that are like it. `partition`: of its coordinator."""

    __slots__ = ("commit", "image_version", "kind", "layout", "partition", "reply")

    def __init__(
        self, context: Context, request: messages.OffsetCommitRequest, kind: Kind[messages.OffsetCommitResponse]
    ) -> None:
        super().__init__(context)
        api, version = self.api, self.version
        self.kind = kind
        self.commit = RepeatedCommit(request, version)
        groups = context.broker.groups
        self.image_version = groups.image.version
        self.partition = groups.partition_for(request.group_id)
        zeros, ones = map(self._frame, (0, -1))
        self.layout = Layout(zeros, ones, self.commit.kinds())
        self.size = self.layout.size
        accepted = kind.response(topics=errors_of(context, request.topics, ApiError(Errors.NONE)))
        self.reply = codec.build(api.response, version, accepted, headers.start_response(api.response, version, 0))
        _LENGTH.pack_into(self.reply, 0, len(self.reply) - _LENGTH.size)

    def _frame(self, value: int) -> bytes:
        """Returns the frame, without its length, with `value` for all of its numbers."""
        message = self.commit.with_numbers(value)
        frame = headers.request_frame(self.api.name, self.version, message, value, self.client_id)
        return frame[_LENGTH.size :]

    def is_there_still(self, dispatcher: Dispatcher, peer: Peer) -> bool:
        """Whether its topics and partitions are those that they were, after the metadata has changed."""
        topics = self.commit.request.topics
        before = [topic.topic_id for topic in topics]
        if not is_all_there(self.context(dispatcher, peer, 0), self.commit.request, self.kind):
            return False
        groups = dispatcher.broker.groups
        self.image_version = groups.image.version
        self.partition = groups.partition_for(self.commit.request.group_id)
        return before == [topic.topic_id for topic in topics]

    def context(self, dispatcher: Dispatcher, peer: Peer, correlation_id: int) -> Context:
        return Context(dispatcher.broker, self.api, self.version, correlation_id, self.client_id, peer)


class _Commit:
    """One request, from its numbers to its reply. It is pending until it is answered or cancelled."""

    __slots__ = ("_dispatcher", "_is_over", "_known", "_numbers", "_parked_ns", "_peer", "_send")

    def __init__(self, known: _Known, dispatcher: Dispatcher, peer: Peer, numbers: tuple[int, ...], send: Send) -> None:
        self._known = known
        self._dispatcher = dispatcher
        self._peer = peer
        self._numbers = numbers
        self._send = send
        self._is_over = False
        self._parked_ns = 0  # since when, if it is

    def begin(self) -> _Commit | None:
        """Writes the offsets. Returns itself if it is pending then."""
        known = self._known
        times, request, numbers = known.times, known.commit.request, self._numbers
        known.count(self._peer, request)
        groups = self._dispatcher.broker.groups

        def commit_offsets(shard: GroupShard) -> Result:
            if request.group_id not in shard.groups:
                groups.room.check_group(shard, request.group_id)
            return routes.commit_offsets_again(shard, known.commit, numbers)

        began = perf_counter_ns()
        try:
            groups.host_at(known.partition).write("commit-offset", commit_offsets, self._answer)
        except ApiError as error:
            self._answer(None, error)
        now = perf_counter_ns()
        times.handle_ns += now - began
        if self._is_over:
            return None
        self._parked_ns = now
        times.parked += 1
        return self

    def cancel(self) -> None:
        """Nothing waits for the reply any more; the offsets stay."""
        if not self._is_over:
            self._end()

    def _end(self) -> None:
        self._is_over = True
        if self._parked_ns:
            times = self._known.times
            times.parked -= 1
            times.park_ns += perf_counter_ns() - self._parked_ns

    def _answer(self, reply: None, error: ApiError | None) -> None:
        if self._is_over:
            return
        self._end()
        if error is not None:
            return self._refuse(error)
        began = perf_counter_ns()
        head = self._known.reply.copy()
        _CORRELATION_ID.pack_into(head, _LENGTH.size, self._numbers[0])
        self._send(Reply(head, []), False)
        self._known.times.send_ns += perf_counter_ns() - began

    def _refuse(self, error: ApiError) -> None:
        """Answers with an error, as for any request that fails as a whole."""
        known, dispatcher, request = self._known, self._dispatcher, self._known.commit.request
        context = known.context(dispatcher, self._peer, self._numbers[0])
        outcome = dispatcher.error_reply(known.api, context, request, error)
        dispatcher.finish(known.api, context, request, outcome, self._send, known.times)
