"""Requests that change much of the metadata are read, decided, followed and answered in steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ottla.broker.controller.events import EVENT_STEP
from ottla.broker.steps import STEP_ELEMENTS
from ottla.coordinator.metadata.new_partitions import NewPartitions
from ottla.coordinator.metadata.placement import Placer
from ottla.coordinator.metadata.staged import Overlay
from ottla.coordinator.timeline import TimelineDict
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.event_counts import EventCounts
from ..support.turns import Turns

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
MANY = 4 * STEP_ELEMENTS
DECIDED = MANY // EVENT_STEP  # turns in which the controller decides


def _entity(number: int) -> Any:
    r = m.AlterClientQuotasRequest
    return r.EntryData(
        entity=[r.EntityData(entity_type="user", entity_name=f"u{number}")], ops=[r.OpData(key="absent", value=1.0)]
    )


def _changes() -> Iterator[Any]:
    """Requests that change many things, all of which fail, with the array of the reply; and the number of times that
    the elements are gone through in steps of their own, besides the decision.
    """
    q = m.AlterClientQuotasRequest(entries=[_entity(number) for number in range(MANY)])
    yield "AlterClientQuotas", 1, q, "entries", Errors.INVALID_REQUEST, 2
    s = m.AlterUserScramCredentialsRequest
    gone = [s.ScramCredentialDeletion(name=f"u{number}", mechanism=1) for number in range(MANY)]
    yield "AlterUserScramCredentials", 0, s(deletions=gone), "results", Errors.RESOURCE_NOT_FOUND, 1
    a = m.CreateAclsRequest.AclCreation
    acls = [a(2, f"t{number}", 3, "nobody", "*", 3, 3) for number in range(MANY)]
    yield "CreateAcls", 3, m.CreateAclsRequest(creations=acls), "results", Errors.INVALID_REQUEST, 4
    d = m.DeleteTopicsRequest
    names = [d.DeleteTopicState(name=f"t{number}") for number in range(MANY)]
    yield "DeleteTopics", 6, d(topics=names, timeout_ms=1000), "responses", Errors.UNKNOWN_TOPIC_OR_PARTITION, 2
    c = m.CreatePartitionsRequest
    more = [c.CreatePartitionsTopic(name=f"t{number}", count=2, assignments=None) for number in range(MANY)]
    yield "CreatePartitions", 3, c(topics=more, timeout_ms=1000), "results", Errors.UNKNOWN_TOPIC_OR_PARTITION, 2


@pytest.mark.parametrize("change", list(_changes()), ids=lambda change: change[0])
def test_what_changes_much_of_the_metadata_is_read_decided_and_answered_in_steps(change: Any) -> None:
    name, version, request, answers, code, passes = change
    world = Turns(authorizer_class_name=AUTHORIZER, super_users="User:ANONYMOUS")
    answer = world.send(name, version, request)
    assert not answer.done
    assert world.send("Metadata", 12, m.MetadataRequest(topics=[])).done
    world.pass_ms(1)
    assert [one.error_code for one in getattr(answer.reply, answers)] == MANY * [int(code)]
    assert world.turns >= DECIDED + passes * (MANY // STEP_ELEMENTS)


def test_new_partitions_are_placed_and_written_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Turns()
    placed = EventCounts(world, monkeypatch, Placer, "place", lambda *_: 1)
    packed = EventCounts(world, monkeypatch, NewPartitions, "pack", lambda new, index: len(new))
    c, p = m.CreateTopicsRequest, m.CreatePartitionsRequest
    wide = c.CreatableTopic(name="wide", num_partitions=MANY, replication_factor=1)
    manual = c.CreatableTopic(name="manual", num_partitions=-1, replication_factor=-1)
    manual.assignments = [c.CreatableReplicaAssignment(number, [1]) for number in range(MANY)]
    made = world.ask("CreateTopics", 7, c(topics=[wide, manual], timeout_ms=60_000))
    assert [(one.error_code, one.num_partitions) for one in made.topics] == [(0, MANY), (0, MANY)]
    more = p.CreatePartitionsTopic(name="wide", count=2 * MANY, assignments=None)
    (grown,) = world.ask("CreatePartitions", 3, p(topics=[more], timeout_ms=60_000)).results
    assert grown.error_code == 0
    assert placed.count == 2 * MANY
    assert packed.count == 3 * MANY
    assert max(placed.most, packed.most) <= EVENT_STEP


def test_partitions_of_a_deleted_topic_are_removed_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Turns()
    c, d = m.CreateTopicsRequest, m.DeleteTopicsRequest
    wide = c.CreatableTopic(name="wide", num_partitions=MANY, replication_factor=1)
    assert world.ask("CreateTopics", 7, c(topics=[wide], timeout_ms=60_000)).topics[0].error_code == 0
    gone = d(topics=[d.DeleteTopicState(name="wide")], timeout_ms=60_000)
    single = [EventCounts(world, monkeypatch, table, "pop", lambda *_: 1) for table in (Overlay, TimelineDict)]
    assert world.ask("DeleteTopics", 6, gone).responses[0].error_code == 0
    assert max(one.count for one in single) < EVENT_STEP
    assert not [topic for topic, _ in world.broker.image.partitions if topic not in world.broker.image.topic_names]


@pytest.mark.long
def test_a_change_is_shown_in_a_step_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the records that are read and those who follow."""
    turns: dict[str, int] = {}
    world = Turns()

    def noting(of: object, name: str) -> None:
        call = getattr(of, name)

        def noted(*arguments: Any) -> Any:
            turns[name] = world.turns
            return call(*arguments)

        monkeypatch.setattr(of, name, noted)

    commits = world.broker.metadata.commits
    noting(commits, "_replay")
    noting(commits, "shown")
    noting(commits.watchers, "tell")
    r = m.CreateTopicsRequest
    topics = [r.CreatableTopic(name=f"t{number}", num_partitions=1, replication_factor=1) for number in range(MANY)]
    answer = world.ask("CreateTopics", 7, r(topics=topics, timeout_ms=60_000))
    assert {one.error_code for one in answer.topics} == {0}
    assert turns["_replay"] < turns["shown"] < turns["tell"]


def test_limits_and_entries_of_access_control_are_followed_in_steps() -> None:
    """After the commit of a change, which is shown at once."""
    world = Turns(authorizer_class_name=AUTHORIZER, super_users="User:ANONYMOUS")
    r, a = m.AlterClientQuotasRequest, m.CreateAclsRequest.AclCreation
    entries = [_entity(number) for number in range(MANY)]
    for one in entries:
        one.ops = [r.OpData(key="producer_byte_rate", value=1.0)]
    acls = [a(2, f"t{number}", 3, "User:u", "*", 3, 3) for number in range(MANY)]
    commits = world.broker.metadata.commits
    show = commits.shown

    def shown(delta: Any) -> None:
        show(delta)
        world.turns = 0

    commits.shown = shown
    for asked in (("AlterClientQuotas", 1, r(entries=entries)), ("CreateAcls", 3, m.CreateAclsRequest(creations=acls))):
        world.ask(*asked)
        assert world.turns >= 2 * MANY // STEP_ELEMENTS, "followed, and answered"
