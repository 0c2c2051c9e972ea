"""Members of a streams group, and administrators who change the topics of groups that are at work (`chance.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.protocol import messages as m

from ..support.poll import until
from .chance_clients import Asked, configured
from .chance_members import GroupClient, Members

R: Final = m.StreamsGroupHeartbeatRequest
U: Final = m.StreamsGroupTopologyDescriptionUpdateRequest
PARTITIONS_MAX: Final = 5
SOURCE, PROCESSOR, SINK = 1, 2, 3  # types of nodes
TASK_FIELDS: Final = ("active_tasks", "standby_tasks", "warmup_tasks")


class Administered(GroupClient):
    """A client of which one in some steps is an administrator's. `awaited`: the topics that have changed, by the number
    of their partitions, None where they are gone.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.counts = {self.two: 2, self.one: 1}

    def administer(self) -> Asked:
        steps = [self.grow] * 3 + [self.alter, self.elect, self.reassign, self.reassignments, self.metadata]
        return self.chance.choice([*steps, self.delete if self.counts[self.one] else self.create])()

    def grow(self) -> Asked:
        r, count = m.CreatePartitionsRequest, self.counts[self.two]
        wanted = count if count == PARTITIONS_MAX or self.errs() else count + 1
        topics = [r.CreatePartitionsTopic(name=self.two, count=wanted, assignments=None)]
        return "CreatePartitions", self.chance.randint(0, 3), r(topics=topics, timeout_ms=30_000)

    def delete(self) -> Asked:
        request = m.DeleteTopicsRequest(topic_names=[self.one], timeout_ms=30_000)
        return "DeleteTopics", self.chance.randint(1, 5), request

    def create(self) -> Asked:
        r = m.CreateTopicsRequest
        topic = r.CreatableTopic(name=self.one, num_partitions=self.chance.choice((1, 1, 2)), replication_factor=1)
        return "CreateTopics", 7, r(topics=[topic], timeout_ms=30_000)

    def alter(self) -> Asked:
        r = m.IncrementalAlterConfigsRequest
        key, value = self.chance.choice((("retention.ms", "-1"), ("max.message.bytes", "1000"), ("bogus", "1")))
        change = r.AlterableConfig(name=key, config_operation=self.chance.choice((0, 0, 1)), value=value)
        resource = r.AlterConfigsResource(resource_type=2, resource_name=self.two, configs=[change])
        return "IncrementalAlterConfigs", self.chance.randint(0, 1), r(resources=[resource])

    def elect(self) -> Asked:
        r = m.ElectLeadersRequest
        topics = [r.TopicPartitions(topic=self.two, partitions=[0, self.chance.choice((1, 7))])]
        request = r(topic_partitions=topics, timeout_ms=30_000, election_type=self.chance.choice((0, 1)))
        return "ElectLeaders", self.chance.randint(1, 2), request

    def reassign(self) -> Asked:
        r = m.AlterPartitionReassignmentsRequest
        part = r.ReassignablePartition(partition_index=0, replicas=self.chance.choice(([1], [1], None, [2], [])))
        topics = [r.ReassignableTopic(name=self.two, partitions=[part])]
        return "AlterPartitionReassignments", self.chance.randint(0, 1), r(topics=topics, timeout_ms=30_000)

    def reassignments(self) -> Asked:
        return "ListPartitionReassignments", 0, m.ListPartitionReassignmentsRequest(topics=None, timeout_ms=30_000)

    def metadata(self) -> Asked:
        r = m.MetadataRequest
        return "Metadata", 12, r(topics=[r.MetadataRequestTopic(name=name) for name in self.counts])

    def heard(self, name: str, version: int, request: Any, reply: Any) -> None:
        if name == "CreatePartitions" and reply.results[0].error_code == 0:
            self.resized(self.two, request.topics[0].count)
        elif name == "DeleteTopics" and reply.responses[0].error_code == 0:
            self.resized(self.one, 0)
        elif name == "CreateTopics" and reply.topics[0].error_code == 0:
            self.topics[self.one] = reply.topics[0].topic_id
            self.resized(self.one, reply.topics[0].num_partitions)

    def resized(self, name: str, count: int) -> None:
        self.counts[name] = self.awaited[name] = count


