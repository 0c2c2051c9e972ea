"""Requests that change many things: decided in steps while later events wait, and then written and shown at once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from ottla.broker.controller import metadata_log
from ottla.broker.controller.commits import Commits
from ottla.broker.controller.controller import _Writer
from ottla.broker.controller.events import EVENT_STEP
from ottla.broker.steps import STEP_ELEMENTS
from ottla.coordinator.metadata import topics
from ottla.coordinator.metadata.format import MetadataFormat
from ottla.coordinator.metadata.staged import Overlay, Staged
from ottla.coordinator.metadata.state import BROKER, GROUP, TOPIC, MetadataState
from ottla.coordinator.timeline import Timeline, TimelineDict
from ottla.protocol import messages as m
from ottla.protocol.errors import ApiError, Errors
from ottla.protocol.features import METADATA_VERSION

from ..support.topic_world import create, turns_take_a_millisecond
from ..support.world import Answer, World

C, P = m.CreateTopicsRequest, m.CreatePartitionsRequest
MANY = EVENT_STEP + 22
INT32_MAX = 2**31 - 1
TOO_MANY = (Errors.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
ACLS = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}


def named(*names: str, partitions: int = 1) -> Any:
    wanted = [C.CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1) for name in names]
    return C(topics=wanted, timeout_ms=60_000)


def many(count: int = MANY) -> list[str]:
    return [f"t{n}" for n in range(count)]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A broker whose turns of the loop take a millisecond each."""
    world = World()
    turns_take_a_millisecond(world, monkeypatch)
    return world


def ends(world: World, answer: Answer, each_ms: Callable[[], object] = lambda: None) -> Any:
    """Lets time pass until the answer is there."""
    for _ in range(10_000):
        if answer.done:
            return answer.reply
        world.pass_ms(1)
        each_ms()
    raise AssertionError("no answer")


def errors(reply: Any) -> dict[str, tuple[int, str | None]]:
    return {one.name: (one.error_code, one.error_message) for one in getattr(reply, "topics", None) or reply.results}


def batches(world: World) -> list[int]:
    """How many records each batch of the metadata log has."""
    log = world.broker.metadata.partition.open_log()
    return [len(list(batch)) for _, batch in metadata_log.metadata_batches(log, 0)]


def alter(*resources: tuple[int, str, dict[str, str | None]]) -> tuple[str, int, Any]:
    r = m.IncrementalAlterConfigsRequest
    wanted = [
        r.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[r.AlterableConfig(name=k, config_operation=v is None, value=v) for k, v in values.items()],
        )
        for kind, name, values in resources
    ]
    return "IncrementalAlterConfigs", 1, r(resources=wanted)


def creations(count: int = MANY) -> list[Any]:
    r = m.CreateAclsRequest.AclCreation
    return [
        r(
            resource_type=2,
            resource_name=f"t{n}",
            resource_pattern_type=3,
            principal="User:a",
            host="*",
            operation=3,
            permission_type=3,
        )
        for n in range(count)
    ]


