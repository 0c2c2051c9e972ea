"""Streams groups in the differential stories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from ottla.coordinator.group.format import GroupFormat
from ottla.protocol import messages as m
from ottla.protocol import records

from ..differential import Pair
from ..poll import until
from ..transcripts import Asks
from ..wire import Wire
from .topics import topic, topic_ids

SETTINGS: dict[str, object] = {
    "offsets.topic.num.partitions": 1,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.min.session.timeout.ms": 1000,
    "group.streams.max.size": 4,
}
R = m.StreamsGroupHeartbeatRequest
DELAY_MS = "600000"  # longer than a story


def info(name: str, partitions: int = 0, factor: int = 0, **configs: str) -> Any:
    """An internal topic of a topology."""
    pairs = [R.KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()]
    return R.TopicInfo(name=name, partitions=partitions, replication_factor=factor, topic_configs=pairs)


def part(name: str, *sources: str, **more: Any) -> Any:
    """A subtopology. `together`: copartition groups, each with the places of sources and of repartition topics."""
    together = [R.CopartitionGroup(source_topics=a, repartition_source_topics=b) for a, b in more.pop("together", ())]
    return R.Subtopology(
        subtopology_id=name,
        source_topics=list(sources),
        source_topic_regex=more.get("regex", []),
        state_changelog_topics=more.get("changelogs", []),
        repartition_sink_topics=more.get("sinks", []),
        repartition_source_topics=more.get("repartitions", []),
        copartition_groups=together,
    )


def topology(*parts: Any, epoch: int = 0) -> Any:
    return R.Topology(epoch=epoch, subtopologies=list(parts))


def tasks(**of: list[int]) -> list[Any]:
    """Tasks by subtopology: `s0=[0, 1]` are two of the subtopology 0."""
    return [R.TaskIds(subtopology_id=name.removeprefix("s"), partitions=numbers) for name, numbers in of.items()]


def beat(
    pair: Pair,
    group: str,
    epoch: int,
    member: str = "m1",
    *,
    has: list[Any] | None = None,
    standby: list[Any] | None = None,
    version: int = 1,
    **more: Any,
) -> Any:
    """A heartbeat; `has` and `standby` are what the member says that it has. Returns ours."""
    request = R(group_id=group, member_id=member, member_epoch=epoch)
    if has is not None or standby is not None:
        request.active_tasks, request.standby_tasks, request.warmup_tasks = has or [], standby or [], []
    for name, value in more.items():
        setattr(request, name, value)
    return pair.ask("StreamsGroupHeartbeat", version, request)[0]


def joining(group: str, *parts: Any, member: str = "m1") -> Any:
    """The first heartbeat of a member."""
    request = R(group_id=group, member_id=member, rebalance_timeout_ms=60_000, process_id=f"p-{member}")
    request.topology = topology(*parts)
    request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
    return request


def join(pair: Pair, group: str, *parts: Any, member: str = "m1", **more: Any) -> Any:
    given = {"rebalance_timeout_ms": 60_000, "process_id": f"p-{member}", "topology": topology(*parts)}
    return beat(pair, group, 0, member, **{"has": [], **given, **more})


class Application:
    """Members that take what they are given, and say so with their next heartbeat."""

    def __init__(self, pair: Pair, group: str, *parts: Any) -> None:
        self.pair, self.group, self.parts = pair, group, parts
        self.epochs: dict[str, int] = {}
        self._has: dict[str, tuple[list[Any], list[Any]]] = {}

    def join(self, member: str, **more: Any) -> None:
        self._note(member, join(self.pair, self.group, *self.parts, member=member, **more))

    def beat(self, member: str, **more: Any) -> Any:
        """Returns our reply."""
        has, standby = self._has[member]
        reply = beat(self.pair, self.group, self.epochs[member], member, has=has, standby=standby, **more)
        self._note(member, reply)
        return reply

    def leave(self, member: str) -> None:
        beat(self.pair, self.group, -1, member)
        del self.epochs[member]

    def settle(self, rounds: int = 3) -> None:
        for _ in range(rounds):
            for member in list(self.epochs):
                self.beat(member)

    def _note(self, member: str, reply: Any) -> None:
        assert reply.error_code == 0, reply
        self.epochs[member] = reply.member_epoch
        if reply.active_tasks is not None:
            given = (reply.active_tasks, reply.standby_tasks)
            active, standby = (
                [R.TaskIds(subtopology_id=one.subtopology_id, partitions=one.partitions) for one in of] for of in given
            )
            self._has[member] = active, standby


def awaited(pair: Pair, name: str, request: Any, done: Callable[[Any], bool]) -> Any:
    """Asks both the same until each has answered what it should; returns what ours did.

    Each in turn, because a member that does not send heartbeats is thrown out.
    """
    found: dict[int, Any] = {}

    def all_answered() -> bool:
        for side, wire in enumerate(pair.wires):
            if side not in found:
                reply = wire.ask(name, 1, request)
                if done(reply):
                    found[side] = reply
        return len(found) == 2

    until(all_answered, f"the answer to {request}", every=0.04)  # a transcript has every answer
    return found[0]


def beats_until(pair: Pair, group: str, epoch: int, done: Callable[[Any], bool], member: str = "m1", **has: Any) -> Any:
    return awaited(pair, "StreamsGroupHeartbeat", R(group_id=group, member_id=member, member_epoch=epoch, **has), done)


def given(reply: Any) -> bool:
    assert reply.error_code == 0, reply
    return bool(reply.active_tasks)


def is_gone(reply: Any) -> bool:
    return bool(reply.error_code)


def becomes(pair: Pair, group: str, state: str) -> None:
    """Waits until both groups are in a state; shows them."""
    request = m.StreamsGroupDescribeRequest(group_ids=[group])
    awaited(pair, "StreamsGroupDescribe", request, lambda reply: bool(reply.groups[0].group_state == state))
    describe(pair, group)


def source(pair: Pair, name: str, partitions: int = 1) -> None:
    """A topic that the group coordinators know."""
    topic(pair, name, partitions)
    known(pair, name)


def known(pair: Pair, *names: str) -> None:
    """Waits until both brokers have topics and their group coordinators know of them."""
    for name in names:
        topic_ids(pair, name)
    group = f"probe-{names[0]}"
    request = joining(group, part("0", *names), member="probe")
    pair.until("StreamsGroupHeartbeat", 1, request, lambda reply: not reply.status and bool(reply.active_tasks))
    leave = R(group_id=group, member_id="probe", member_epoch=-1)
    pair.until("StreamsGroupHeartbeat", 1, leave, lambda reply: True)


def describe(pair: Pair, *groups: str, version: int = 1, operations: bool = False) -> Any:
    request = m.StreamsGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations)
    return pair.ask("StreamsGroupDescribe", version, request)[0]


def listed(pair: Pair, group: str, states_filter: list[str], types_filter: list[str]) -> None:
    """Lists the groups. Those of other stories are left out."""

    def trim(reply: Any) -> None:
        reply.groups = [one for one in reply.groups if one.group_id == group]

    pair.trims["ListGroups"] = trim
    pair.ask("ListGroups", 5, m.ListGroupsRequest(states_filter=states_filter, types_filter=types_filter))


def configure(pair: Pair, group: str, **values: str | None) -> None:
    """Alters configs of a group, until both brokers use them."""
    pair.ask("IncrementalAlterConfigs", 1, _altered(group, values))
    pair.until("DescribeConfigs", 4, _configs_of(group), lambda reply: _has(reply, values))
    if not pair.transcript.playing:
        _publish_another(pair.addresses[1])


def _publish_another(bootstrap_servers: str) -> None:
    """Waits until Kafka shows a further change, of a group without members: it shows a change before its coordinators
    follow it, and they follow it before it goes on to the next change.
    """
    with Wire(bootstrap_servers) as kafka:
        described = kafka.ask("DescribeConfigs", 4, _configs_of("nobodys"))
        before = next(one.value for one in described.results[0].configs if one.name == "streams.num.standby.replicas")
        values: dict[str, str | None] = {"streams_num_standby_replicas": "1" if before == "0" else "0"}
        kafka.ask("IncrementalAlterConfigs", 1, _altered("nobodys", values))
        until(lambda: _has(kafka.ask("DescribeConfigs", 4, _configs_of("nobodys")), values), "a further change")


def _altered(group: str, values: dict[str, str | None]) -> m.IncrementalAlterConfigsRequest:
    r = m.IncrementalAlterConfigsRequest
    configs = [
        r.AlterableConfig(name=key.replace("_", "."), config_operation=0 if value is not None else 1, value=value)
        for key, value in values.items()
    ]
    return r(resources=[r.AlterConfigsResource(resource_type=32, resource_name=group, configs=configs)])


def _configs_of(group: str) -> m.DescribeConfigsRequest:
    r = m.DescribeConfigsRequest
    return r(resources=[r.DescribeConfigsResource(resource_type=32, resource_name=group)])


def _has(reply: Any, values: dict[str, str | None]) -> bool:
    found = {one.name: one.value for one in reply.results[0].configs}
    return all(value is None or found.get(key.replace("_", ".")) == value for key, value in values.items())


def written(wire: Asks, group: str) -> list[tuple[Any, Any]]:
    """The records of a group, without what is random or a moment."""
    name = m.MetadataRequest.MetadataRequestTopic(name="__consumer_offsets")
    (found,) = wire.ask("Metadata", 12, m.MetadataRequest(topics=[name])).topics
    r = m.FetchRequest
    wanted = r.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 24)
    request = r(max_wait_ms=100, min_bytes=1, topics=[r.FetchTopic(topic_id=found.topic_id, partitions=[wanted])])
    (reply,) = wire.ask("Fetch", 16, request).responses[0].partitions
    pairs: list[tuple[Any, Any]] = []
    for at in records.batches(bytes(reply.records)):
        if at.header.is_control:  # the end of a transaction
            continue
        for record in records.decode(bytes(reply.records), at):
            decoded = GroupFormat().decode(record)
            if decoded is not None and getattr(decoded[0], "group_id", None) == group:
                pairs.append(decoded)
    for _, value in pairs:
        if hasattr(value, "metadata_hash"):  # of the topics' ids
            value.metadata_hash = int(value.metadata_hash != 0)
        if hasattr(value, "assignment_timestamp"):
            value.assignment_timestamp = int(value.assignment_timestamp > 0)
    return pairs


def same_records(pair: Pair, group: str) -> None:
    """Both wrote the same, the records of several members in any order."""
    mine, theirs = (Counter(map(repr, written(wire, group))) for wire in pair.wires)
    assert mine == theirs, f"only ottla {mine - theirs}\nonly Kafka {theirs - mine}"
