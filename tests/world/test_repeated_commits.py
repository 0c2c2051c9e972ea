"""OffsetCommits that are served without decoding them: replies and logs have the same bytes as for those that are."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from typing import Any

import pytest
from ottla.broker.apis import _repeated as short_way
from ottla.broker.group.coordinators import TOPIC_NAME
from ottla.broker.lab.faults.matching import Matcher, topic_names
from ottla.broker.lab.seam import Line, Watch, Watcher
from ottla.broker.lab.traces.tracer import TraceAsked, Tracer
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.connected import Client, ConnectedWorld
from ..support.failing_appends import fail_appends
from ..support.group_world import policy
from ..support.machine import VirtualMachine
from ..support.repeated import Refusing, counted
from ..support.topic_world import create

R = m.OffsetCommitRequest
GROUPS = ("g", "h", "c")


def connected(**settings: str) -> ConnectedWorld:
    """A broker with two topics and the coordinators of groups."""
    world = ConnectedWorld(None, 0, **{"offsets_topic_num_partitions": "2", **settings})
    create(world, "t", 4)
    create(world, "u", 2)
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=list(GROUPS)))
    world.pass_ms(100)
    return world


def request(offset: int, group: str = "g", topics: dict[str, int] | None = None, **more: Any) -> m.OffsetCommitRequest:
    """Commits of the first partitions of topics, `offset` and those after it."""
    made = R(group_id=group, topics=[])
    for name, count in (topics or {"t": 4}).items():
        parts = [
            R.OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset + index,
                committed_leader_epoch=offset % 3 - 1,
                committed_metadata=more.get("metadata", ""),
            )
            for index in range(count)
        ]
        topic_id = more.get("ids", {}).get(name, bytes(16))
        made.topics.append(R.OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=parts))
    for name in more.keys() - {"metadata", "ids"}:
        setattr(made, name, more[name])
    return made


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Counter[Any]:
    """How many commits were not decoded, by the dispatcher that took them."""
    return counted(monkeypatch)


def commits(client: Client, count: int, version: int = 8, **more: Any) -> list[int]:
    """Commits the same partitions again and again; returns the error codes of the replies."""
    codes = []
    for offset in range(count):
        answer = client.ask("OffsetCommit", version, request(offset, **more))
        codes += [p.error_code for topic in answer.topics for p in topic.partitions]
    return codes


def offset_of(world: ConnectedWorld, partition: int = 0, group: str = "g", topic: str = "t") -> Any:
    r = m.OffsetFetchRequest
    asked = r.OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
    of_group = r.OffsetFetchRequestGroup(group_id=group, topics=[asked])
    return world.ask("OffsetFetch", 9, r(groups=[of_group])).groups[0].topics[0].partitions[0]


def traced(world: ConnectedWorld, topic: str | None = None) -> Tracer:
    """Traces the requests of a broker."""
    asked, machine = TraceAsked(raw="frames", topic=topic), VirtualMachine(world.schedule)
    tracer = Tracer(asked, None, Matcher(asked, topic_names(world.broker)), world.broker, machine)
    world.seam.add(tracer)
    return tracer


class Side:
    """One of two brokers to which the same happens. `decodes`: it decodes every request. `is_traced`: it has a
    trace.
    """

    def __init__(self, decodes: bool, is_traced: bool) -> None:
        self.world = connected()
        self.tracer = traced(self.world) if is_traced else None
        self.world.dispatcher.is_own = not decodes
        self.clients = [self.world.connect() for _ in range(3)]
        self.lost: list[bytes] = []
        self.noted = 0
        self.members: dict[str, Any] = {}

    def partitions(self) -> list[Any]:
        return [p for (topic, _), p in sorted(self.world.broker.partitions.by_name.items()) if topic == TOPIC_NAME]

    def written(self) -> list[bytes]:
        logs = [partition.open_log().active for partition in self.partitions()]
        return [bytes(active.read(0, active.size)) for active in logs]

    def replies(self) -> list[bytes]:
        return [*self.lost, *(client.transport.written for client in self.clients)]

    def events(self) -> list[bytes]:
        """The lines of its trace since this was asked last."""
        if self.tracer is None:
            return []
        self.tracer.flush()
        found = list(self.tracer.ring.after(self.noted, 10_000, "frames")[2])
        self.noted += len(found)
        return found

    def lose(self, number: int) -> None:
        client = self.clients[number]
        self.lost.append(client.transport.written)
        client.lose()
        self.clients[number] = self.world.connect()

    def join(self, member: str) -> None:
        """A member of a classic group joins, and leads it if it is alone."""
        r = m.JoinGroupRequest
        asked = r(group_id="h", session_timeout_ms=9000, rebalance_timeout_ms=500, protocol_type="consumer")
        asked.member_id, asked.protocols = member, [r.JoinGroupRequestProtocol(name="range", metadata=b"\0\0")]
        found = self.world.ask("JoinGroup", 5, asked)
        if found.error_code == Errors.MEMBER_ID_REQUIRED:
            return self.join(found.member_id)
        self.members["h"] = {
            "member_id": found.member_id,
            "generation_id_or_member_epoch": found.generation_id,
        }
        sync = m.SyncGroupRequest(group_id="h", member_id=found.member_id, generation_id=found.generation_id)
        self.world.ask("SyncGroup", 3, sync)

    def beat(self) -> None:
        """A member of a consumer group joins, or has another subscription."""
        r = m.ConsumerGroupHeartbeatRequest
        epoch = self.members.get("c", {}).get("generation_id_or_member_epoch", 0)
        asked = r(group_id="c", member_id="one", member_epoch=epoch, rebalance_timeout_ms=5000, topic_partitions=[])
        asked.subscribed_topic_names = ["t", "u"][: 1 + epoch % 2]
        found = self.world.ask("ConsumerGroupHeartbeat", 1, asked)
        self.members["c"] = {"member_id": "one", "generation_id_or_member_epoch": found.member_epoch}

    def commit(self, number: int, version: int, offset: int, group: str, shape: dict[str, Any]) -> None:
        image = self.world.broker.groups.image
        ids = {name: image.topic_id(name) or b"\7" * 16 for name in ("t", "u", "v")}
        who = self.members.get(group, {}) if version >= 7 else {}
        self.clients[number].send("OffsetCommit", version, request(offset, group, ids=ids, **{**who, **shape}))

    def happens(self, event: str) -> None:
        world = self.world
        if event == "join":
            self.join("")
        elif event == "beat":
            self.beat()
        elif event == "hold":
            policy(world, "held")
        elif event == "fail":
            fail_appends(world, *self.partitions())
        elif event == "mend":
            fail_appends(world)
            policy(world, "immediate")
        elif event == "create":
            create(world, "v", 1)
        elif event == "delete":
            world.ask("DeleteTopics", 4, m.DeleteTopicsRequest(topic_names=["u"], timeout_ms=1000))
            create(world, "u", 2)
        elif event == "late":
            world.pass_ms(6000)
        else:
            assert event == "reload"
            groups = world.broker.groups
            for partition in self.partitions():
                world.broker.turn.event(partial(groups.reload, partition))
        world.pass_ms(1)


EVENTS = ("join", "beat", "hold", "fail", "mend", "mend", "create", "delete", "late", "reload")
SHAPES: tuple[dict[str, Any], ...] = (
    {},
    {"topics": {"t": 4, "u": 2}},
    {"topics": {"u": 1}},
    {"topics": {"t": 9}},  # there are four
    {"topics": {"v": 1}},
    {"metadata": "m"},
    {"metadata": None},
    {"retention_time_ms": 5000},
    {"member_id": "none", "generation_id_or_member_epoch": 3},
)


@pytest.mark.long
@pytest.mark.parametrize("is_traced", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_what_is_not_decoded_has_the_same_effect(seed: int, is_traced: bool, served: Counter[Any]) -> None:
    """Connections commit the same again and again, while groups, topics, logs and connections change."""
    chance = random.Random(seed)
    sides = [Side(False, is_traced), Side(True, is_traced)]
    for _ in range(40):
        number, version, group = chance.randrange(3), chance.randint(2, 10), chance.choice(GROUPS)
        shape = chance.choice(SHAPES if chance.random() < 0.5 else SHAPES[:2])
        event, is_lost = chance.choice(EVENTS), chance.random() < 0.1
        for side in sides:
            side.happens(event)
        for offset in range(chance.randint(1, 9)):
            for side in sides:
                side.commit(number, version, offset, group, shape)
        for side in sides:
            side.world.pass_ms(1)
            if is_lost:
                side.lose(number)
        short, decoded = sides
        assert short.replies() == decoded.replies(), (event, version, group, shape)
        assert short.written() == decoded.written(), (event, version, group, shape)
        assert short.events() == decoded.events(), (event, version, group, shape)
    for side in sides:
        side.happens("mend")
    short, decoded = sides
    assert short.world.broker.groups.counts == decoded.world.broker.groups.counts
    times = [side.world.broker.metrics.apis for side in sides]
    for key in times[1]:
        assert (times[0][key].count, times[0][key].parked) == (times[1][key].count, times[1][key].parked)
    assert served[short.world.dispatcher] > 20
    assert served[decoded.world.dispatcher] == 0
    assert (short.noted > 200) is is_traced


AUTHORIZER = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow_everyone_if_no_acl_found": "true",
}


class Notes:
    """A log of requests."""

    def __init__(self) -> None:
        self.offsets: list[int] = []

    def request(self, context: Any, message: Any) -> None:
        self.offsets.append(message.topics[0].partitions[0].committed_offset)

    def reply(self, context: Any, message: Any) -> None: ...


def test_what_logs_requests_gets_each(served: Counter[Any]) -> None:
    world = connected()
    client, notes = world.connect(), Notes()
    assert commits(client, 5) == [0] * 20
    assert served.total() == 3, "two were decoded"
    world.dispatcher.log = notes
    commits(client, 5)
    assert (notes.offsets, served.total()) == ([0, 1, 2, 3, 4], 3)
    world.dispatcher.log = None
    commits(client, 5)
    assert served.total() == 8


def test_what_watches_requests_gets_each(served: Counter[Any]) -> None:
    class Watching(Watcher):
        seen = 0

        def watching(self, line: Line) -> Watch:
            return self.watch

        def watch(self, number: int, context: Any, request: Any, frame: memoryview, send: Any) -> Any:
            self.seen += 1
            return send

    world = connected()
    client, watcher = world.connect(), Watching()
    commits(client, 5)
    world.seam.add(watcher)
    commits(client, 5)
    assert (watcher.seen, served.total()) == (5, 3)


def test_a_trace_needs_no_messages_unless_it_looks_for_some(served: Counter[Any]) -> None:
    world = connected()
    client, tracer = world.connect(), traced(world)
    commits(client, 5)
    tracer.flush()
    assert (served.total(), tracer.recorded) == (3, 11)
    searching = traced(world, topic="t")
    commits(client, 5)
    searching.flush()
    assert (served.total(), searching.recorded) == (3, 11)
    world.seam.remove(searching)
    commits(client, 5)
    tracer.flush()
    assert (served.total(), tracer.recorded) == (8, 31)


@pytest.mark.parametrize(("partition", "undecoded"), [(3, 0), (7, 3)])
def test_what_acts_on_requests_gets_those_that_it_is_for(partition: int, undecoded: int, served: Counter[Any]) -> None:
    world = connected()
    client, acting = world.connect(), Refusing(partition)
    traced(world)
    world.seam.add(acting)
    commits(client, 5)
    assert (served.total(), acting.struck) == (undecoded, 0 if undecoded else 5)
    assert acting.asked >= 5


def test_quotas_count_each(served: Counter[Any]) -> None:
    world = connected()
    client = world.connect()
    commits(client, 5)
    r = m.AlterClientQuotasRequest
    entity = r.EntityData(entity_type="user", entity_name=None)
    op = r.OpData(key="request_percentage", value=0.001)
    answer = world.ask("AlterClientQuotas", 1, r(entries=[r.EntryData(entity=[entity], ops=[op])]))
    assert answer.entries[0].error_code == 0
    commits(client, 5)
    assert served.total() == 3


def test_rights_are_looked_at_each_time(served: Counter[Any]) -> None:
    assert commits(connected(**AUTHORIZER).connect(), 5) == [0] * 20
    assert served.total() == 0


def test_a_topic_that_was_made_again_has_its_new_id(served: Counter[Any]) -> None:
    world = connected()
    client = world.connect()
    commits(client, 5)
    create(world, "v", 1)  # other metadata changes nothing
    commits(client, 1)
    assert served.total() == 4
    world.ask("DeleteTopics", 4, m.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000))
    assert commits(client, 1) == [Errors.UNKNOWN_TOPIC_OR_PARTITION] * 4
    create(world, "t", 4)
    world.pass_ms(1000)
    assert commits(client, 5) == [0] * 20
    (host,) = (host for host in world.broker.groups.hosts.values() if "g" in host.shard.groups)
    stored = host.shard.offsets.by_group["g"].at()
    assert stored["t", 3][1:3] == (7, 0)
    assert {one[5] for one in stored.values()} == {world.broker.groups.image.topic_id("t")}


def test_a_group_that_was_deleted_is_there_again(served: Counter[Any]) -> None:
    world = connected()
    client = world.connect()
    commits(client, 5)
    world.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=["g"]))
    assert not world.ask("ListGroups", 4, m.ListGroupsRequest()).groups
    commits(client, 1)
    assert served.total() == 4
    assert [one.group_id for one in world.ask("ListGroups", 4, m.ListGroupsRequest()).groups] == ["g"]


def test_other_partitions_are_learned_when_they_come_often(served: Counter[Any]) -> None:
    client = connected().connect()
    commits(client, 18, topics={"t": 3})
    assert served.total() == 16
    commits(client, 18, topics={"t": 2, "u": 1})
    assert served.total() == 32, "as soon as the first, which were worth it"
    for _ in range(20):
        commits(client, 1, topics={"t": 3})
        commits(client, 1, topics={"u": 2})
    assert served.total() < 60


def test_commits_of_many_partitions_are_decoded(served: Counter[Any]) -> None:
    world = connected()
    create(world, "v", 129)
    commits(world.connect(), 4, topics={"v": 129})
    assert served.total() == 0
    commits(world.connect(), 4, topics={"v": 128})
    assert served.total() == 2


def test_what_connections_keep_has_a_limit(served: Counter[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_way, "KEPT_BYTES_MAX", 200)
    world = connected()
    frames = world.broker.kept_frames
    first, second = world.connect(), world.connect()
    commits(first, 3)
    assert served.total() == 1
    assert 100 < frames.size < 200
    commits(second, 5)
    assert served.total() == 1, "there is no room for another one"
    first.lose()
    assert frames.size == 0
    commits(second, 9)
    assert served.total() > 1
    commits(second, 30, topics={"u": 1})
    kept = frames.size
    second.lose()
    assert (kept > 0, frames.size) == (True, 0)


def test_a_connection_that_is_lost_waits_no_more(served: Counter[Any]) -> None:
    world = connected()
    client = world.connect()
    commits(client, 3)
    policy(world, "held")
    client.send("OffsetCommit", 8, request(100))
    times = world.broker.metrics.apis[8, 8]
    assert (served.total(), times.parked) == (2, 1)
    client.lose()
    assert times.parked == 0
    policy(world, "immediate")
    world.pass_ms(1)
    assert offset_of(world).committed_offset == 100
    assert client.ids[-1] == 3, "no reply is sent"


def test_a_commit_that_cannot_be_appended_gets_the_error(served: Counter[Any]) -> None:
    world = connected()
    client = world.connect()
    commits(client, 3)
    fail_appends(world, *(host.partition for host in world.broker.groups.hosts.values()))
    assert commits(client, 1) == [Errors.NOT_COORDINATOR] * 4
    fail_appends(world)
    commits(client, 1)
    assert served.total() == 3
    assert offset_of(world, 2).committed_offset == 2


def test_a_coordinator_that_moved_is_told(served: Counter[Any]) -> None:
    world = connected()
    client = world.connect()
    commits(client, 3)
    for host in list(world.broker.groups.hosts.values()):
        world.broker.groups.closed(host.partition)
    assert set(commits(client, 1)) == {Errors.NOT_COORDINATOR}
    assert served.total() == 2