def everything(world: World) -> list[tuple[tuple[str, int, Any], Callable[[], int]]]:
    """Requests about many things, and how much of each is to be seen."""
    image = world.broker.image
    names = many()
    changed: list[tuple[int, str, dict[str, str | None]]] = [(TOPIC, name, {"retention.ms": "5"}) for name in names]
    every = m.DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    more = P(
        topics=[P.CreatePartitionsTopic(name=name, count=3, assignments=None) for name in names], timeout_ms=60_000
    )
    return [
        (("CreateTopics", 7, named(*names)), lambda: len(image.topics)),
        (("CreatePartitions", 3, more), lambda: len(image.partitions) - MANY),
        (alter(*changed), lambda: sum(kind == TOPIC for kind, _ in image.configs)),
        (("CreateAcls", 3, m.CreateAclsRequest(creations=creations())), lambda: len(image.acls)),
        (("DeleteAcls", 3, m.DeleteAclsRequest(filters=[every])), lambda: len(image.acls)),
        (("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=names, timeout_ms=60_000)), lambda: len(image.topics)),
    ]


def test_a_request_is_one_batch_decided_in_steps_and_seen_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(None, 0, **ACLS)
    turns_take_a_millisecond(world, monkeypatch)
    state, done = world.broker.metadata.controller.state, Counter[tuple[str, int]]()

    def count(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def counted(*arguments: Any) -> Any:
            done[name, world.schedule.monotonic_ms()] += 1
            return real(*arguments)

        monkeypatch.setattr(owner, name, counted)

    for owner, name in ((topics, "_create"), (MetadataFormat, "encode"), (Staged, "apply"), (Commits, "_replay")):
        count(owner, name)
    for request, seen_of in everything(world):
        before, seen = len(batches(world)), {seen_of()}
        ends(world, world.send(*request), lambda: seen.add(seen_of()))  # noqa: B023
        assert len(batches(world)) == before + 1, request[0]
        assert len(seen) == 2, (request[0], seen)
        assert max(seen) - min(seen) in (MANY, 2 * MANY)
        assert [dict(table.items()) for table in state.tables()] == world.broker.image.tables()
    most = {name: max(count for (of, _), count in done.items() if of == name) for name, _ in done}
    assert most["_create"] <= EVENT_STEP
    assert most["encode"] <= EVENT_STEP
    assert most["_replay"] <= STEP_ELEMENTS
    assert most["apply"] <= EVENT_STEP + STEP_ELEMENTS
    assert sum(count for (of, _), count in done.items() if of == "_create") == MANY, "each is decided once"


def test_events_are_handled_in_their_order(world: World) -> None:
    large = world.send("CreateTopics", 7, named(*many()))
    small = world.send("CreateTopics", 7, named("t7", "other"))
    gone = world.send("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["t8", "absent"], timeout_ms=60_000))
    again = world.send("CreateTopics", 7, named("t8"))
    world.pass_ms(1)
    assert not any(one.done for one in (large, small, gone, again))
    assert {code for code, _ in errors(ends(world, large)).values()} == {0}
    assert errors(ends(world, small)) == {
        "t7": (Errors.TOPIC_ALREADY_EXISTS, "Topic 't7' already exists."),
        "other": (0, None),
    }
    assert [one.error_code for one in ends(world, gone).responses] == [0, Errors.UNKNOWN_TOPIC_OR_PARTITION]
    assert errors(ends(world, again)) == {"t8": (0, None)}


@pytest.mark.parametrize("validate_only", [False, True])
def test_all_of_a_request_is_checked_against_what_there_was_before_it(world: World, validate_only: bool) -> None:
    """Like Kafka, which lets names of one request collide."""
    assert create(world, "old.name") == create(world, "t9") == 0
    request = named("a.b", "t0", *many(), "old_name", "t1", "a_b", "x y")
    request.validate_only = validate_only
    found = errors(ends(world, world.send("CreateTopics", 7, request)))
    duplicate = (Errors.INVALID_REQUEST, "Duplicate topic name.")
    refused = {name: error for name, error in found.items() if error[0]}
    assert refused.pop("x y")[0] == Errors.INVALID_TOPIC_EXCEPTION
    assert refused == {
        "t0": duplicate,
        "t1": duplicate,
        "t9": (Errors.TOPIC_ALREADY_EXISTS, "Topic 't9' already exists."),
        "old_name": (Errors.INVALID_TOPIC_EXCEPTION, "Topic 'old_name' collides with existing topic: old.name"),
    }
    assert len(found) == MANY + 4
    made = 0 if validate_only else len(found) - len(refused) - 1
    assert len(world.broker.image.topics) == len(world.broker.metadata.controller.state.topics) == 2 + made


def test_names_that_collide_are_all_remembered() -> None:
    world = World()
    found = world.ask("CreateTopics", 7, named("a.b.c", "a_b_c"))
    assert {code for code, _ in errors(found).values()} == {0}
    for left in ("a.b.c", "a_b_c"):
        assert errors(world.ask("CreateTopics", 7, named("a.b_c"))) == {
            "a.b_c": (Errors.INVALID_TOPIC_EXCEPTION, f"Topic 'a.b_c' collides with existing topic: {left}")
        }
        world.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=[left], timeout_ms=60_000))
    assert errors(world.ask("CreateTopics", 7, named("a.b_c"))) == {"a.b_c": (0, None)}


@pytest.mark.parametrize("validate_only", [False, True])
def test_records_are_counted_for_the_whole_request(validate_only: bool) -> None:
    world = World()
    request = named(*many(1000), partitions=10)
    request.validate_only = validate_only
    assert set(errors(world.ask("CreateTopics", 7, request)).values()) == {TOO_MANY}
    assert not world.broker.image.topics


def test_an_event_that_waits_too_long_is_not_handled(world: World) -> None:
    large = world.send("CreateTopics", 7, named(*many()))
    late = named("late")
    late.timeout_ms = 2
    answer = world.send("CreateTopics", 7, late)
    world.pass_ms(3)
    assert not large.done
    assert errors(answer.reply) == {"late": (Errors.REQUEST_TIMED_OUT, None)}
    ends(world, large)
    world.pass_ms(100)
    assert len(world.broker.image.topics) == MANY


def test_an_event_whose_client_has_gone_leaves_no_timer(world: World) -> None:
    large = world.send("CreateTopics", 7, named(*many()))
    patient = named("patient")
    patient.timeout_ms = INT32_MAX
    world.send("CreateTopics", 7, patient).waiting.cancel()
    ends(world, large)
    world.pass_ms(1000)
    weeks_ms = world.schedule.elapsed_ms + 2 * 7 * 86_400_000
    assert [at_ms for at_ms, _ in world.schedule.timers.first(1000) if at_ms > weeks_ms] == []


def test_what_is_not_written_at_a_stop_leaves_nothing(world: World) -> None:
    assert create(world, "before") == 0
    large = world.send("CreateTopics", 7, named(*many()))
    waits = world.send("CreateTopics", 7, named("waits"))
    world.pass_ms(2)
    world.broker.stop()
    world.pass_ms(1000)
    assert not world.broker.metadata.controller.state.topics.keys() - {"before"}
    assert not waits.done or errors(waits.reply)["waits"][0]
    assert not large.done or {code for code, _ in errors(large.reply).values()} == {Errors.NOT_CONTROLLER}
    assert list(World(world.files).broker.image.topics) == ["before"]


def test_an_append_that_fails_leaves_nothing_and_the_next_event_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, failures = _Writer.append, [ApiError(Errors.KAFKA_STORAGE_ERROR)]

    def failing(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return append(*arguments)

    monkeypatch.setattr(_Writer, "append", failing)
    reply = ends(world, world.send("CreateTopics", 7, named(*many())))
    assert {code for code, _ in errors(reply).values()} == {Errors.NOT_CONTROLLER}
    assert not world.broker.metadata.controller.state.topics
    assert errors(ends(world, world.send("CreateTopics", 7, named(*many())))) == dict.fromkeys(many(), (0, None))


def test_a_decision_upon_records_that_were_not_written_is_made_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, failures = _Writer.append, [ApiError(Errors.KAFKA_STORAGE_ERROR)]
    monkeypatch.setattr(_Writer, "append", lambda *a: append(*a) if not failures else _raise(failures.pop()))
    first, large = world.together(("CreateTopics", 7, named("t7")), ("CreateTopics", 7, named(*many())))
    assert errors(ends(world, first)) == {"t7": (Errors.NOT_CONTROLLER, None)}
    assert errors(ends(world, large)) == dict.fromkeys(many(), (0, None))


def _raise(error: ApiError) -> Any:
    raise error


def test_a_handler_that_fails_between_its_steps_is_answered(world: World, quiet: None) -> None:
    def broken() -> Any:
        for _ in range(MANY):
            yield
        raise RuntimeError

    first = world.broker.metadata.submit(broken)
    second = world.send("CreateTopics", 7, named("t"))
    ends(world, second)
    assert isinstance(first.error, ApiError)
    assert first.error.code == Errors.UNKNOWN_SERVER_ERROR
    assert errors(second.reply) == {"t": (0, None)}
    assert world.broker.metrics.bugs == 1


def test_a_client_that_leaves_does_not_end_what_it_asked_for(world: World) -> None:
    answer = world.send("CreateTopics", 7, named(*many()))
    world.pass_ms(2)
    answer.waiting.cancel()
    world.pass_ms(1000)
    assert len(world.broker.image.topics) == MANY


def test_settings_of_one_resource_are_copied_once_per_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    copies: Counter[object] = Counter()
    own = Overlay.own

    def counted(self: Overlay[Any, Any], key: Any) -> Any:
        found = own(self, key)
        copies[key] += found is None
        return found

    monkeypatch.setattr(Overlay, "own", counted)
    reply = world.ask(*alter((BROKER, "", {f"key.{n}": "1" for n in range(5000)})))
    assert reply.responses[0].error_code == 0
    assert copies[BROKER, ""] == 2, "for the controller and for the image"
    copies.clear()
    again = World(world.lose_power(), 1)
    assert copies[BROKER, ""] == 1
    assert len(again.broker.image.config_of(BROKER, "")) == 5001


def random_record(chance: random.Random) -> Any:
    topic_id, name = bytes([chance.randrange(6)]) * 16, f"a{chance.choice('._-')}{chance.choice('._-')}b"
    number, value = chance.randrange(3), chance.choice((None, "1", "2"))
    kind = chance.choice((TOPIC, GROUP))
    records: list[Any] = [
        m.TopicRecord(name=name, topic_id=topic_id),
        m.RemoveTopicRecord(topic_id=topic_id),
        m.PartitionRecord(partition_id=number, topic_id=topic_id, replicas=[1], isr=[1]),
        m.PartitionChangeRecord(partition_id=number, topic_id=topic_id, isr=[], leader=-1),
        m.ConfigRecord(resource_type=kind, resource_name=name, name=chance.choice("xy"), value=value),
        m.FeatureLevelRecord(name=METADATA_VERSION, feature_level=number),
        m.AccessControlEntryRecord(id=topic_id, resource_name=name, principal="User:a", host="*"),
        m.RemoveAccessControlEntryRecord(id=topic_id),
        m.ProducerIdsRecord(next_producer_id=chance.randrange(99)),
    ]
    return chance.choice(records)


def apply_as_possible(state: MetadataState, record: Any) -> None:
    """A topic that is there is not created again, under this name or this id."""
    if isinstance(record, m.TopicRecord) and (record.name in state.topics or record.topic_id in state.topic_names):
        return
    if isinstance(record, m.PartitionRecord) and record.topic_id not in state.topic_names:
        return
    if isinstance(record, m.AccessControlEntryRecord) and record.id in state.acls:
        return
    state.apply(record)


@pytest.mark.parametrize("seed", range(60))
def test_records_that_are_staged_and_shown_are_as_good_as_applied(seed: int) -> None:
    chance, timeline = random.Random(seed), Timeline()
    plain, staged, ahead = MetadataState(), MetadataState(), MetadataState(lambda: TimelineDict(timeline))
    timeline.snapshot(0)
    for offset in range(1, 12):
        records = [random_record(chance) for _ in range(chance.randrange(20))]
        before = [dict(table.items()) for table in ahead.tables()]
        overlays = Staged(staged), Staged(ahead)
        for record in records:
            apply_as_possible(plain, record)
            for overlay in overlays:
                apply_as_possible(overlay, record)
        assert [dict(table.items()) for table in ahead.tables()] == before
        for overlay in overlays:
            overlay.show()
        assert [list(table.items()) for table in staged.tables()] == [list(table.items()) for table in plain.tables()]
        assert [dict(table.items()) for table in ahead.tables()] == plain.tables()
        if chance.random() < 0.1:
            timeline.revert(offset - 1)
            assert [dict(table.items()) for table in ahead.tables()] == before
            return
        timeline.snapshot(offset)
