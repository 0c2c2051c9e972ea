"""Many partitions: how many a request may ask for, and that their files are made, renamed and removed some at a
time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ottla.broker.controller import metadata_log
from ottla.broker.replica.replica_manager import DEFERRALS_MAX, MANY_LOGS, OPEN_STEP, QUIET_MS
from ottla.broker.steps import STEP_ELEMENTS
from ottla.coordinator.batch import size_of
from ottla.coordinator.metadata.delta import MetadataDelta
from ottla.coordinator.metadata.format import MetadataFormat
from ottla.coordinator.metadata.new_partitions import NewPartitions, decoded
from ottla.coordinator.metadata.state import MetadataState, partition_record
from ottla.coordinator.packing import encode_batch
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.protocol.records import HEADER_SIZE, Record, Template

from ..support.ask import batch, produce_message
from ..support.memory_files import MemFiles, MemHandle
from ..support.steps import result_of
from ..support.topic_world import create, opened, produced, read, turns_take_a_millisecond
from ..support.world import World

MANY = 2 * OPEN_STEP + 10
C, P = m.CreateTopicsRequest, m.CreatePartitionsRequest
EXCESSIVE = (Errors.POLICY_VIOLATION, "Excessively large number of partitions per request.")
ADDITIONAL = (Errors.POLICY_VIOLATION, "Excessively large number of additional partitions per request.")
BATCH = (Errors.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


def topic(name: str, partitions: int = -1, manual: int = 0) -> Any:
    assignments = [C.CreatableReplicaAssignment(partition_index=i, broker_ids=[1]) for i in range(manual)]
    return C.CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1, assignments=assignments)


def created(world: World, *topics: Any, validate_only: bool = True) -> dict[str, tuple[int, str | None]]:
    reply = world.ask("CreateTopics", 7, C(topics=list(topics), timeout_ms=60_000, validate_only=validate_only))
    return {t.name: (t.error_code, t.error_message) for t in reply.topics}


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        ([topic("a", 10_001)], {"a": EXCESSIVE}),
        ([topic("a", 10_000)], {"a": BATCH}),  # the topic's own record is one more
        ([topic("a", 9_999)], {"a": (0, None)}),
        ([topic("a", 6000), topic("b", 6000)], {"a": EXCESSIVE, "b": EXCESSIVE}),
        ([topic("a", manual=4000), topic("b", 6001)], {"a": EXCESSIVE, "b": EXCESSIVE}),
        ([topic("a", 2**31 - 1), topic("b", 2**31 - 1), topic("c")], {"a": EXCESSIVE, "b": EXCESSIVE, "c": EXCESSIVE}),
        ([topic("a", 9_999), topic("b"), topic("c")], {"a": EXCESSIVE, "b": EXCESSIVE, "c": EXCESSIVE}),
        (
            [topic("a", 6000), topic("a", 6000), topic("b")],
            {"a": (Errors.INVALID_REQUEST, "Duplicate topic name."), "b": (0, None)},
        ),
    ],
)
def test_new_partitions_are_counted_for_the_whole_request(topics: list[Any], expected: dict[str, Any]) -> None:
    assert created(World(), *topics) == expected


def added(world: World, *counts: tuple[str, int], manual: int | None = None) -> dict[str, tuple[int, str | None]]:
    assignments = None if manual is None else [P.CreatePartitionsAssignment(broker_ids=[1]) for _ in range(manual)]
    topics = [P.CreatePartitionsTopic(name=name, count=count, assignments=assignments) for name, count in counts]
    reply = world.ask("CreatePartitions", 3, P(topics=topics, timeout_ms=60_000, validate_only=True))
    return {t.name: (t.error_code, t.error_message) for t in reply.results}


def test_additional_partitions_are_counted_for_the_whole_request() -> None:
    world = World()
    create(world, "a")
    create(world, "b")
    assert added(world, ("a", 10_001)) == {"a": (0, None)}
    assert added(world, ("a", 10_002)) == {"a": ADDITIONAL}
    assert added(world, ("a", 5001), ("b", 5001)) == {"a": (0, None), "b": (0, None)}
    assert added(world, ("a", 5001), ("b", 5002)) == {"a": ADDITIONAL, "b": ADDITIONAL}
    assert added(world, ("a", 6001), ("b", 6001), manual=3) == {"a": ADDITIONAL, "b": ADDITIONAL}
    assert added(world, ("a", -20_000), ("b", 15_000)) == {"a": ADDITIONAL, "b": ADDITIONAL}
    assert added(world, ("absent", 20_000), ("b", 5002)) == {
        "absent": (Errors.UNKNOWN_TOPIC_OR_PARTITION, None),
        "b": (0, None),
    }
    assert added(world, ("a", 8000), ("a", 8000), ("b", 5001)) == {
        "a": (Errors.INVALID_REQUEST, "Duplicate topic name."),
        "b": (0, None),
    }


def directories(world: World, ending: str = "") -> int:
    return sum(1 for name in world.files.names("/data") if name.startswith("many-") and name.endswith(ending))


def test_logs_are_made_some_at_a_time_and_at_once_where_one_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    turns_take_a_millisecond(world, monkeypatch)
    assert create(world, "many", MANY) == 0
    before = opened(world)
    assert before < MANY
    assert directories(world) == before, "no more files than logs"
    last = world.send("Produce", 9, produce_message("many", batch(b"x"), MANY - 1))
    assert produced(last.reply).error_code == 0, "a topic whose creation was answered can be produced to"
    assert opened(world) == before + 1
    steps = []
    while opened(world) < MANY:
        count = opened(world)
        world.pass_ms(1)
        steps.append(opened(world) - count)
    assert max(steps) <= OPEN_STEP
    assert world.broker.replicas.ready
    assert create(world, "few", 3) == 0
    assert opened(world, "few") == 3


def watched(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Makes each turn a millisecond; returns what counts the partitions that can be found."""
    turns_take_a_millisecond(world, monkeypatch)
    return lambda: len(world.broker.partitions.by_name)


