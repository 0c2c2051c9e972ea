"""What follows from a change of the metadata: once per commit, and only for what changed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from ottla.broker.controller.watchers import STEP_CHANGES
from ottla.broker.replica.partition import Partition
from ottla.broker.replica.replica_manager import ReplicaManager
from ottla.coordinator.metadata.delta import MetadataDelta, RemovedTopic
from ottla.coordinator.metadata.state import BROKER, GROUP, TOPIC, MetadataState
from ottla.protocol import messages as m
from ottla.protocol.config_def import ConfigKey
from ottla.protocol.errors import Errors

from ..support.ask import batch, produce_message
from ..support.topic_world import create
from ..support.world import World

TOPICS, EACH = 30, 3


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the partitions that are configured and the values that are parsed."""
    counts: Counter[str] = Counter()
    configure, parse = ReplicaManager._configure, ConfigKey.parse

    def counted_configure(self: ReplicaManager, partition: Partition) -> None:
        counts[partition.topic] += 1
        configure(self, partition)

    def counted_parse(self: ConfigKey, text: str | None) -> Any:
        counts["parsed"] += 1
        return parse(self, text)

    monkeypatch.setattr(ReplicaManager, "_configure", counted_configure)
    monkeypatch.setattr(ConfigKey, "parse", counted_parse)
    return counts


def world_with_topics() -> World:
    world = World()
    for n in range(TOPICS):
        assert create(world, f"t{n}", EACH, retention_ms="1000") == 0
    return world


def alter(world: World, *changes: tuple[int, str, str, str | None]) -> list[int]:
    r = m.IncrementalAlterConfigsRequest
    resources: dict[tuple[int, str], Any] = {}
    for kind, name, key, value in changes:
        resource = resources.setdefault((kind, name), r.AlterConfigsResource(resource_type=kind, resource_name=name))
        resource.configs.append(r.AlterableConfig(name=key, config_operation=0, value=value))
    answer = world.ask("IncrementalAlterConfigs", 1, r(resources=list(resources.values())))
    return [one.error_code for one in answer.responses]


def test_a_topics_configuration_concerns_its_partitions_only(work: Counter[str]) -> None:
    world = world_with_topics()
    work.clear()
    assert alter(world, (TOPIC, "t3", "retention.ms", "5"), (TOPIC, "t3", "segment.ms", "7")) == [0]
    assert {name: count for name, count in work.items() if name != "parsed"} == {"t3": EACH}
    assert world.broker.partitions.get("t3", 1).open_log().settings.retention_ms == 5
    assert world.broker.partitions.get("t4", 1).open_log().settings.retention_ms == 1000


def test_partitions_are_configured_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    world, count = World(), 2 * STEP_CHANGES + 44
    assert create(world, "many", count) == 0
    monkeypatch.setattr(world.schedule, "soon", lambda call: world.schedule.later(1, call))
    done: Counter[int] = Counter()
    configure = ReplicaManager._configure

    def counted(self: ReplicaManager, partition: Partition) -> None:
        done[world.schedule.monotonic_ms()] += 1
        configure(self, partition)

    monkeypatch.setattr(ReplicaManager, "_configure", counted)
    assert alter(world, (TOPIC, "many", "retention.ms", "5")) == [0]
    assert list(done.values()) == [STEP_CHANGES, STEP_CHANGES, 44]


def test_a_groups_configuration_concerns_no_partition(work: Counter[str]) -> None:
    world = world_with_topics()
    work.clear()
    assert alter(world, (GROUP, "g", "consumer.session.timeout.ms", "50000")) == [0]
    assert {name: count for name, count in work.items() if name != "parsed"} == {}
    assert world.broker.settings.of_group("g", "consumer.session.timeout.ms") == 50_000


def test_a_brokers_configurations_concern_all_partitions_once(work: Counter[str]) -> None:
    world = world_with_topics()
    create(world, "plain", EACH)
    work.clear()
    assert alter(world, (BROKER, "", "log.segment.bytes", "2000000"), (BROKER, "", "log.flush.interval.ms", "9")) == [0]
    world.pass_ms(10_000)
    assert {name: count for name, count in work.items() if name != "parsed"} == dict.fromkeys(
        world.broker.image.topics, EACH
    )
    assert world.broker.partitions.get("plain", 0).open_log().settings.segment_bytes == 2_000_000


def test_what_settings_a_creation_costs_does_not_depend_on_the_topics_there_are(work: Counter[str]) -> None:
    world = World()
    counts = []
    for n in range(TOPICS):
        work.clear()
        assert (
            create(world, f"t{n}", 1, retention_ms="1", segment_ms="10", flush_ms="100", max_message_bytes="5000") == 0
        )
        counts.append((work["parsed"], sum(work.values()) - work["parsed"]))
    assert counts[-1] == counts[1]


def test_a_watcher_that_fails_holds_up_no_one(quiet: None) -> None:
    world = World()
    seen: list[list[str]] = []

    def broken(delta: MetadataDelta) -> None:
        raise RuntimeError

    world.broker.metadata.watch(broken)
    world.broker.metadata.watch(lambda delta: seen.append(list(delta.sized_topics())))
    assert create(world, "t") == 0
    assert world.broker.partitions.get("t", 0).log is not None
    assert seen == [["t"]]
    assert world.broker.metrics.bugs == 1


