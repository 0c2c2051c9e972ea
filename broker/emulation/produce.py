"""Produce of an emulated release, versions 0 to 2: message sets of versions 0 and 1.

The messages for a partition are converted to record batches, which are stored; `protocol.conversion` says how. Batches
in these versions are accepted if the release knows them. With acks=all the reply waits as usual; 0.8.2 knows other
numbers of acknowledgements too, for which this waits as for acks=all.

An empty message set is accepted and has no offset, as in Kafka. Before 0.11 the messages of a set may be more than one
batch may have, the checksums of messages in a compressed one are not looked at, and the version of a message is taken
from it, whatever the release writes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol import messages, records
from ...protocol.conversion import newer
from ...protocol.errors import ApiError, Errors
from ..net.api import Api, Handler
from ..net.context import Context
from ..replies import CLOSE, NO_REPLY, Silence
from .outcomes import outcome_of, work_out
from .releases import Release

BATCHES_SINCE = 3
Key = tuple[int, int]  # of a partition: its topic's and its own position in the request
Answer = messages.ProduceResponse.PartitionProduceResponse


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    async def emulated(context: Context, request: messages.ProduceRequest) -> messages.ProduceResponse | Silence:
        if context.version >= BATCHES_SINCE:
            outcome: messages.ProduceResponse | Silence = await outcome_of(handle(context, request))
            return outcome
        if release.is_before(0, 9) and request.acks > 1:
            request.acks = -1
        return await _Producing(handle, release, context, request).answered()

    return emulated


class _Producing:
    """One request. What it appends goes through the usual handler, one batch per partition in each round."""

    def __init__(self, handle: Handler, release: Release, context: Context, request: messages.ProduceRequest) -> None:
        self.handle = handle
        self.release = release
        self.context = context
        self.request = request
        self.answers: dict[Key, Answer] = {}
        self.batches: dict[Key, list[bytearray]] = {}

    async def answered(self) -> messages.ProduceResponse | Silence:
        request = self.request
        for topic in request.topic_data:
            for wanted in topic.partition_data:  # the connection uses its buffer again while the handler waits
                wanted.records = bytes(wanted.records or b"")
        for place, topic in enumerate(request.topic_data):
            for index, wanted in enumerate(topic.partition_data):
                await self._convert((place, index), topic.name, wanted)
        failed = any(answer.error_code for answer in self.answers.values())
        while any(self.batches.values()) and not (failed and request.acks == 0):
            failed = await self._append_round() or failed
        if request.acks == 0:
            return CLOSE if failed else NO_REPLY
        return self._response()

    async def _convert(self, key: Key, topic: str, wanted: messages.ProduceRequest.PartitionProduceData) -> None:
        data, context = wanted.records, self.context
        answer = self.answers[key] = Answer(index=wanted.index, base_offset=-1)
        if len(data) > records.MAGIC_AT and data[records.MAGIC_AT] == records.MAGIC:
            if self.release.message_format < records.MAGIC:
                answer.error_code = int(Errors.CORRUPT_MESSAGE)
            else:
                self.batches[key] = [bytearray(data)]
            return
        try:
            partition = context.broker.partitions.get(topic, wanted.index)
            bytes_max = partition.open_log().settings.max_message_bytes
            is_before = self.release.message_format < records.MAGIC
            several = bytes_max if is_before else None
            self.batches[key] = await work_out(
                context.broker.turn, len(data), lambda: newer(data, bytes_max, several, not is_before)
            )
        except ApiError as error:
            context.broker.limits.note(error, f"{topic}-{wanted.index}")
            answer.error_code = error.code

    async def _append_round(self) -> bool:
        """Appends the next batch of each partition; returns whether one failed."""
        r, topics, keys = messages.ProduceRequest, [], []
        for place, topic in enumerate(self.request.topic_data):
            parts = [
                (place, index, wanted)
                for index, wanted in enumerate(topic.partition_data)
                if self.batches.get((place, index))
            ]
            if parts:
                topics.append(
                    r.TopicProduceData(
                        name=topic.name,
                        partition_data=[
                            r.PartitionProduceData(index=wanted.index, records=self.batches[at, index].pop(0))
                            for at, index, wanted in parts
                        ],
                    )
                )
                keys += [(at, index) for at, index, _ in parts]
        round_ = r(acks=self.request.acks, timeout_ms=self.request.timeout_ms, topic_data=topics)
        outcome: messages.ProduceResponse | Silence = await outcome_of(self.handle(self.context, round_))
        if isinstance(outcome, Silence):
            return outcome is CLOSE
        found = [answer for topic in outcome.responses for answer in topic.partition_responses]
        for key, answer in zip(keys, found, strict=True):
            if self.answers[key].base_offset < 0 or answer.error_code:
                self.answers[key] = answer
            if answer.error_code:
                self.batches[key].clear()
        return any(answer.error_code for answer in found)

    def _response(self) -> messages.ProduceResponse:
        r = messages.ProduceResponse
        return r(
            responses=[
                r.TopicProduceResponse(
                    name=topic.name,
                    partition_responses=[self.answers[place, index] for index in range(len(topic.partition_data))],
                )
                for place, topic in enumerate(self.request.topic_data)
            ]
        )
