"""Produce of an emulated release: message sets of versions 0 and 1 (versions 0 to 2), and topics that have them.

A topic's messages have the version that `message.format.version` says, which is the release's own where nothing is set.
What a producer sent in another version is converted: down or to another of the two by `appending`, up to record batches
here, which the usual handler appends. With acks=all the reply waits as usual; 0.8.2 knows other numbers of
acknowledgements too: it waits for as many replicas.

An empty message set is accepted and has no offset, as in Kafka. What is checked of messages in a compressed one is the
release's (`Release.checks`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol import messages, records
from ...protocol.conversion import newer
from ...protocol.errors import ApiError
from ..net.api import Api, Handler
from ..net.context import Context
from ..net.produce_waits import Wait, wait
from ..replies import CLOSE, NO_REPLY, Silence
from .appending import append
from .outcomes import outcome_of, work_out
from .releases import Release

BATCHES_SINCE = 3
Key = tuple[int, int]  # of a partition: its topic's and its own position in the request
Answer = messages.ProduceResponse.PartitionProduceResponse


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    async def emulated(context: Context, request: messages.ProduceRequest) -> messages.ProduceResponse | Silence:
        of_log = context.broker.settings.of_log
        if context.version >= BATCHES_SINCE and (
            not release.is_before(4, 0)
            or all(of_log(one.name).message_format == records.MAGIC for one in request.topic_data)
        ):
            outcome: messages.ProduceResponse | Silence = await outcome_of(handle(context, request))
            return outcome
        return await _Producing(handle, release, context, request).answered()

    return emulated


class _Producing:
    """One request."""

    def __init__(self, handle: Handler, release: Release, context: Context, request: messages.ProduceRequest) -> None:
        self.handle = handle
        self.release = release
        self.context = context
        self.request = request
        self.answers: dict[Key, Answer] = {}
        self.batches: dict[Key, bytearray] = {}
        self.waits: list[Wait] = []

    async def answered(self) -> messages.ProduceResponse | Silence:
        request = self.request
        for topic in request.topic_data:
            for wanted in topic.partition_data:  # the connection uses its buffer again while the handler waits
                wanted.records = bytes(wanted.records or b"")
        for place, topic in enumerate(request.topic_data):
            for index, wanted in enumerate(topic.partition_data):
                await self._take((place, index), topic.name, wanted)
        failed = any(answer.error_code for answer in self.answers.values())
        if any(self.batches.values()) and not (failed and request.acks == 0):
            failed = await self._append_batches() or failed
        if request.acks == 0:
            return CLOSE if failed else NO_REPLY
        self.context.broker.turn.settle_moves()
        waits = [one for one in self.waits if one[0].high_watermark < one[1]]
        if not waits:
            return self._response()
        return await outcome_of(wait(self.context, self._response(), waits, request.timeout_ms))

    async def _take(self, key: Key, topic: str, wanted: messages.ProduceRequest.PartitionProduceData) -> None:
        """Appends what a partition gets if its topic has message sets, else makes batches of it."""
        data, context, acks = wanted.records, self.context, self.request.acks
        answer = self.answers[key] = Answer(index=wanted.index, base_offset=-1)
        try:
            partition = context.broker.partitions.get(topic, wanted.index)
            settings = partition.open_log().settings
            if settings.message_format < records.MAGIC:
                end = await append(context, self.release, partition, data, acks, answer)
                if end is not None:
                    self.waits.append((partition, end, answer))
            elif len(data) > records.MAGIC_AT and data[records.MAGIC_AT] == records.MAGIC:
                self.batches[key] = bytearray(data)
            else:
                self.batches[key] = await work_out(
                    context.broker.turn,
                    len(data),
                    lambda: newer(data, settings.max_message_bytes, self.release.checks),
                )
        except ApiError as error:
            context.broker.limits.note(error, f"{topic}-{wanted.index}")
            answer.error_code = error.code

    async def _append_batches(self) -> bool:
        """Appends the batches by the usual handler; returns whether one failed."""
        r, topics, keys = messages.ProduceRequest, [], []
        for place, topic in enumerate(self.request.topic_data):
            parts = []
            for index, wanted in enumerate(topic.partition_data):
                if batch := self.batches.get((place, index)):
                    parts.append(r.PartitionProduceData(index=wanted.index, records=batch))
                    keys.append((place, index))
            if parts:
                topics.append(r.TopicProduceData(name=topic.name, partition_data=parts))
        request = self.request
        asked = r(
            transactional_id=request.transactional_id,
            acks=request.acks,
            timeout_ms=request.timeout_ms,
            topic_data=topics,
        )
        outcome: messages.ProduceResponse | Silence = await outcome_of(self.handle(self.context, asked))
        if isinstance(outcome, Silence):
            return outcome is CLOSE
        found = [answer for topic in outcome.responses for answer in topic.partition_responses]
        self.answers.update(zip(keys, found, strict=True))
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