def test_a_watcher_that_failed_gets_the_changes_in_their_order(quiet: None) -> None:
    world = World()
    seen: list[str] = []
    failures = [RuntimeError(), RuntimeError()]

    def sometimes(delta: MetadataDelta) -> None:
        if failures:
            raise failures.pop()
        seen.extend(delta.created.values())

    world.broker.metadata.watch(sometimes)
    for name in ("a", "b", "c"):
        assert create(world, name) == 0
    assert seen == []
    world.pass_ms(3000)
    assert seen == ["a", "b", "c"]


def test_a_partition_that_could_not_be_removed_does_not_take_the_records_of_the_next_topic_of_its_name(
    quiet: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    assert create(world, "t") == 0
    before = world.broker.partitions.get("t", 0)
    monkeypatch.setattr(world.broker.replicas, "_remove", lambda partition: 1 // 0)
    world.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["t"], timeout_ms=10_000))
    assert create(world, "t") == 0
    assert world.broker.partitions.by_name["t", 0] is before
    message = produce_message("t", batch(b"x"))
    (answer,) = world.ask("Produce", 9, message).responses[0].partition_responses
    assert answer.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION
    monkeypatch.undo()
    world.pass_ms(3000)
    (answer,) = world.ask("Produce", 9, message).responses[0].partition_responses
    assert answer.error_code == 0
    assert world.broker.partitions.get("t", 0) is not before
    assert "t-0" in world.files.names("/data")


def topic_records(name: str, topic_id: bytes, partitions: int) -> list[Any]:
    each = [
        m.PartitionRecord(partition_id=i, topic_id=topic_id, replicas=[1], isr=[1], leader=1) for i in range(partitions)
    ]
    return [m.TopicRecord(name=name, topic_id=topic_id), *each]


def delta_of(image: MetadataState, *records: Any) -> MetadataDelta:
    delta = MetadataDelta(image)
    for record in records:
        delta.replay(record)
    delta.show()
    return delta


def test_a_delta_has_what_is_new_at_the_end_of_the_commit() -> None:
    image = MetadataState()
    first, second, third = (bytes([n]) * 16 for n in (1, 2, 3))
    made = delta_of(image, *topic_records("a", first, 2))
    assert (made.created, list(made.new_partitions)) == ({first: "a"}, [(first, 0), (first, 1)])

    def change(topic_id: bytes) -> Any:
        return m.PartitionChangeRecord(partition_id=1, topic_id=topic_id, leader=1)

    config = m.ConfigRecord(resource_type=TOPIC, resource_name="a", name="retention.ms", value="1")
    gone, late = m.RemoveTopicRecord(topic_id=first), m.RemoveTopicRecord(topic_id=third)
    found = delta_of(
        image,
        change(first),
        gone,
        *topic_records("a", second, 1),
        config,
        *topic_records("b", third, 5),
        change(third),
        late,
    )
    assert found.removed == [RemovedTopic("a", first, 2)]
    assert found.created == {second: "a"}
    assert list(found.new_partitions) == [(second, 0)]
    assert not found.changed_partitions
    assert list(found.sized_topics()) == ["a"]
    assert list(found.configs) == [(TOPIC, "a")]
    assert not found.changes_all_topics


def test_a_topic_made_again_in_the_commit_that_removed_it_is_the_new_one() -> None:
    world = World()
    create(world, "t", 3)
    before = world.broker.partitions.get("t", 2)
    topic_id = world.broker.image.topics["t"].id
    r = m.CreateTopicsRequest
    again = r(topics=[r.CreatableTopic(name="t", num_partitions=2, replication_factor=1)], timeout_ms=1000)
    delete = m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name="t")], timeout_ms=1000)
    answers = world.together(("DeleteTopics", 6, delete), ("CreateTopics", 7, again))
    world.pass_ms(10)
    assert [answers[0].reply.responses[0].error_code, answers[1].reply.topics[0].error_code] == [0, 0]
    assert before.log is None
    assert ("t", 2) not in world.broker.partitions.by_name
    assert world.broker.partitions.get("t", 1).open_log().topic_id == world.broker.image.topics["t"].id != topic_id
    assert alter(world, (TOPIC, "absent", "retention.ms", "5")) == [Errors.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_snapshot_has_records_of_all_tables_in_the_order_in_which_they_came() -> None:
    image = MetadataState()
    acls = [m.AccessControlEntryRecord(id=bytes([n]) * 16) for n in range(2)]
    credential = m.UserScramCredentialRecord(name="alice", mechanism=1)
    token = m.DelegationTokenRecord(token_id="t")
    quota = m.ClientQuotaRecord(
        entity=[m.ClientQuotaRecord.EntityData(entity_type="user", entity_name="alice")], key="k", value=1.0
    )
    node = m.RegisterControllerRecord(controller_id=1)
    for record in (node, acls[0], credential, acls[1], quota, token):
        image.apply(record)
    again = m.AccessControlEntryRecord(id=acls[0].id, host="*")
    image.apply(again)
    assert list(image.as_records()) == [node, again, credential, acls[1], quota, token]
    for gone in (
        m.RemoveAccessControlEntryRecord(id=acls[1].id),
        m.RemoveUserScramCredentialRecord(name="alice", mechanism=1),
        m.RemoveDelegationTokenRecord(token_id="t"),
        m.ClientQuotaRecord(entity=quota.entity, key="k", remove=True),
    ):
        image.apply(gone)
    assert list(image.as_records()) == [node, again]
    assert (len(image.acls), len(image.credentials), len(image.tokens), len(image.quotas)) == (1, 0, 0, 0)
