"""A request of which a trace keeps no records says the same as the whole request."""

from __future__ import annotations

import pytest
from ottla.broker.lab.traces.client import START_BYTES, without_records
from ottla.broker.lab.traces.recording import filled
from ottla.protocol import codec, headers
from ottla.protocol import messages as m
from ottla.verdict.events import BatchHead, batch_head

from ..support.ask import batch
from ..support.wire import request_frame

LENGTH = 4
LARGE = batch(b"x" * 9000, producer_id=7, base_sequence=3)


def heads(message: m.ProduceRequest) -> list[BatchHead | None]:
    return [batch_head(one.records) for topic in message.topic_data for one in topic.partition_data]


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize(
    ("records", "topic"),
    [
        ([LARGE], "orders"),
        ([LARGE], "t" * 249),
        ([LARGE, None, batch(b"y", producer_id=8), b"z" * 61, b"", b"z" * 62], "orders"),
        ([b""], "orders"),
        ([None], "orders"),
    ],
)
def test_the_heads_of_its_records_and_all_else_are_kept(version: int, records: list[bytes | None], topic: str) -> None:
    r = m.ProduceRequest
    parts = [r.PartitionProduceData(index=index, records=one) for index, one in enumerate(records)]
    made = r(
        transactional_id="id", topic_data=[r.TopicProduceData(name=topic, topic_id=b"\1" * 16, partition_data=parts)]
    )
    frame = memoryview(request_frame("Produce", version, made))[LENGTH:]
    start = headers.client_id_of(headers.request_header_version("ProduceRequest", version), frame)[1]
    whole = codec.parse("ProduceRequest", version, frame, start)
    body, holes = without_records("ProduceRequest", version, whole, frame)
    found = filled(body, holes)
    assert (len(found), len(body) <= START_BYTES) == (len(frame), True)
    assert heads(codec.parse("ProduceRequest", version, found, start)) == heads(whole)
