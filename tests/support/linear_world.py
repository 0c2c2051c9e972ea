"""The world that requests of `linear.py` find, and what some of them need to come past their first checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ottla.broker.apis import apis
from ottla.broker.config.checks import IN_MEMORY_PLUGIN
from ottla.broker.net.api import Api
from ottla.broker.net.dispatch import Dispatcher
from ottla.protocol import messages as m
from ottla.protocol.config_def import keys
from ottla.storage.checkpoints import uuid_to_text

from .ask import batch, produce_message
from .stories.streams import joining, part
from .work import counting
from .world import World

if TYPE_CHECKING:
    from .linear import Requests

SAME, UNKNOWN, EXISTING = "same", "unknown", "existing"
WIDE = "wide"  # the topic with many partitions
GROUP, MEMBERS, SHARES = "joined", "members", "shares"


def _counted(api: Api) -> Api:
    """Returns an API whose handler gets requests whose comparisons count."""
    handle = api.handle
    return replace(api, _handle=lambda context, request: handle(context, counting(request)))


def id_of(world: World, topic: str) -> bytes:
    return bytes(world.broker.image.topics[topic].id)


def _timed(q: Requests) -> dict[str, Any]:
    return {"timeout_ms": 10_000}


def _classic(q: Requests) -> dict[str, Any]:
    """A second member of a group whose first one has as many protocols."""
    group = f"classic{q.world.chance.random()}"
    first = {"group_id": group, "protocol_type": "consumer", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 9000}
    _join(q.world, replace(q, case=replace(q.case, naming=EXISTING)).unprepared(**first, group_instance_id="i"))
    return {**first, "group_instance_id": "j"}


def _sync(q: Requests) -> dict[str, Any]:
    """The leader of a group of one."""
    who: dict[str, Any] = {"group_id": "to-sync", "group_instance_id": "a1", "protocol_type": "consumer"}
    request = m.JoinGroupRequest(**who, session_timeout_ms=10_000, rebalance_timeout_ms=9000)
    request.protocols = [m.JoinGroupRequest.JoinGroupRequestProtocol(name="p", metadata=b"")]
    found = _join(q.world, request)
    return {**who, "protocol_name": "p", "generation_id": found.generation_id, "member_id": found.member_id}


def _join(world: World, request: Any) -> Any:
    found = world.ask("JoinGroup", 9, request)
    assert found.error_code == 0
    return found


def _in_transaction(q: Requests) -> dict[str, Any]:
    name = f"y{q.world.chance.random()}"
    reply = q.world.ask(
        "InitProducerId", 5, m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    )
    assert reply.error_code == 0
    who = {"producer_id": reply.producer_id, "producer_epoch": reply.producer_epoch}
    return {"transactional_id": name, "generation_id_or_member_epoch": -1, "group_id": "txn", **who}


def _share_member(world: World) -> dict[str, Any]:
    """A member of the share group, and what it asks for."""
    member = uuid_to_text(world.chance.randbytes(16))
    beat = m.ShareGroupHeartbeatRequest(
        group_id=SHARES, member_id=member, member_epoch=0, subscribed_topic_names=[WIDE]
    )
    assert world.ask("ShareGroupHeartbeat", 1, beat).error_code == 0
    world.pass_ms(5)
    return {
        "group_id": SHARES,
        "member_id": member,
        "max_wait_ms": 0,
        "max_bytes": 1 << 20,
        "max_records": 5000,
        "batch_size": 5000,
    }


def _share_fetch(q: Requests) -> dict[str, Any]:
    if "acknowledgement_batches" not in q.case.path:
        return {**_share_member(q.world), "share_session_epoch": 0}
    return {**_acquired(q), "share_session_epoch": 1, "max_records": 1, "batch_size": 1}


def _acquired(q: Requests) -> dict[str, Any]:
    """A member of the share group that has acquired all records there are, or has a session of the partitions without
    any.
    """
    r = m.ShareFetchRequest
    who = _share_member(q.world)
    wide = id_of(q.world, WIDE)
    indexes = (
        range(1) if "acknowledgement_batches" in q.case.path else range(1, q.world.broker.image.partition_counts[wide])
    )
    topic = r.FetchTopic(topic_id=wide, partitions=[r.FetchPartition(partition_index=n) for n in indexes])
    found = q.world.ask("ShareFetch", 2, r(**who, topics=[topic]))
    assert found.error_code == 0
    return {
        "group_id": SHARES,
        "member_id": who["member_id"],
        "share_session_epoch": -1,
    }  # ends the session: the next gets all of it again


def _modern(q: Requests) -> dict[str, Any]:
    who: dict[str, Any] = {"group_id": "modern", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 10_000}
    if q.case.path == ("subscribed_topic_names",):
        return {**who, "topic_partitions": []}
    joined = m.ConsumerGroupHeartbeatRequest(**who, subscribed_topic_names=[WIDE], topic_partitions=[])
    found = q.world.ask("ConsumerGroupHeartbeat", 1, joined)
    assert found.error_code == 0
    return {**who, "member_epoch": found.member_epoch}


def _described(q: Requests) -> dict[str, Any]:
    """A member of a streams group, whose topology is described."""
    found = q.world.ask("StreamsGroupHeartbeat", 1, joining("described", part("0", WIDE), member="m"))
    assert found.error_code == 0
    return {"group_id": "described", "member_id": "m", "topology_epoch": 0}


PREPARED: dict[str, Callable[[Requests], dict[str, Any]]] = {
    "Produce": lambda q: {"acks": -1, "timeout_ms": 1000, "transactional_id": None},
    "Fetch": lambda q: {"max_wait_ms": 0, "max_bytes": 1 << 20},
    "CreateTopics": _timed,
    "DeleteTopics": _timed,
    "CreatePartitions": _timed,
    "DeleteRecords": _timed,
    "ElectLeaders": _timed,
    "AlterPartitionReassignments": _timed,
    "JoinGroup": _classic,
    "SyncGroup": _sync,
    "LeaveGroup": lambda q: {"group_id": MEMBERS},
    "OffsetCommit": lambda q: {"group_id": "plain", "generation_id_or_member_epoch": -1, "member_id": ""},
    "TxnOffsetCommit": _in_transaction,
    "ConsumerGroupHeartbeat": _modern,
    "StreamsGroupTopologyDescriptionUpdate": _described,
    "ShareGroupHeartbeat": lambda q: {"group_id": "sharing", "member_id": "A" * 22, "member_epoch": 0},
    "ShareFetch": _share_fetch,
    "ShareAcknowledge": _acquired,
    "DescribeTopicPartitions": lambda q: {"response_partition_limit": 2000, "cursor": None},
    "FindCoordinator": lambda q: {"key_type": 0},
    "AlterShareGroupOffsets": lambda q: {"group_id": SHARES},
    "DeleteShareGroupOffsets": lambda q: {"group_id": SHARES},
}
LEFT_OUT = {  # arrays that stay empty unless they are what grows
    "assignments": ("CreateTopics", "CreatePartitions"),
    "acknowledgement_batches": ("ShareFetch",),
    "topic_partitions": ("ConsumerGroupHeartbeat",),
}
TOPIC_KEYS = {key.name: key.default or "" for key in keys("topic").values() if not key.internal}
TYPES = (2, 4, 8, 16, 32)  # of resources


def _config_name(requests: Requests, number: int) -> str:
    return list(TOPIC_KEYS)[number % len(TOPIC_KEYS)]


def _config_value(requests: Requests, number: int) -> str:
    return list(TOPIC_KEYS.values())[number % len(TOPIC_KEYS)]


TOPIC, LITERAL, READ, ALLOW, ANY = 2, 3, 3, 3, 1  # of access control entries
NODES = ("topology_description", "subtopologies", "nodes")
STORES = ("topology_description", "global_stores")
VALUES: dict[tuple[str, tuple[str, ...]], Callable[[Requests, int], Any]] = {
    ("CreateTopics", ("topics", "name")): lambda q, n: f"{q.case.naming}.{n if q.case.naming != SAME else 0}",
    ("CreateTopics", ("topics", "num_partitions")): lambda q, n: -1,
    ("CreateTopics", ("topics", "replication_factor")): lambda q, n: -1,
    ("CreateTopics", ("topics", "configs", "name")): _config_name,
    ("CreateTopics", ("topics", "configs", "value")): _config_value,
    ("CreateTopics", ("topics", "assignments", "partition_index")): lambda q, n: (
        n - q.first if q.case.path[-1] == "assignments" else 0
    ),
    ("CreatePartitions", ("topics", "count")): lambda q, n: (
        2 if q.case.path == ("topics",) else q.partitions_of_wide() + q.count
    ),
    ("DeleteTopics", ("topics", "name")): lambda q, n: None,
    ("AlterConfigs", ("resources", "resource_type")): lambda q, n: 2,
    ("AlterConfigs", ("resources", "configs", "name")): _config_name,
    ("AlterConfigs", ("resources", "configs", "value")): _config_value,
    ("IncrementalAlterConfigs", ("resources", "resource_type")): lambda q, n: 2,
    ("IncrementalAlterConfigs", ("resources", "configs", "name")): _config_name,
    ("IncrementalAlterConfigs", ("resources", "configs", "value")): _config_value,
    ("DescribeConfigs", ("resources", "resource_type")): lambda q, n: 2,
    ("DescribeConfigs", ("resources", "configuration_keys")): _config_name,
    ("ListConfigResources", ("resource_types",)): lambda q, n: TYPES[n % len(TYPES)],
    ("AlterUserScramCredentials", ("upsertions", "iterations")): lambda q, n: 4096,
    ("AlterUserScramCredentials", ("upsertions", "mechanism")): lambda q, n: 1,
    ("AlterUserScramCredentials", ("deletions", "mechanism")): lambda q, n: 1,
    ("AlterUserScramCredentials", ("upsertions", "salted_password")): lambda q, n: b"x" * 32,
    ("LeaveGroup", ("members", "member_id")): lambda q, n: "",
    ("SyncGroup", ("assignments", "member_id")): lambda q, n: f"a{n}",
    ("CreateAcls", ("creations", "resource_type")): lambda q, n: TOPIC,
    ("CreateAcls", ("creations", "resource_pattern_type")): lambda q, n: LITERAL,
    ("CreateAcls", ("creations", "principal")): lambda q, n: f"User:{n if q.case.naming != SAME else 0}",
    ("CreateAcls", ("creations", "operation")): lambda q, n: READ,
    ("CreateAcls", ("creations", "permission_type")): lambda q, n: ALLOW,
    ("DeleteAcls", ("filters", "resource_type_filter")): lambda q, n: ANY,
    ("DeleteAcls", ("filters", "pattern_type_filter")): lambda q, n: ANY,
    ("DeleteAcls", ("filters", "operation")): lambda q, n: ANY,
    ("DeleteAcls", ("filters", "permission_type")): lambda q, n: ANY,
    ("StreamsGroupTopologyDescriptionUpdate", (*NODES, "node_type")): lambda q, n: 1,
    ("StreamsGroupTopologyDescriptionUpdate", (*STORES, "source", "node_type")): lambda q, n: 1,
    ("StreamsGroupTopologyDescriptionUpdate", (*STORES, "processor", "node_type")): lambda q, n: 2,
    ("WriteTxnMarkers", ("markers", "producer_id")): lambda q, n: n if q.case.naming != SAME else 0,
    ("WriteShareGroupState", ("topics", "partitions", "state_batches", "delivery_count")): lambda q, n: 1,
    ("WriteShareGroupState", ("topics", "partitions", "state_batches", "first_offset")): lambda q, n: 2 * n,
    ("WriteShareGroupState", ("topics", "partitions", "state_batches", "last_offset")): lambda q, n: 2 * n,
}
BATCHES = ("topics", "partitions", "acknowledgement_batches")
for _name in ("ShareFetch", "ShareAcknowledge"):
    VALUES[_name, (*BATCHES, "first_offset")] = lambda q, n: max(n - q.first, 0)
    VALUES[_name, (*BATCHES, "last_offset")] = lambda q, n: (
        max(n - q.first, 0) if q.case.path == BATCHES else q.count - 1
    )
    VALUES[_name, (*BATCHES, "acknowledge_types")] = lambda q, n: 2


def made_world(size: int) -> World:
    """A broker with `size` topics, a topic of as many partitions, groups with offsets, members and transactional
    ids.
    """
    logs = ("offsets_topic", "transaction_state_log", "share_coordinator_state_topic")
    settings = {
        "group_share_max_delivery_count_limit": "25",
        "group_streams_topology_description_plugin_class": IN_MEMORY_PLUGIN,
    }
    import_module("ottla.broker.net.turns")  # not at the first large request
    world = World(None, 0, **settings, **{f"{log}_num_partitions": "2" for log in logs})
    counted = {key: _counted(api) for key, api in world.dispatcher.apis.items()}
    world.dispatcher = Dispatcher(world.broker, counted)
    r = m.CreateTopicsRequest
    wanted = [r.CreatableTopic(name=f"t{n}", num_partitions=1, replication_factor=1) for n in range(size)]
    wanted.append(r.CreatableTopic(name=WIDE, num_partitions=size, replication_factor=1))
    found = world.ask("CreateTopics", 7, r(topics=wanted, timeout_ms=10_000))
    assert not any(one.error_code for one in found.topics)
    for kind, key in ((0, "g"), (1, "x"), (2, f"g:{'A' * 22}:0")):
        world.ask("FindCoordinator", 6, m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]))
    c = m.OffsetCommitRequest
    for n in range(size):
        topic = c.OffsetCommitRequestTopic(
            name=WIDE, partitions=[c.OffsetCommitRequestPartition(partition_index=n, committed_offset=1)]
        )
        for group in (f"g{n}", GROUP):
            world.ask("OffsetCommit", 9, c(group_id=group, generation_id_or_member_epoch=-1, topics=[topic]))
        world.ask("InitProducerId", 5, m.InitProducerIdRequest(transactional_id=f"x{n}", transaction_timeout_ms=60_000))
    _populate(world, size)
    for api in apis().values():
        assert api.handle is not None  # imports it
    world.pass_ms(10_001 - world.schedule.monotonic_ms() % 10_000)  # just after every round that there is
    return world


def _populate(world: World, size: int) -> None:
    """Members of a classic group, a share group that begins at the start, records in the first partition, and users."""
    r = m.JoinGroupRequest
    joins = [
        r(
            group_id=MEMBERS,
            group_instance_id=f"a{n}",
            protocol_type="consumer",
            session_timeout_ms=300_000,
            rebalance_timeout_ms=300_000,
        )
        for n in range(size)
    ]
    for join in joins:
        join.protocols = [r.JoinGroupRequestProtocol(name="p", metadata=b"")]
    answers = world.together(*(("JoinGroup", 9, join) for join in joins))
    world.pass_ms(3000)
    assert all(answer.done and not answer.reply.error_code for answer in answers)
    c = m.IncrementalAlterConfigsRequest
    values = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": "25"}
    configs = [c.AlterableConfig(name=name, config_operation=0, value=value) for name, value in values.items()]
    resource = c.AlterConfigsResource(resource_type=32, resource_name=SHARES, configs=configs)
    assert world.ask("IncrementalAlterConfigs", 1, c(resources=[resource])).responses[0].error_code == 0
    for _ in range(size):
        world.ask("Produce", 9, produce_message(WIDE, batch(b"x")))
    member = _share_member(world)["member_id"]
    leave = m.ShareGroupHeartbeatRequest(group_id=SHARES, member_id=member, member_epoch=-1)
    assert world.ask("ShareGroupHeartbeat", 1, leave).error_code == 0
    i = m.InitializeShareGroupStateRequest
    states = [
        i.InitializeStateData(topic_id=id_of(world, f"t{n}"), partitions=[i.PartitionData(partition=0)])
        for n in range(size)
    ]
    states.append(
        i.InitializeStateData(
            topic_id=id_of(world, WIDE), partitions=[i.PartitionData(partition=n) for n in range(size)]
        )
    )
    world.ask("InitializeShareGroupState", 0, i(group_id=GROUP, topics=states))
    u = m.AlterUserScramCredentialsRequest
    users = [
        u.ScramCredentialUpsertion(name=f"a{n}", mechanism=1, iterations=4096, salt=b"s", salted_password=b"x")
        for n in range(size)
    ]
    world.ask("AlterUserScramCredentials", 0, u(upsertions=users))
