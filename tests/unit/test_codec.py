"""The codec: compiled equals checked, errors have paths, nothing believes a length."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from ottla.protocol import codec, messages, schema
from ottla.protocol.emit import PAUSE_ELEMENTS
from ottla.protocol.errors import MalformedMessage, TooManyElements, UnsupportedVersion
from ottla.protocol.message import Message
from ottla.protocol.trees import tree
from ottla.protocol.wire import Array, Wire

from ..support.generate import Generator, all_schemas
from ..support.seeds import seeds
from ..support.steps import result_of
from ..support.transcripts import plain

SEED = 20261121
EACH = 3


def generated(name: str, version: int, count: int) -> list[Any]:
    chance = random.Random(f"{SEED} {name} {version}")
    generator = Generator(schema.load(name), version, chance)
    return [generator.message() for _ in range(count)]


SHARES = 5  # of all schemas and versions


def test_there_are_many_schemas_and_versions() -> None:
    assert len(all_schemas()) > 600


@pytest.mark.parametrize("share", seeds(SHARES, quick=1))
def test_compiled_and_checked_are_the_same_for_every_schema_and_version(share: int) -> None:
    for name, version in all_schemas()[share::SHARES]:
        for message in generated(name, version, EACH):
            data = bytes(codec.build(name, version, message))
            assert data == codec.build_checked(name, version, message), (name, version)
            for view in (data, memoryview(data)):
                assert codec.reader(name, version)(view, 0) == (message, len(data)), (name, version)
                assert codec.counting_reader(name, version)(view, 0, len(data)) == (message, len(data)), (name, version)
            assert codec.parse_checked(name, version, data) == (message, len(data))
            if name.endswith("Request"):
                assert result_of(codec.parse_in_steps(name, version, data, 0, len(data))) == message, (name, version)


def test_a_long_message_is_read_in_steps_of_elements_at_all_levels() -> None:
    r = messages.OffsetCommitRequest
    parts = [r.OffsetCommitRequestPartition(partition_index=index) for index in range(999)]
    message = r(group_id="g", topics=[r.OffsetCommitRequestTopic(name="t", partitions=parts) for _ in range(5)])
    data = bytes(codec.build("OffsetCommitRequest", 8, message))
    assert len(list(codec.parse_in_steps("OffsetCommitRequest", 8, data))) == 5 * 1000 // PAUSE_ELEMENTS
    with pytest.raises(TooManyElements):
        list(codec.parse_in_steps("OffsetCommitRequest", 8, data, 0, 3000))
    with pytest.raises(MalformedMessage, match="after the first 2000 elements"):
        list(codec.parse_in_steps("OffsetCommitRequest", 8, data[:-1], 0, 1 << 20))


def _arrays(wire: Wire | None) -> Iterator[Array]:
    if isinstance(wire, Array):
        yield wire
        yield from _arrays(wire.item)
    elif isinstance(wire, Message):
        for member in (*wire.plain, *wire.tagged):
            yield from _arrays(member.wire)


def test_an_element_takes_a_byte_at_least() -> None:
    """So that a message of fewer bytes than it may have elements need not be counted."""
    found = [array for name, version in all_schemas() for array in _arrays(tree(name, version))]
    assert len(found) > 1000
    assert all(array.item.smallest > 0 for array in found)


def test_short_messages_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(codec.build("MetadataRequest", 12, messages.MetadataRequest(topics=[])))
    monkeypatch.setattr(codec, "counting_reader", None)
    assert codec.parse("MetadataRequest", 12, data, 0, len(data)).topics == []
    with pytest.raises(MalformedMessage):
        codec.parse("MetadataRequest", 12, data[:-1], 0, len(data))


@pytest.mark.parametrize("share", seeds(SHARES, quick=1))
def test_every_truncation_is_an_error_and_never_a_value(share: int) -> None:
    for name, version in all_schemas()[share::SHARES]:
        if name in ("ResponseHeader",) or not schema.load(name).root.fields:
            continue
        message = generated(name, version, 1)[0]
        data = bytes(codec.build(name, version, message))
        cuts = range(len(data)) if len(data) < 60 else sorted(random.Random(SEED).sample(range(len(data)), 40))
        for cut in cuts:
            with pytest.raises(MalformedMessage):
                codec.parse(name, version, data[:cut])


@pytest.mark.parametrize("share", seeds(SHARES, quick=1))
def test_flipped_bytes_give_a_value_or_an_error_in_bounded_memory(share: int) -> None:
    chance = random.Random(SEED + share)
    tracemalloc.start()
    for name, version in chance.sample(all_schemas(), 150 // SHARES):
        data = bytearray(codec.build(name, version, generated(name, version, 1)[0]))
        for _ in range(20):
            changed = bytearray(data)
            for _ in range(chance.randint(1, 4)):
                if changed:
                    changed[chance.randrange(len(changed))] = chance.choice(
                        (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
                    )
            try:
                fast: Any = codec.parse(name, version, bytes(changed))
            except MalformedMessage:
                fast = None
            try:
                checked: Any = codec.parse_checked(name, version, bytes(changed))[0]
            except MalformedMessage:
                checked = None
            # as text: NaN does not equal itself
            assert repr(plain(fast)) == repr(plain(checked)), (
                name,
                version,
                bytes(changed),
            )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 << 20


def test_an_error_names_the_field() -> None:
    request = messages.OffsetCommitRequest(group_id="g", member_id="m")
    topic = messages.OffsetCommitRequest.OffsetCommitRequestTopic(name="t")
    topic.partitions = [messages.OffsetCommitRequest.OffsetCommitRequestPartition(committed_metadata="x")] * 2
    request.topics = [topic]
    data = bytes(codec.build("OffsetCommitRequest", 9, request))
    with pytest.raises(MalformedMessage, match=r"topics\[0\]\.partitions\[1\]\.committed_metadata"):
        codec.parse("OffsetCommitRequest", 9, data[:-4])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x7f\xff\xff\xff", "array of 2147483647 elements in 0 bytes"),
        (b"\xff\xff\xff\xfe", "array of length -2"),
        (b"\0\0\0\1\xff\xff", "string of length -1"),
        (b"\0\0\0\1\0\5abc", "needs 5 bytes where 3 are left"),
    ],
)
def test_lengths_are_held_against_what_is_there(data: bytes, why: str) -> None:
    with pytest.raises(MalformedMessage, match=why):
        codec.parse("MetadataRequest", 1, data)


def test_a_varint_that_never_ends_is_an_error() -> None:
    with pytest.raises(MalformedMessage):
        codec.parse("MetadataRequest", 9, b"\xff" * 30)


def test_a_field_that_a_version_lacks_may_only_hold_its_default() -> None:
    fetch = messages.FetchRequest(max_wait_ms=1, session_id=7)
    codec.build("FetchRequest", 4, fetch)  # the session id is ignorable
    forgotten = messages.FetchRequest(forgotten_topics_data=[messages.FetchRequest.ForgottenTopic()])
    with pytest.raises(MalformedMessage, match="forgotten_topics_data"):
        codec.build("FetchRequest", 4, forgotten)


@pytest.mark.parametrize(
    ("version", "change"),
    [(9, {"name": 5}), (9, {"name": None}), (12, {"topic_id": b"short"}), (12, {"name": "x" * 40_000})],
)
def test_values_that_do_not_fit_are_refused_with_their_path(version: int, change: dict[str, Any]) -> None:
    topic = messages.MetadataRequest.MetadataRequestTopic(**{"name": "t", **change})
    with pytest.raises(MalformedMessage, match=r"topics\[0\]\."):
        codec.build("MetadataRequest", version, messages.MetadataRequest(topics=[topic]))


def test_unknown_tags_are_kept_and_written_back_in_order() -> None:
    request = messages.ApiVersionsRequest(client_software_name="a", client_software_version="b")
    request.unknown_tags = [(900, b"later"), (7, b"early")]
    data = bytes(codec.build("ApiVersionsRequest", 3, request))
    read = codec.parse("ApiVersionsRequest", 3, data)
    assert read.unknown_tags == [(7, b"early"), (900, b"later")]
    assert bytes(codec.build("ApiVersionsRequest", 3, read)) == data


def test_tags_in_any_order_are_read_as_kafka_reads_them() -> None:
    data = b"\x02a\x02b" + b"\x02" + b"\x09\x01x" + b"\x05\x01y"
    assert codec.parse("ApiVersionsRequest", 3, data).unknown_tags == [(9, b"x"), (5, b"y")]


def test_records_are_views_of_the_message_and_everything_else_is_copied() -> None:
    data = bytearray(b"\xff\xff\0\1\0\0\0\1" + b"\0\0\0\1\0\1t" + b"\0\0\0\1\0\0\0\0" + b"\0\0\0\4abcd")
    request = codec.parse("ProduceRequest", 3, memoryview(data))
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    data[-1] = ord("!")
    assert bytes(records) == b"abc!"


def test_parts_that_are_no_bytes_are_noted_with_their_place() -> None:
    class Slice:
        def __len__(self) -> int:
            return 1000

    part: Any = Slice()
    data = messages.FetchResponse.PartitionData(records=part)
    response = messages.FetchResponse(
        responses=[messages.FetchResponse.FetchableTopicResponse(topic="t", partitions=[data])]
    )
    out = bytearray()
    ((place, found),) = codec.build_parts("FetchResponse", 11, response, out)
    assert found is part
    assert out[place - 4 : place] == (1000).to_bytes(4, "big")


def test_a_version_that_a_schema_lacks_is_refused() -> None:
    with pytest.raises(UnsupportedVersion):
        codec.parse("MetadataRequest", 99, b"")


def test_construct_compiles_a_message_to_the_same_functions() -> None:
    message = messages.ApiVersionsRequest(client_software_name="a", client_software_version="b")
    data = bytes(codec.build("ApiVersionsRequest", 3, message))
    compiled = tree("ApiVersionsRequest", 3).compile()
    assert compiled.parse(data) == message
    assert compiled.build(message) == data


def test_messages_are_described_for_people() -> None:
    request = messages.MetadataRequest(
        topics=[messages.MetadataRequest.MetadataRequestTopic(name="orders", topic_id=b"\1" * 16)]
    )
    data = bytes(codec.build("MetadataRequest", 12, request))
    text = codec.explain("MetadataRequest", 12, data)
    assert '"name": "orders"' in text
    assert '"topic_id": "01010101010101010101010101010101"' in text
    assert (
        repr(request)
        == "MetadataRequest(topics=[MetadataRequestTopic(topic_id=" + repr(b"\1" * 16) + ", name='orders')])"
    )


def test_a_struct_that_a_message_did_not_bring_is_its_own() -> None:
    """Made when it is asked for, and equal to one that was made with its message."""
    r = messages.FetchResponse
    made = r(
        responses=[
            r.FetchableTopicResponse(topic="t", partitions=[r.PartitionData(partition_index=n) for n in range(2)])
        ]
    )
    first, second = (
        codec.parse("FetchResponse", 12, bytes(codec.build("FetchResponse", 12, made))).responses[0].partitions
    )
    assert first == made.responses[0].partitions[0] == first
    first.current_leader.leader_id = 5
    assert (first.current_leader.leader_id, second.current_leader.leader_id) == (5, -1)
    assert first != made.responses[0].partitions[0]
    assert "leader_id=5" in repr(first)
    assert "current_leader" not in repr(second)
    with pytest.raises(AttributeError, match="PartitionData has no colour"):
        _ = first.colour
