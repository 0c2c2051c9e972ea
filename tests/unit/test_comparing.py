"""Comparing two brokers: ids that stand for each other, differences by path, rules of what may differ."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.protocol import codec, records, schema
from ottla.protocol import messages as m
from ottla.protocol.structs import Struct

from ottla.comparing import rules
from ottla.comparing.differences import ABSENT, Difference, differences
from ottla.comparing.identities import KINDS, MEMBER, PRODUCER, PRODUCER_EPOCH, Identities, fields_of, translate

from ..support.generate import Generator

Metadata = m.MetadataResponse
RESPONSES = [names["response"] for names in schema.index()["apis"].values()]
T1, T2, T3 = (bytes(range(first, first + 16)) for first in (1, 50, 100))


def metadata(topic_id: bytes = T1, node: int = 1, error: int = 0, epoch: int = 3) -> Any:
    partition = Metadata.MetadataResponsePartition(
        partition_index=0, leader_id=node, leader_epoch=epoch, replica_nodes=[node], isr_nodes=[node]
    )
    topic = Metadata.MetadataResponseTopic(name="orders", topic_id=topic_id, error_code=error, partitions=[partition])
    other = Metadata.MetadataResponseTopic(name="bills", topic_id=topic_id[::-1])
    broker = Metadata.MetadataResponseBroker(node_id=node, host="a", port=9000 + node)
    return Metadata(brokers=[broker], controller_id=node, cluster_id="c", topics=[topic, other])


def test_ids_are_learned_and_applied() -> None:
    ids = Identities()
    found = differences(metadata(), metadata(T2, node=7, epoch=5), ids)
    assert [one.path for one in found] == ["brokers[1].port"]
    request = m.FetchRequest(
        topics=[
            m.FetchRequest.FetchTopic(
                topic_id=T1, partitions=[m.FetchRequest.FetchPartition(partition=0, current_leader_epoch=3)]
            )
        ]
    )
    assert translate(request, ids)
    (topic,) = request.topics
    assert (topic.topic_id, topic.partitions[0].current_leader_epoch) == (T2, 5)
    assert not translate(m.FetchRequest(), ids)
    by_name = m.ListOffsetsRequest(
        topics=[
            m.ListOffsetsRequest.ListOffsetsTopic(
                name="orders",
                partitions=[m.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, current_leader_epoch=3)],
            )
        ]
    )
    assert translate(by_name, ids)
    assert by_name.topics[0].partitions[0].current_leader_epoch == 5


def test_an_id_that_changes_at_one_broker_is_a_difference() -> None:
    ids = Identities()
    assert not differences(metadata(), metadata(T2), ids)
    assert not differences(metadata(), metadata(T2), ids)
    found = differences(metadata(), metadata(T3), ids)
    assert [one.path for one in found] == ["topics[orders].topic_id", "topics[bills].topic_id"]


def test_lists_are_compared_by_name_and_what_is_missing_is_named() -> None:
    a, b = metadata(), metadata()
    b.topics.reverse()
    assert not differences(a, b, Identities())
    missing = b.topics.pop(0)
    assert differences(a, b, Identities()) == [Difference("topics[bills]", missing, ABSENT)]
    assert differences(b, a, Identities()) == [Difference("topics[bills]", ABSENT, missing)]


def test_a_member_id_has_the_same_shape() -> None:
    ids = Identities()
    one, other = (f"rdkafka-{name * 8}-aaaa-aaaa-aaaa-aaaaaaaaaaaa" for name in "ab")
    a, b = m.JoinGroupResponse(member_id=one), m.JoinGroupResponse(member_id=other)
    assert not differences(a, b, ids)
    assert ids.of_b(MEMBER, {}, one) == other
    assert [d.path for d in differences(m.JoinGroupResponse(member_id="x"), b, Identities())] == ["member_id"]


def test_the_latest_epoch_counts() -> None:
    ids, context = Identities(), {"group_id": "g", "member_id": "m"}
    for a, b in ((1, 4), (2, 4), (2, 5)):
        one, other = (m.ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=epoch) for epoch in (a, b))
        assert not differences(one, other, ids, context)
    beat = m.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=2)
    assert translate(beat, ids)
    assert beat.member_epoch == 5
    joining = m.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1)
    assert not translate(joining, ids)


def batch(producer_id: int, value: bytes = b"v") -> bytes:
    template = records.Template(producer_id=producer_id, producer_epoch=0, base_sequence=0)
    return bytes(records.encode([records.Record(value=value)], template))


def produce(data: bytes) -> Any:
    partition = m.ProduceRequest.PartitionProduceData(index=0, records=data)
    return m.ProduceRequest(
        acks=-1, topic_data=[m.ProduceRequest.TopicProduceData(name="t", partition_data=[partition])]
    )


def test_batches_get_the_producer_of_the_other_broker_and_a_right_crc() -> None:
    ids = Identities()
    assert ids.match(PRODUCER, {}, 1000, 2000)
    assert ids.match(PRODUCER_EPOCH, {"producer_id": 1000}, 0, 3)
    request = produce(batch(1000) + batch(5))
    assert translate(request, ids)
    data = request.topic_data[0].partition_data[0].records
    first, second = (at.header for at in records.batches(data))
    assert (first.producer_id, first.producer_epoch, second.producer_id) == (2000, 3, 5)
    assert first.crc == records.computed_crc(data, 0, first.size)
    assert not translate(produce(b"no batch"), ids)


def test_records_are_compared_one_by_one() -> None:
    ids = Identities()
    partition = m.FetchResponse.PartitionData(partition_index=0)
    replies = []
    for data in (batch(1, b"a"), batch(2, b"b")):
        partition = m.FetchResponse.PartitionData(partition_index=0, records=data)
        topic = m.FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
        replies.append(m.FetchResponse(responses=[topic]))
    assert differences(replies[0], replies[1], ids) == [
        Difference("responses[t].partitions[0].records[0].value", b"a", b"b")
    ]


def plain_places(message: Any) -> list[tuple[Any, str]]:
    """Every field of a message, at any depth, that holds a number, a flag or a text and names nothing."""
    found = []
    for name, value in fields_of(message) or []:
        if isinstance(value, Struct):
            found += plain_places(value)
        elif isinstance(value, list):
            for one in value:
                found += plain_places(one) if isinstance(one, Struct) else []
        elif name not in KINDS and isinstance(value, int | str | float):
            found.append((message, name))
    return found


def changed(value: Any) -> Any:
    return (not value) if isinstance(value, bool) else value + "!" if isinstance(value, str) else value // 2 + 1


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(RESPONSES), st.integers(0, 2**32))
def test_a_planted_difference_is_found(name: str, seed: int) -> None:
    chance = random.Random(seed)
    version = chance.randint(schema.load(name).valid.low, schema.load(name).valid.high)
    a = Generator(schema.load(name), version, chance).message()
    data = bytes(codec.build(name, version, a))
    a, b = codec.parse(name, version, data), codec.parse(name, version, data)
    assert not differences(a, b, Identities())
    places = plain_places(b)
    if not places:
        return
    struct, field = chance.choice(places)
    before = getattr(struct, field)
    setattr(struct, field, changed(before))
    if getattr(struct, field) != before:
        found = differences(a, b, Identities())
        assert found
        everything = rules.Rules([rules.Rule("*", "*", "all may differ")])
        assert not list(everything.left("Any", found))
        assert everything.hidden.total() == len(found)


def test_rules_hide_what_they_say_and_count_it() -> None:
    usual = rules.read(rules.LIVE)
    found = [
        Difference("brokers[1].host", "a", "b"),
        Difference("topics[t].partitions[0].error_code", 0, 3),
        Difference("throttle_time_ms", 0, 7),
        Difference("throttle_time_ms", 3, 7),
    ]
    left = list(usual.left("Metadata", found))
    assert [one.path for one in left] == ["topics[t].partitions[0].error_code", "throttle_time_ms"] or left == found[
        1:2
    ]
    beat = Difference("error_code", 0, 27)
    assert not list(usual.left("Heartbeat", [beat]))
    assert list(usual.left("SyncGroup", [beat])) == [beat]
    for kind in ("Consumer", "Share", "Streams"):
        assert not list(usual.left(f"{kind}GroupHeartbeat", [Difference("heartbeat_interval_ms", 5000, 100)]))
    assert list(usual.left("Heartbeat", [Difference("error_code", 0, 25)]))
    names = rules.Rule("DescribeConfigs", "*configs[*listener*", "own")
    assert names.hides("DescribeConfigs", Difference("results[1].configs[advertised.listeners].value", "a", "b"))
    assert not names.hides("DescribeConfigs", Difference("results[1].configs[log.retention.ms].value", "a", "b"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- {api: X, path: y}", "rule 1: reason: a text is needed"),
        ("- {api: X, path: y, reason: z, when: now}", "rule 1: unknown key when"),
        ("- {api: X, path: y, reason: z, same: color}", "rule 1: same: one of presence"),
        ("- {api: X, path: y, reason: z, errors: [OOPS]}", "rule 1: errors: a list of names"),
        ("{}", "not a list"),
        ("- [", "while parsing"),
        ("- 7", "rule 1: not a table"),
    ],
)
def test_a_bad_file_of_rules_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    with pytest.raises(rules.RulesError, match=words):
        rules.read(file)


def test_rules_of_a_user_come_first(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("- {api: Metadata, path: '*.rack', reason: ours}")
    found = rules.read(file)
    assert not list(found.left("Metadata", [Difference("brokers[1].rack", "x", None)]))
    assert [rule.reason for rule in found.hidden] == ["ours"]