def test_a_commit_is_applied_at_once_and_followed_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    world, count = World(), 4 * STEP_ELEMENTS
    followed = watched(world, monkeypatch)
    answer = world.send("CreateTopics", 7, C(topics=[topic("many", count)], timeout_ms=60_000))
    steps, seen = [], {0}
    while not answer.done:
        before = followed()
        world.pass_ms(1)
        steps.append(followed() - before)
        seen.add(sum(world.broker.image.partition_counts.values()))
    assert seen == {0, count}, "requests see the whole commit or nothing of it"
    assert sum(steps) == followed() == count, "the reply waits for the partitions"
    assert max(steps) <= STEP_ELEMENTS
    world.send("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["many"], timeout_ms=60_000))
    steps = []
    while followed():
        before = followed()
        world.pass_ms(1)
        steps.append(before - followed())
    assert max(steps) <= STEP_ELEMENTS


def test_what_commits_meanwhile_follows_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    world, count = World(), 4 * STEP_ELEMENTS
    followed = watched(world, monkeypatch)
    many = world.send("CreateTopics", 7, C(topics=[topic("many", count)], timeout_ms=60_000))
    while not followed():
        world.pass_ms(1)
    few = world.send("CreateTopics", 7, C(topics=[topic("few", 2)], timeout_ms=60_000))
    while not few.done:
        assert "few" not in world.broker.image.topics or followed() >= count
        world.pass_ms(1)
    assert many.done
    assert followed() == count + 2


def test_a_commit_that_cannot_be_read_is_tried_again(monkeypatch: pytest.MonkeyPatch, quiet: None) -> None:
    world = World()
    read = metadata_log.metadata_batches

    def broken(*_: Any) -> Any:
        monkeypatch.setattr(metadata_log, "metadata_batches", read)
        raise RuntimeError("broken")

    monkeypatch.setattr(metadata_log, "metadata_batches", broken)
    assert create(world, "t") == 0
    assert world.broker.metrics.bugs == 1


@pytest.mark.parametrize("directories", ["/a", "/a,/b"])
@pytest.mark.parametrize("first", [0, 5, 1000])
def test_new_partitions_are_written_as_one_by_one(directories: str, first: int) -> None:
    controller = World(log_dirs=directories).broker.metadata.controller
    (new,) = result_of(controller.new_partitions(bytes(range(16)), [[1]] * 70, first))
    one_by_one = [MetadataFormat().encode(partition_record(one)) for one in new.partitions]
    for before in ([], one_by_one[:1]):
        packed, plain = (encode_batch([*before, *records], 17, Template()) for records in ([new], one_by_one))
        assert packed == plain
        assert len(packed) <= new.size + sum(map(size_of, before)) + HEADER_SIZE
    state = MetadataState()
    state.apply(new)
    again = MetadataState()
    for one in new.partitions:
        again.apply(partition_record(one))
    assert (state.partitions, state.partition_counts) == (again.partitions, again.partition_counts)


FIRST, SECOND = bytes(range(16)), bytes(range(16, 32))


def partition(topic_id: bytes, index: int, *replicas: int, **others: Any) -> Any:
    nodes = list(replicas) or [1]
    return m.PartitionRecord(
        partition_id=index, topic_id=topic_id, replicas=nodes, isr=nodes, leader=nodes[0], **others
    )


READ = [
    m.TopicRecord(name="a", topic_id=FIRST),
    *(partition(FIRST, index, 1 + index % 3) for index in range(300)),
    m.TopicRecord(name="b", topic_id=SECOND),
    partition(SECOND, 0),
    partition(FIRST, 300),
    partition(SECOND, 2),
    partition(SECOND, 1, leader_epoch=5, partition_epoch=7),
    partition(SECOND, 3, adding_replicas=[2]),
    partition(SECOND, 4, eligible_leader_replicas=[2], last_known_elr=[3]),
    m.PartitionChangeRecord(partition_id=0, topic_id=SECOND, leader=2),
    partition(SECOND, 5),
    partition(SECOND, 5, 2, 3),
]


def test_new_partitions_are_read_as_one_by_one() -> None:
    """Those of a topic in a row are one for the state, however their replicas differ; it has what it would have of
    each record.
    """
    encoded = [MetadataFormat().encode(record) for record in READ]
    for offset, record in enumerate(encoded):
        record.offset = offset
    unknown = Record(None, bytes((1, 120, 0)), offset=len(encoded))
    found = list(decoded([*encoded, unknown]))
    assert [(offset, len(new.partitions)) for offset, new in found if isinstance(new, NewPartitions)] == [
        *((1, 128), (129, 128), (257, 44)),
        *((302, 1), (303, 1), (304, 1), (305, 1), (307, 1), (309, 1), (310, 1)),
    ]
    assert found[-1] == (len(encoded), None)
    once, again = MetadataDelta(MetadataState()), MetadataDelta(MetadataState())
    for _, some in found:
        once.replay(some)
    for record in READ:
        again.replay(record)
    once.show()
    again.show()
    assert vars(once.image) == vars(again.image)
    assert list(once.new_partitions) == list(again.new_partitions)


def test_nothing_waits_between_the_steps_in_which_logs_are_opened() -> None:
    world = World()
    create(world, "many", MANY)
    after = World(world.lose_power(), 1)
    assert opened(after) < MANY
    after.pass_ms(0)
    assert opened(after) == MANY


class CountingFiles(MemFiles):
    """Counts the directories that are listed, and the files that are made."""

    def __init__(self) -> None:
        super().__init__()
        self.listed = self.made = 0

    def names(self, directory: str) -> list[str]:
        self.listed += directory.startswith("/data/many-")
        return super().names(directory)

    def open(self, path: str, create: bool = False) -> MemHandle:
        self.made += create and "/many-" in path and not self.exists(path)
        return super().open(path, create)


def test_an_empty_partition_is_three_files_and_opening_it_makes_none() -> None:
    files = CountingFiles()
    world = World(files)
    create(world, "many", 100)
    assert (files.listed, files.made) == (0, 300)
    for clean, listings in ((False, 4), (True, 3)):
        files.listed = files.made = 0
        world = World(files, 1)
        world.pass_ms(0)
        assert opened(world) == 100
        assert (files.listed, files.made) == (listings * 100, 0), f"clean: {clean}"
        assert world.broker.stop() is None


def test_logs_of_coordinators_are_made_some_at_a_time_and_at_once_where_one_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(None, 0, offsets_topic_num_partitions=str(MANY))
    turns_take_a_millisecond(world, monkeypatch)
    world.send("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    topic = "__consumer_offsets"
    while not opened(world, topic):
        world.pass_ms(1)
    assert opened(world, topic) <= OPEN_STEP
    last = next(g for g in map(str, range(10**6)) if world.broker.groups.partition_for(g) == MANY - 1)
    join = m.JoinGroupRequest(
        group_id=last, session_timeout_ms=10_000, rebalance_timeout_ms=10_000, protocol_type="consumer"
    )
    answer = world.send("JoinGroup", 4, join)
    assert answer.reply is None or answer.reply.error_code != Errors.COORDINATOR_LOAD_IN_PROGRESS
    assert world.broker.partitions.by_name[topic, MANY - 1].log is not None


def test_a_request_that_needs_all_coordinators_opens_their_logs_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(None, 0, offsets_topic_num_partitions=str(MANY))
    turns_take_a_millisecond(world, monkeypatch)
    world.send("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    while not opened(world, "__consumer_offsets"):
        world.pass_ms(1)
    answer = world.send("ListGroups", 4, m.ListGroupsRequest())
    assert not answer.done
    assert opened(world, "__consumer_offsets") <= OPEN_STEP + 1
    world.pass_ms(100)
    assert answer.reply.error_code == 0


def test_directories_of_removed_partitions_are_renamed_and_removed_some_at_a_time() -> None:
    world = World()
    create(world, "many", MANY)
    world.pass_ms(1000)
    world.send("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["many"], timeout_ms=1000))
    world.pass_ms(1)
    assert ("many", 0) not in world.broker.partitions.by_name
    world.pass_ms(100)
    assert directories(world, "-delete") == directories(world) == MANY
    world.pass_ms(120_000)
    assert directories(world) == 0


def test_a_topic_made_again_does_not_wait_for_its_predecessors_files() -> None:
    world = World()
    create(world, "many", MANY)
    world.send("Produce", 9, produce_message("many", batch(b"old"), MANY - 1))
    delete = m.DeleteTopicsRequest(topic_names=["many"], timeout_ms=1000)
    again = C(topics=[topic("many", MANY)], timeout_ms=1000)
    answers = world.together(("DeleteTopics", 5, delete), ("CreateTopics", 7, again))
    while not answers[1].done:
        world.pass_ms(1)
    assert answers[1].reply.topics[0].error_code == 0
    answer = world.send("Produce", 9, produce_message("many", batch(b"new"), MANY - 1))
    assert (produced(answer.reply).error_code, produced(answer.reply).base_offset) == (0, 0)
    world.pass_ms(1000)
    assert opened(world) == MANY
    assert directories(world) - directories(world, "-delete") == MANY


def test_a_stop_between_leaves_nothing_of_removed_partitions_and_all_of_the_others() -> None:
    world = World()
    create(world, "many", MANY)
    create(world, "t")
    world.send("Produce", 9, produce_message("t", batch(b"kept")))
    world.send("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["many"], timeout_ms=1000))
    world.pass_ms(1)
    world.broker.stop()
    after = World(world.files)
    after.pass_ms(1000)
    assert read(after, "t") == [b"kept"]
    assert directories(after, "-stray") == 0
    assert create(after, "many", 2) == 0
    assert produced(after.ask("Produce", 9, produce_message("many", batch(b"x"), 1))).base_offset == 0


def test_a_stop_while_logs_are_made_loses_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    turns_take_a_millisecond(world, monkeypatch)
    create(world, "many", MANY)
    assert opened(world) < MANY
    assert world.broker.stop() is None
    assert world.files.exists("/data/.kafka_cleanshutdown"), "what has no directory yet is in no doubt"
    after = World(world.files)
    after.pass_ms(1000)
    assert opened(after) == MANY
    assert produced(after.ask("Produce", 9, produce_message("many", batch(b"x"), MANY - 1))).base_offset == 0


def test_a_stop_while_logs_are_recovered_is_not_clean() -> None:
    world = World()
    create(world, "many", MANY)
    world.pass_ms(1000)
    world.send("Produce", 9, produce_message("many", batch(b"x"), MANY - 1))
    again = World(world.files, 1)
    assert opened(again) < MANY
    assert again.broker.stop() is None
    assert not again.files.exists("/data/.kafka_cleanshutdown")
    after = World(again.files, 2)
    after.pass_ms(1000)
    assert after.broker.partitions.by_name["many", MANY - 1].high_watermark == 1


def test_new_partitions_get_their_logs_when_those_who_asked_are_answered() -> None:
    """Two requests follow each other: no log is opened while the metadata changes, however many steps that takes."""
    world = World()
    answers = [
        world.send("CreateTopics", 7, C(topics=[topic(name, 2 * STEP_ELEMENTS)], timeout_ms=60_000)) for name in "ab"
    ]
    opened = []
    while not answers[-1].done:
        world.schedule.take_next()()
        opened.append(sum(1 for _ in world.broker.partitions.open_logs()))
    assert len(opened) > 2, "it took several turns"
    assert set(opened[:-1]) == {0}
    world.pass_ms(100)
    assert sum(1 for _ in world.broker.partitions.open_logs()) == 4 * STEP_ELEMENTS


@pytest.mark.long
def test_many_logs_are_opened_when_the_metadata_has_not_changed_for_a_while() -> None:
    """Who creates partitions in one request after another does not wait for their logs, which do not wait for ever."""
    world, opened = World(), []
    for number in range(DEFERRALS_MAX + 5):
        assert create(world, f"t{number}", MANY_LOGS + 1) == 0
        world.pass_ms(QUIET_MS - 10)
        opened.append(sum(1 for _ in world.broker.partitions.open_logs()))
    assert set(opened[: DEFERRALS_MAX // 2]) == {0}
    assert opened[-1] > 0
    world.pass_ms(QUIET_MS)
    assert sum(1 for _ in world.broker.partitions.open_logs()) == len(opened) * (MANY_LOGS + 1)