class Moved(Members, Administered):
    """Members of a consumer group whose topics change."""

    PREFIX = "d"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.has_two = True  # partitions that the range assignor shares out

    @property
    def steps(self) -> tuple[Callable[[], Asked], ...]:
        steps = super().steps
        return (*steps, *[self.administer] * (1 + len(steps) // 12))

    def subscription(self) -> dict[str, Any]:
        return {"subscribed_topic_names": [self.two, self.one][: 1 + self.errs(0.4)]}

    def heard(self, name: str, version: int, request: Any, reply: Any) -> None:
        Members.heard(self, name, version, request, reply)
        Administered.heard(self, name, version, request, reply)


class Streams(Administered):
    """Three members of a streams group, of two processes; the topology is one of some, and some do not fit."""

    PREFIX = "z"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.tasks: dict[str, dict[str, list[Any]]] = {}  # by member and kind
        self.has_endpoints = self.chance.random() < 0.4
        self.endpoints = 0  # the epoch that was heard last
        self.internal = (f"repart{self.episode}", f"change{self.episode}")
        kinds = (self.plain, self.stateful, self.chained, self.chained, self.joined, self.unfit)
        self.parts = self.chance.choice(kinds)()

    def ready(self, ask: Callable[[str, int, Any], Any]) -> None:
        """The coordinator has heard of the topics."""
        ask(*self.configure())
        part = R.Subtopology(subtopology_id="0", source_topics=[self.two])
        beat = R(group_id=f"first{self.episode}", member_id="first", rebalance_timeout_ms=60_000, process_id="p")
        beat.topology = R.Topology(epoch=0, subtopologies=[part])
        beat.active_tasks, beat.standby_tasks, beat.warmup_tasks = [], [], []
        until(lambda: bool(ask("StreamsGroupHeartbeat", 1, beat).active_tasks), "the topic is assigned")

    # topologies

    def info(self, name: str, partitions: int = 0) -> Any:
        return R.TopicInfo(name=name, partitions=partitions)

    def plain(self) -> list[Any]:
        return [R.Subtopology(subtopology_id="0", source_topics=[self.two, self.one])]

    def stateful(self) -> list[Any]:
        return [
            R.Subtopology(
                subtopology_id="0", source_topics=[self.two], state_changelog_topics=[self.info(self.internal[1])]
            ),
            R.Subtopology(subtopology_id="1", source_topics=[self.one]),
        ]

    def chained(self) -> list[Any]:
        repartition, changelog = self.internal
        count = self.chance.choice((0, 0, 3))
        return [
            R.Subtopology(subtopology_id="0", source_topics=[self.two], repartition_sink_topics=[repartition]),
            R.Subtopology(
                subtopology_id="1",
                repartition_source_topics=[self.info(repartition, count)],
                state_changelog_topics=[self.info(changelog)],
            ),
        ]

    def joined(self) -> list[Any]:
        """Topics that must have the same number of partitions; at times both exist."""
        if self.chance.random() < 0.2:
            both = R.CopartitionGroup(source_topics=[0, 1])
            return [R.Subtopology(subtopology_id="0", source_topics=[self.two, self.one], copartition_groups=[both])]
        together = R.CopartitionGroup(source_topics=[0], repartition_source_topics=[0])
        joining = R.Subtopology(subtopology_id="1", source_topics=[self.two], copartition_groups=[together])
        joining.repartition_source_topics = [self.info(self.internal[0], self.chance.choice((0, 0, 0, 2)))]
        joining.state_changelog_topics = [self.info(self.internal[1])]
        reading = R.Subtopology(subtopology_id="0", source_topics=[self.one])
        reading.repartition_sink_topics = [self.internal[0]]
        return [reading, joining]

    def unfit(self) -> list[Any]:
        changelogs = [self.info(self.internal[1])]
        sources = [self.two, f"missing{self.episode}"]
        return [R.Subtopology(subtopology_id="0", source_topics=sources, state_changelog_topics=changelogs)]

    def topology(self) -> Any:
        made = R.Topology(epoch=self.chance.choice((1, 1, 1, 0, 2)) if self.errs(0.04) else 1, subtopologies=self.parts)
        if self.errs(0.04):
            made.subtopologies = self.plain()
        return made

    # what the members ask

    @property
    def steps(self) -> tuple[Callable[[], Asked], ...]:
        if self.chance.random() < 0.5:
            self.now = self.chance.choice(("m1", "m2", "m3", "m3"))
        if self.now not in self.epochs:
            rare = (self.describe, self.tell_topology, *[self.remove] * (not self.epochs))
            return (*[self.join] * 6, *[self.leave] * (3 if self.now == "m3" else 1), *rare)
        rare = (self.leave, self.commit, self.offsets, self.join, self.restart, self.administer, self.administer)
        return (*[self.beat] * 16, *[self.describe] * 3, *[self.tell_topology] * 3, *rare)

    def configure(self) -> Asked:
        return configured(self.group, {"streams.num.standby.replicas": self.chance.choice(("0", "1", "1"))})

    def request(self, epoch: int, **more: Any) -> Asked:
        request = R(group_id=self.group, member_id=self.member_id(self.now), member_epoch=epoch)
        request.endpoint_information_epoch = self.endpoints - self.errs(0.1)
        if self.now == "m3":
            request.instance_id = f"i{self.episode}"
        for name, value in more.items():
            setattr(request, name, value)
        return "StreamsGroupHeartbeat", 1, request

    def join(self) -> Asked:
        empty: dict[str, Any] = {kind: [] for kind in TASK_FIELDS}
        process = "p2" if self.now == "m3" else "p1"
        endpoint = R.Endpoint(host=process, port=1000) if self.has_endpoints else None
        more = {"topology": self.topology(), "rebalance_timeout_ms": 60_000, "process_id": process}
        return self.request(0, user_endpoint=endpoint, **more, **empty)

    def restart(self) -> Asked:
        """The process of a member is another one."""
        return self.request(self.epochs[self.now], process_id=self.chance.choice(("p1", "p2", "p3")))

    def beat(self) -> Asked:
        epoch = self.epochs[self.now]
        more: dict[str, Any] = {}
        if self.errs(0.06):
            epoch = self.chance.choice((epoch + 1, epoch - 1, epoch - 1))
        if self.chance.random() < 0.6:
            has = self.tasks.get(self.now, {})
            for kind in TASK_FIELDS:
                more[kind] = [R.TaskIds(subtopology_id=one, partitions=of) for one, of in has.get(kind, [])]
        if self.errs(0.1):
            partition, offset = self.chance.choice((0, 1)), self.chance.randint(0, 9)
            said = [R.TaskOffset(subtopology_id="0", partition=partition, offset=offset)]
            more["task_offsets"] = more["task_end_offsets"] = said
        return self.request(epoch, **more)

    def leave(self) -> Asked:
        more = {"shutdown_application": True} if self.errs(0.02) else {}
        return self.request(-2 if self.now == "m3" and self.errs(0.6) else -1, **more)

    def commit(self) -> Asked:
        r, (name, partition) = m.OffsetCommitRequest, self.place()
        part = r.OffsetCommitRequestPartition(partition_index=partition, committed_offset=self.chance.randint(0, 9))
        epoch = self.epochs[self.now] - self.errs(0.2)
        request = r(group_id=self.group, member_id=self.member_id(self.now), generation_id_or_member_epoch=epoch)
        request.topics = [r.OffsetCommitRequestTopic(name=name, partitions=[part])]
        return "OffsetCommit", 9, request

    def describe(self) -> Asked:
        version, request = self.chance.randint(0, 1), m.StreamsGroupDescribeRequest(group_ids=[self.group])
        request.include_topology_description = version >= 1 and self.errs(0.7)
        return "StreamsGroupDescribe", version, request

    def remove(self) -> Asked:
        return "DeleteGroups", self.chance.randint(0, 2), m.DeleteGroupsRequest(groups_names=[self.group])

    def tell_topology(self) -> Asked:
        """A member says what its topology looks like, which is at times another one or none."""
        request = U(group_id=self.group, member_id=self.member_id(self.now), topology_epoch=1)
        if self.errs():
            request.topology_epoch = self.chance.choice((0, 2, -1))
        if self.errs(0.04):
            request.member_id = self.chance.choice(("", "nobody", " "))
        if self.errs(0.03):
            request.group_id = self.chance.choice(("", f"missing{self.episode}"))
        made = U.TopologyDescription()
        for number in range(self.chance.choice((0, 1, 2, 2))):
            nodes = [self.node() for _ in range(self.chance.randint(0, 3))]
            made.subtopologies.append(U.TopologyDescriptionSubtopology(subtopology_id=str(number), nodes=nodes))
        if self.errs(0.3):
            source, processor = self.node(SOURCE), self.node(SINK if self.errs(0.1) else PROCESSOR)
            made.global_stores = [U.TopologyDescriptionGlobalStore(source=source, processor=processor)]
        request.topology_description = made
        return "StreamsGroupTopologyDescriptionUpdate", 0, request

    def node(self, kind: int = 0) -> Any:
        """A node with what its type has, and with what it does not."""
        kind = kind or self.chance.choice((SOURCE, PROCESSOR, PROCESSOR, SINK))
        if self.errs(0.02):
            kind = self.chance.choice((0, 4, -1))
        node = U.TopologyDescriptionNode(name=f"n{self.chance.randint(0, 9)}", node_type=kind, sink_topic=None)
        if kind == SOURCE or self.errs(0.1):
            node.source_topics = [self.two, *[self.one, self.two][: self.chance.randint(0, 2)]]
        if kind == SINK or self.errs(0.1):
            node.sink_topic = self.chance.choice((self.one, None, ""))
        if kind == PROCESSOR or self.errs(0.1):
            node.stores = self.chance.choice(([], ["s"], ["s", "s", "r"]))
        node.successors = [f"n{self.chance.randint(0, 9)}" for _ in range(self.chance.randint(0, 3))]
        return node

    def offsets(self) -> Asked:
        r = m.OffsetFetchRequest
        group = r.OffsetFetchRequestGroup(group_id=self.group, topics=None)
        group.member_id, group.member_epoch = self.member_id(self.now), self.epochs[self.now]
        return "OffsetFetch", 9, r(groups=[group])

    def heard(self, name: str, version: int, request: Any, reply: Any) -> None:
        super().heard(name, version, request, reply)
        if name != "StreamsGroupHeartbeat":
            return
        if reply.error_code or reply.member_epoch < 0:
            self.epochs.pop(self.now, None)
            self.tasks.pop(self.now, None)
            return
        self.epochs[self.now] = reply.member_epoch
        self.endpoints = reply.endpoint_information_epoch
        if reply.active_tasks is not None:
            self.tasks[self.now] = {
                kind: [(one.subtopology_id, list(one.partitions)) for one in getattr(reply, kind) or []]
                for kind in TASK_FIELDS
            }
        text = " ".join(one.status_detail for one in reply.status or ())
        self.awaited |= dict.fromkeys([one for one in self.internal if one in text], -1)
