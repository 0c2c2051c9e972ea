"""Fetch of an emulated release, versions 0 to 3: message sets of versions 0 and 1.

What is stored in a later format is converted when it is fetched: versions 0 and 1 get messages of version 0, 2 and 3
those of version 1, or of version 0 from a release that has no other. With `message.downconversion.enable=false` the
partition has UNSUPPORTED_VERSION instead. What is stored in the client's format is returned as it is.

A reply has `max_bytes` of each partition, and up to version 2 ends within a message: a client that gets no whole
message doubles its buffer. Fewer bytes than a client allows are read in one reply (`CONVERTED_BYTES_MAX`), so that its
memory and its work have a bound.

Batches of which nothing is left, such as markers of transactions, are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol import messages
from ...protocol.buffers import LateRecords
from ...protocol.conversion import is_as_old, older_set
from ...protocol.errors import ApiError, Errors, MalformedMessage
from ...protocol.legacy import ENTRY
from ..net.api import Api, Handler
from ..net.context import Context
from ..replica.fetch_reads import EMPTY
from .converted import Converted
from .outcomes import outcome_of, work_out
from .releases import Release

BATCHES_SINCE = 4
WHOLE_SINCE = 3  # the first message of a reply is whole
TIMED_SINCE = 2  # messages have timestamps
CONVERTED_BYTES_MAX = 1 << 20  # of one partition, unless its first batch is larger
REPLY_BYTES_MAX = 8 << 20
PASSED_MAX = 100  # slices without a message that one request passes over
NOTHING = Converted((), 0)
Data = messages.FetchResponse.PartitionData


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    async def emulated(context: Context, request: messages.FetchRequest) -> messages.FetchResponse:
        if context.version >= BATCHES_SINCE:
            found: messages.FetchResponse = await outcome_of(handle(context, request))
            return found
        return await _Fetching(handle, release, context, request).answered()

    return emulated


class _Fetching:
    """One request."""

    def __init__(self, handle: Handler, release: Release, context: Context, request: messages.FetchRequest) -> None:
        self.handle = handle
        self.context = context
        self.request = request
        self.magic = 0 if context.version < TIMED_SINCE else min(1, release.message_format)
        self.kept_magic = self.magic if release.message_format else 1  # before 0.10 nothing looks at versions
        self.cuts = context.version < WHOLE_SINCE
        self.left = min(request.max_bytes, REPLY_BYTES_MAX)
        self.is_first = True  # nothing was put into the reply

    async def answered(self) -> messages.FetchResponse:
        request, wanted = self.request, {}
        for topic in request.topics:
            for one in topic.partitions:
                wanted[topic.topic, one.partition] = (one.fetch_offset, one.partition_max_bytes)
                one.partition_max_bytes = min(one.partition_max_bytes, CONVERTED_BYTES_MAX)
        response: messages.FetchResponse = await outcome_of(self.handle(self.context, request))
        answers = [(topic.topic, data) for topic in response.responses for data in topic.partitions]
        try:
            for topic_name, data in answers:
                offset, bytes_max = wanted[topic_name, data.partition_index]
                await self._fill(topic_name, data, offset, bytes_max)
        except BaseException:
            for _, data in answers:
                _release(data)
            raise
        return response

    async def _fill(self, topic: str, data: Data, offset: int, bytes_max: int) -> None:
        """Puts messages in place of the batches of a partition."""
        start, made = offset, NOTHING
        bytes_max = min(bytes_max, self.left)
        for _ in range(PASSED_MAX):
            if data.error_code or (not len(data.records) and data.high_watermark <= start):
                break
            if bytes_max <= 0 and not (self.is_first and not self.cuts):
                break
            if not len(data.records):  # its first batch is larger than the client allows
                again = await self._read(topic, data.partition_index, start)
                data.error_code, data.records = again.error_code, again.records
                if data.error_code or not len(data.records):
                    break
            try:
                made, start = await self._converted(topic, data, start, bytes_max)
            except ApiError as error:
                data.error_code, data.high_watermark = error.code, -1
                break
            finally:
                _release(data)
            if len(made):
                break
        _release(data)
        data.records = made if len(made) else EMPTY
        if len(made):
            self.left -= len(made)
            self.is_first = False

    async def _converted(self, topic: str, data: Data, first_offset: int, bytes_max: int) -> tuple[Converted, int]:
        """Returns the messages of what was read, and the offset after it, if nothing is left of it. Raises ApiError."""
        buf = bytes(data.records)
        if is_as_old(buf, self.kept_magic):
            return self._cut([buf], bytes_max), first_offset
        if self.context.broker.settings.of_topic(topic).get("message.downconversion.enable") is False:
            raise ApiError(Errors.UNSUPPORTED_VERSION)
        try:
            made, end = await work_out(
                self.context.turn, len(buf), lambda: older_set(buf, self.magic, first_offset, max(1, bytes_max))
            )
        except MalformedMessage:
            raise ApiError(Errors.CORRUPT_MESSAGE) from None
        return self._cut(made, bytes_max), end

    def _cut(self, made: list[bytes], bytes_max: int) -> Converted:
        """Returns as much as the client allows; the first message whole if the version promises that."""
        first = next(filter(None, made), None)
        if first and self.is_first and not self.cuts:
            bytes_max = max(bytes_max, ENTRY.size + int.from_bytes(first[8:12], "big"))
        return Converted(made, max(0, bytes_max))

    async def _read(self, topic: str, index: int, offset: int) -> Data:
        """Reads one partition from an offset on, at least one batch."""
        r = messages.FetchRequest
        partition = r.FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=1, current_leader_epoch=-1, last_fetched_epoch=-1
        )
        alone = r(
            replica_id=self.request.replica_id,
            max_wait_ms=0,
            min_bytes=0,
            topics=[r.FetchTopic(topic=topic, partitions=[partition])],
        )
        response: messages.FetchResponse = await outcome_of(self.handle(self.context, alone))
        found: Data = response.responses[0].partitions[0]
        return found


def _release(data: Data) -> None:
    if isinstance(data.records, LateRecords):
        data.records.release()
        data.records = EMPTY
