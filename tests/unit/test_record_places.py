"""Where a message has its records: the same as where the codec finds them, or nothing at all."""

from __future__ import annotations

import random

import pytest
from ottla.protocol import codec, schema
from ottla.protocol import messages as m
from ottla.protocol.record_places import record_places
from ottla.protocol.varints import UNREADABLE

from ..support.generate import Generator

START = b"what is before"


def produce_frames(version: int) -> list[bytes]:
    found = []
    for seed in range(40):
        made = Generator(schema.load("ProduceRequest"), version, random.Random(seed), unknown_tags=False, present=0.5)
        found.append(bytes(codec.build("ProduceRequest", version, made.message())))
    return found


def records_of(message: m.ProduceRequest) -> list[bytes]:
    every = (partition.records for topic in message.topic_data for partition in topic.partition_data)
    return [bytes(one) for one in every if one]


@pytest.mark.parametrize("version", range(3, 14))
def test_all_records_of_a_request_are_found(version: int) -> None:
    places, found = record_places("ProduceRequest", version), 0
    for frame in produce_frames(version):
        expected = records_of(codec.parse("ProduceRequest", version, frame))
        data = START + frame
        assert [data[at : at + size] for at, size in places(data, len(START))] == expected
        found += len(expected)
        with pytest.raises(UNREADABLE):
            places(data[:-1], len(START))
    assert found >= 20


def test_records_of_each_partition_are_found_whatever_their_size() -> None:
    r = m.ProduceRequest
    sizes = (1, 61, 127, 128, 20_000)
    parts = [r.PartitionProduceData(index=n, records=b"x" * size) for n, size in enumerate(sizes)]
    topics = [r.TopicProduceData(name="t" * 200, partition_data=parts), r.TopicProduceData(partition_data=parts[:1])]
    for version in (3, 9):
        data = bytes(codec.build("ProduceRequest", version, r(transactional_id="id", topic_data=topics)))
        assert [size for _, size in record_places("ProduceRequest", version)(data, 0)] == [*sizes, 1]


def test_a_message_with_tagged_fields_is_not_read() -> None:
    data = bytes(codec.build("ProduceRequest", 9, m.ProduceRequest(topic_data=[])))
    assert data[-1] == 0
    with pytest.raises(UNREADABLE):
        record_places("ProduceRequest", 9)(data[:-1] + b"\1\0\0", 0)
