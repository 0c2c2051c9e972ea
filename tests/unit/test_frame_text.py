"""Frames as JSON text: the same as the text of the message that is parsed, or nothing at all."""

from __future__ import annotations

import json
import random

import pytest
from ottla.broker.config.secrets import MASK, SENSITIVE, is_secret
from ottla.protocol import codec, schema
from ottla.protocol import messages as m
from ottla.protocol.frame_text import frame_text
from ottla.protocol.json_text import Masks, json_writer, may_have_secrets
from ottla.protocol.varints import UNREADABLE

from ..support.ask import batch, produce_message
from ..support.generate import Generator

MASKS = Masks(SENSITIVE, is_secret, MASK)
APIS = [name for one in schema.index()["apis"].values() for name in (one["request"], one["response"])]
MIXED = ("ProduceRequest", "FetchRequest", "FetchResponse", "MetadataResponse", "ConsumerGroupHeartbeatRequest",
         "ShareFetchResponse", "ApiVersionsResponse")  # fmt: skip
START = b"what is before"


def message_bytes(name: str, version: int, seed: int, present: float, *, tags: bool) -> bytes:
    made = Generator(schema.load(name), version, random.Random(seed), unknown_tags=tags, present=present)
    return bytes(codec.build(name, version, made.message()))


def test_the_text_is_that_of_the_parsed_message() -> None:
    written = 0
    for name in APIS:
        valid = schema.load(name).valid
        for version in {valid.low, valid.high}:
            text, write = frame_text(name, version, MASKS), json_writer(name, version, MASKS)
            data = message_bytes(name, version, version, 0.0, tags=False)
            try:
                found = text(START + data + b"more", len(START), ())
            except UNREADABLE:
                assert may_have_secrets(name, MASKS), name
            else:
                written += 1
                assert found == write(codec.parse(name, version, data)), name
    assert written > len(APIS)


@pytest.mark.parametrize("name", MIXED)
def test_what_is_null_tagged_or_cut_is_the_same_or_refused(name: str) -> None:
    version = schema.load(name).valid.high
    text, write = frame_text(name, version, MASKS), json_writer(name, version, MASKS)
    written = 0
    for seed in range(100):
        data = message_bytes(name, version, seed, 0.5, tags=True)
        try:
            found = text(data, 0, ())
        except UNREADABLE:
            continue
        written += 1
        assert found == write(codec.parse(name, version, data))
        cut = random.Random(seed).randrange(len(data))
        with pytest.raises(UNREADABLE):
            text(data[:cut], 0, ())
    assert written >= 5


@pytest.mark.parametrize("version", [4, 11, 12, 17])
def test_records_that_are_not_at_hand_are_written_by_their_size(version: int) -> None:
    text = frame_text("FetchResponse", version, MASKS)
    r = m.FetchResponse
    sizes, data = (300, 61, 5), bytearray()
    records = [b"x" * size for size in sizes]
    parts = [r.PartitionData(partition_index=n, records=one) for n, one in enumerate(records)]
    own = {"topic": "orders"} if version < 13 else {"topic_id": b"\x01" * 16}
    message = r(responses=[r.FetchableTopicResponse(partitions=parts, **own)])
    data = codec.build("FetchResponse", version, message)
    holes = []
    for one in records:
        place = data.index(one)
        holes.append((place, len(one)))
        del data[place : place + len(one)]
    (topic,) = json.loads(text(bytes(data), 0, holes))["responses"]
    assert [one["records"] for one in topic["partitions"]] == [{"bytes": size} for size in sizes]
    for wrong in (holes[:2], [*holes, (len(data) + 1, 1)], [(place, size + 1) for place, size in holes]):
        with pytest.raises(UNREADABLE):
            text(bytes(data), 0, wrong)


def test_records_say_what_their_first_batch_is() -> None:
    data = batch(b"x", b"y", producer_id=7, producer_epoch=1, base_sequence=3)
    for records in (data, data[:61], data[:60], bytes(100), b"", None):
        message = produce_message("orders", records)
        frame = bytes(codec.build("ProduceRequest", 9, message))
        expected = json_writer("ProduceRequest", 9, MASKS)(codec.parse("ProduceRequest", 9, frame))
        assert frame_text("ProduceRequest", 9, MASKS)(frame, 0, ()) == expected


def test_a_message_without_records_has_no_holes() -> None:
    data = bytes(codec.build("HeartbeatRequest", 4, m.HeartbeatRequest(group_id="g")))
    assert json.loads(frame_text("HeartbeatRequest", 4, MASKS)(data, 0, ()))["group_id"] == "g"
    with pytest.raises(UNREADABLE):
        frame_text("HeartbeatRequest", 4, MASKS)(data, 0, [(3, 5)])
