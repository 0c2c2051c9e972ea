"""Frames whose records are not at hand say the same as those that have them."""

from __future__ import annotations

import pytest
from ottla.broker.lab.cut_frames import request_of
from ottla.broker.lab.traces.recorder import _without_records as without_records
from ottla.protocol import messages as m
from ottla.protocol.errors import MalformedMessage
from ottla.verdict.events import batch_head

from ..support.ask import batch
from ..support.wire import request_frame

LENGTH = 4
RECORDS = (
    batch(b"x" * 900, producer_id=7, base_sequence=3),
    None,
    batch(b"y", producer_id=8),
    b"z" * 61,
    b"",
    b"z" * 62,
)


def frame(version: int) -> memoryview:
    r = m.ProduceRequest
    parts = [r.PartitionProduceData(index=index, records=records) for index, records in enumerate(RECORDS)]
    message = r(topic_data=[r.TopicProduceData(name="orders", topic_id=b"\1" * 16, partition_data=parts)])
    return memoryview(request_frame("Produce", version, message))[LENGTH:]


@pytest.mark.parametrize("version", range(3, 14))
def test_of_records_that_are_left_out_the_head_and_the_size_are_known(version: int) -> None:
    cut, holes = without_records("ProduceRequest", version, frame(version))
    assert len(cut) + sum(size for _, size in holes) == len(frame(version))
    assert len(holes) == 3
    message = request_of("ProduceRequest", version, bytes(cut), holes)
    found = [batch_head(one.records) for one in message.topic_data[0].partition_data]  # type: ignore[attr-defined]
    assert found == [batch_head(records) for records in RECORDS]


def test_records_of_another_length_are_no_request() -> None:
    cut, holes = without_records("ProduceRequest", 9, frame(9))
    place, size = holes[0]
    with pytest.raises(MalformedMessage, match="records of another length"):
        request_of("ProduceRequest", 9, bytes(cut), [(place, size + 1), *holes[1:]])
