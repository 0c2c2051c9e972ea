"""What a principal may do, in a whole broker: over the life of sessions and subscriptions, and where parts of a request
fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ottla.broker.net import dispatch
from ottla.broker.steps import STEP_ELEMENTS
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from ottla.coordinator.security.authorizer import Authorizer
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, produce_message
from ..support.topic_world import create
from ..support.world import Answer, World

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
TOPIC, GROUP, TRANSACTIONAL_ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE


class Guarded(World):
    """A broker with an authorizer and the topics a and b. Requests are those of User:alice, who has no rights."""

    def __init__(self, *args: Any) -> None:
        super().__init__(
            *args,
            **{
                "authorizer.class.name": STANDARD,
                "super.users": "User:admin",
                "offsets_topic_num_partitions": "1",
                "transaction_state_log_num_partitions": "1",
            },
        )
        self.peer.principal = "User:admin"
        for name in ("a", "b"):
            create(self, name)
        self.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
        self.peer.principal = "User:alice"

    @property
    def authorizer(self) -> Authorizer:
        assert self.broker.authorizer is not None
        return self.broker.authorizer

    def grant(self, operation: Operation, kind: ResourceType, name: str, who: str = "User:alice") -> bytes:
        acl_id = self.chance.randbytes(16)
        acl = Acl(kind, name, PatternType.LITERAL, who, "*", operation, Permission.ALLOW)
        self.authorizer.put(acl_id, acl)
        return acl_id


def fetch(world: World, session_id: int, epoch: int, *names: str) -> Any:
    r = m.FetchRequest
    parts = [r.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
    topics = [r.FetchTopic(topic=name, partitions=parts) for name in names]
    request = r(max_wait_ms=0, min_bytes=1, max_bytes=1000, session_id=session_id, session_epoch=epoch, topics=topics)
    return world.ask("Fetch", 11, request)


def codes(reply: Any) -> dict[str, int]:
    return {topic.topic: topic.partitions[0].error_code for topic in reply.responses}


def test_a_fetch_session_follows_the_rights_of_its_principal() -> None:
    world = Guarded()
    right = world.grant(READ, TOPIC, "a")
    first = fetch(world, 0, 0, "a", "b")
    denied = int(Errors.TOPIC_AUTHORIZATION_FAILED)
    assert codes(first) == {"a": 0, "b": denied}
    assert codes(fetch(world, first.session_id, 1)) == {"b": denied}, "an error is repeated"
    world.authorizer.drop(right)
    assert codes(fetch(world, first.session_id, 2)) == {"a": denied, "b": denied}
    world.grant(READ, TOPIC, "a")
    world.grant(READ, TOPIC, "b")
    assert codes(fetch(world, first.session_id, 3)) == {"a": 0, "b": 0}
    assert codes(fetch(world, first.session_id, 4)) == {}


def test_a_fetch_waits_for_what_it_may_read_although_the_rest_is_refused() -> None:
    world = Guarded()
    world.grant(READ, TOPIC, "a")
    r = m.FetchRequest
    parts = [r.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
    topics = [r.FetchTopic(topic=name, partitions=parts) for name in ("a", "b")]
    waiting = world.send("Fetch", 11, r(max_wait_ms=500, min_bytes=1, max_bytes=1000, session_epoch=-1, topics=topics))
    assert not waiting.done
    alone = world.send("Fetch", 11, r(max_wait_ms=500, min_bytes=1, session_epoch=-1, topics=topics[1:]))
    assert alone.done
    world.pass_ms(500)
    assert codes(waiting.reply) == {"a": 0, "b": Errors.TOPIC_AUTHORIZATION_FAILED}


def test_a_produce_without_acks_to_a_refused_topic_ends_the_connection() -> None:
    world = Guarded()
    refused = world.send("Produce", 9, produce_message("a", batch(b"x"), acks=0))
    assert refused.closed
    world.grant(WRITE, TOPIC, "a")
    assert not world.send("Produce", 9, produce_message("a", batch(b"x"), acks=0)).closed


def test_the_errors_of_refused_parts_stay_when_the_rest_fails() -> None:
    world = Guarded()
    world.grant(READ, GROUP, "g")
    world.grant(READ, TOPIC, "a")
    r = m.OffsetCommitRequest
    parts = [r.OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")]
    topics = [r.OffsetCommitRequestTopic(name=name, partitions=parts) for name in ("a", "b")]
    reply = world.ask(
        "OffsetCommit", 8, r(group_id="g", member_id="nobody", generation_id_or_member_epoch=5, topics=topics)
    )
    assert {t.name: t.partitions[0].error_code for t in reply.topics} == {
        "a": Errors.ILLEGAL_GENERATION,
        "b": Errors.TOPIC_AUTHORIZATION_FAILED,
    }


def beat(world: World, group: str = "c", **more: Any) -> Answer:
    r = m.ConsumerGroupHeartbeatRequest
    given: dict[str, Any] = {"rebalance_timeout_ms": 10_000, "topic_partitions": [], "subscribed_topic_names": []}
    given["member_id"] = "A" * 22
    return world.send("ConsumerGroupHeartbeat", 1, r(group_id=group, member_epoch=0, **{**given, **more}))


def test_a_regular_expression_matches_what_its_subscriber_may_describe() -> None:
    world = Guarded()
    world.grant(READ, GROUP, "c")
    world.grant(DESCRIBE, TOPIC, "b")
    assert beat(world, subscribed_topic_regex="a|b").reply.error_code == 0
    world.pass_ms(100)
    group = world.broker.groups.host("c").shard.groups["c"]
    assert isinstance(group, ConsumerGroup)
    assert group.regexes["a|b"].topics == {"b"}


def test_a_topic_that_several_expressions_match_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Guarded()
    world.grant(READ, GROUP, "c")
    world.grant(DESCRIBE, TOPIC, "b")
    assert beat(world, subscribed_topic_regex="a|b").reply.error_code == 0
    world.pass_ms(10_001)
    asked: list[str] = []
    allows = world.authorizer.allows

    def noted(principal: str, host: str, operation: int, kind: int, name: str) -> bool:
        if kind == TOPIC:
            asked.append(name)
        return allows(principal, host, operation, kind, name)

    monkeypatch.setattr(world.authorizer, "allows", noted)
    assert beat(world, member_id="B" * 22, subscribed_topic_regex="b|c|a").reply.error_code == 0
    world.pass_ms(100)
    group = world.broker.groups.host("c").shard.groups["c"]
    assert isinstance(group, ConsumerGroup)
    assert {name: one.topics for name, one in group.regexes.items()} == {"a|b": {"b"}, "b|c|a": {"b"}}
    assert asked == ["a", "b"]


def test_a_described_group_does_not_show_topics_that_the_client_may_not_describe() -> None:
    world = Guarded()
    world.peer.principal = "User:admin"
    beat(world, subscribed_topic_names=["a"])
    world.peer.principal = "User:alice"
    world.grant(DESCRIBE, GROUP, "c")
    described = m.ConsumerGroupDescribeRequest(group_ids=["c"], include_authorized_operations=True)
    hidden = world.ask("ConsumerGroupDescribe", 1, described).groups[0]
    assert (hidden.error_code, hidden.members) == (Errors.TOPIC_AUTHORIZATION_FAILED, [])
    assert hidden.error_message == "The group has described topic(s) that the client is not authorized to describe."
    world.grant(DESCRIBE, TOPIC, "a")
    shown = world.ask("ConsumerGroupDescribe", 1, described).groups[0]
    assert (shown.error_code, len(shown.members)) == (0, 1)
    assert shown.authorized_operations == 1 << DESCRIBE


def test_rights_are_there_after_a_restart_before_the_first_request() -> None:
    world = Guarded()
    world.peer.principal = "User:admin"
    c = m.CreateAclsRequest
    creation = c.AclCreation(
        resource_type=TOPIC, resource_name="a", resource_pattern_type=PatternType.LITERAL, principal="User:alice",
        host="127.0.0.1", operation=READ, permission_type=Permission.ALLOW,
    )  # fmt: skip
    world.ask("CreateAcls", 3, c(creations=[creation]))
    world.broker.stop()
    again = Guarded(world.files)
    assert codes(fetch(again, 0, -1, "a", "b")) == {"a": 0, "b": Errors.TOPIC_AUTHORIZATION_FAILED}
    again.peer.host_address = "127.0.0.2"
    assert codes(fetch(again, 0, -1, "a")) == {"a": Errors.TOPIC_AUTHORIZATION_FAILED}


def test_nothing_is_checked_without_an_authorizer(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("a check without an authorizer")

    monkeypatch.setattr(dispatch, "check_request", never)
    monkeypatch.setattr(dispatch.Dispatcher, "_narrowed", never)
    world = World()
    create(world, "a")
    assert codes(fetch(world, 0, -1, "a")) == {"a": 0}


def many_names(api: str, names: list[str]) -> tuple[int, Any]:
    """A version of an API, and a request about things with these names."""
    if api == "Metadata":
        return 12, m.MetadataRequest(
            topics=[m.MetadataRequest.MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=True,
        )
    if api == "ListOffsets":
        o = m.ListOffsetsRequest
        part = o.ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=-1)
        return 7, o(replica_id=-1, topics=[o.ListOffsetsTopic(name=name, partitions=[part]) for name in names])
    if api == "Produce":
        p = m.ProduceRequest
        data = [p.PartitionProduceData(index=0, records=batch(b"v"))]
        topics = [p.TopicProduceData(name=name, partition_data=data) for name in names]
        return 9, p(acks=1, timeout_ms=1000, topic_data=topics)
    if api == "Fetch":
        f = m.FetchRequest
        parts = [f.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
        return 11, f(
            max_wait_ms=0, max_bytes=1000, topics=[f.FetchTopic(topic=name, partitions=parts) for name in names]
        )
    if api == "OffsetFetch":
        g = m.OffsetFetchRequest
        wanted = [g.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in names]
        return 8, g(groups=[g.OffsetFetchRequestGroup(group_id="g", topics=wanted)])
    if api == "DeleteGroups":
        return 2, m.DeleteGroupsRequest(groups_names=names)
    if api == "DescribeTopicPartitions":
        d = m.DescribeTopicPartitionsRequest
        return 0, d(topics=[d.TopicRequest(name=name) for name in names], response_partition_limit=2000)
    t = m.CreateTopicsRequest
    creations = [t.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return 5, t(topics=creations, timeout_ms=1000)


def counted_checks(world: Guarded, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rights are checked in each turn of the loop from now on."""
    checks = [0]
    allows, next_step = Authorizer.allows, world.broker.turn._next_step

    def counted(*arguments: Any) -> bool:
        checks[-1] += 1
        return allows(*arguments)

    def stepped() -> None:
        checks.append(0)
        next_step()

    monkeypatch.setattr(Authorizer, "allows", counted)
    monkeypatch.setattr(world.broker.turn, "_next_step", stepped)
    return checks


@pytest.mark.parametrize(
    "api",
    [
        "Metadata",
        "ListOffsets",
        "Produce",
        "Fetch",
        "OffsetFetch",
        "DeleteGroups",
        "CreateTopics",
        "DescribeTopicPartitions",
    ],
)
def test_rights_on_many_things_are_checked_in_steps(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check looks at as many prefixes of the name as there are lengths of prefixes in the entries."""
    world = Guarded()
    world.grant(READ, GROUP, "g")
    names = ["a", *(f"n{n}" for n in range(1500))]
    checks = counted_checks(world, monkeypatch)
    version, request = many_names(api, names)
    answer = world.send(api, version, request)
    assert not answer.done
    assert world.send("ApiVersions", 3, m.ApiVersionsRequest()).done
    world.pass_ms(1000)
    assert answer.done
    assert sum(checks) >= len(names)
    assert max(checks) <= 2 * STEP_ELEMENTS
    refused = {
        "Metadata": lambda reply: [one.error_code for one in reply.topics],
        "ListOffsets": lambda reply: [one.partitions[0].error_code for one in reply.topics],
        "Produce": lambda reply: [one.partition_responses[0].error_code for one in reply.responses],
        "Fetch": lambda reply: [one.partitions[0].error_code for one in reply.responses],
        "OffsetFetch": lambda reply: [one.partitions[0].error_code for one in reply.groups[0].topics],
        "DeleteGroups": lambda reply: [one.error_code for one in reply.results],
    }.get(api, lambda reply: [one.error_code for one in reply.topics])(answer.reply)
    expected = Errors.GROUP_AUTHORIZATION_FAILED if api == "DeleteGroups" else Errors.TOPIC_AUTHORIZATION_FAILED
    assert refused == [int(expected)] * len(names)


def test_refusals_in_replies_that_are_made_in_steps_are_counted() -> None:
    world = Guarded()
    world.grant(Operation.CREATE, TOPIC, "mine")
    c = m.CreateTopicsRequest
    wanted = [c.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("mine", "x", "y")]
    before = world.broker.metrics.errors.copy()
    reply = world.ask("CreateTopics", 7, c(topics=wanted, timeout_ms=1000))
    refused = int(Errors.TOPIC_AUTHORIZATION_FAILED)
    assert {one.name: one.error_code for one in reply.topics} == {"mine": 0, "x": refused, "y": refused}
    assert world.broker.metrics.errors - before == {(19, refused): 2}


def ids_of(world: Guarded, names: list[str]) -> list[bytes]:
    """Gives topics with these names ids, as if they existed."""
    ids = [bytes(15 - len(str(n))) + str(n).encode() + b"t" for n in range(len(names))]
    world.broker.image.topic_names.update(dict(zip(ids, names, strict=True)))
    return ids


def share_request(world: Guarded, api: str, names: list[str]) -> tuple[int, Any]:
    """A version of ShareFetch or ShareAcknowledge, and a request about topics with these names."""
    f, a = m.ShareFetchRequest, m.ShareAcknowledgeRequest
    ids = ids_of(world, names)
    parts = [f.FetchPartition(partition_index=0)]
    opened = f(group_id="g", member_id="m", share_session_epoch=0, max_records=1, max_bytes=1000, batch_size=1)
    if api == "ShareFetch":
        opened.topics = [f.FetchTopic(topic_id=one, partitions=parts) for one in ids]
        return 2, opened
    assert world.ask("ShareFetch", 2, opened).error_code == 0
    acked = [a.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])]
    wanted = [a.AcknowledgePartition(partition_index=0, acknowledgement_batches=acked)]
    topics = [a.AcknowledgeTopic(topic_id=one, partitions=wanted) for one in ids]
    return 2, a(group_id="g", member_id="m", share_session_epoch=1, topics=topics)


def transaction_request(world: Guarded, api: str, names: list[str]) -> tuple[int, Any]:
    """A version of an API about transactions, and a request about things with these names, or a list of them."""
    if api == "AddPartitionsToTxn":
        t = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        topics = [t(name=name, partitions=[0]) for name in names]
        return 3, m.AddPartitionsToTxnRequest(v3_and_below_transactional_id="t", v3_and_below_topics=topics)
    p = m.InitProducerIdRequest
    world.peer.principal = "User:admin"
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]))
    world.pass_ms(1000)
    if api == "ListTransactions":
        for name in names:
            assert world.ask("InitProducerId", 4, p(transactional_id=name, transaction_timeout_ms=1000)).error_code == 0
        request: Any = m.ListTransactionsRequest()
    else:
        got = world.ask("InitProducerId", 4, p(transactional_id="t", transaction_timeout_ms=600_000))
        assert got.error_code == 0
        host = world.broker.transactions.hosts[0]
        known = host.shard.transactions.get("t")
        assert known is not None
        partitions = frozenset((name, 0) for name in names)
        host.shard.transactions.put_untracked("t", known._replace(partitions=partitions))
        request = m.DescribeTransactionsRequest(transactional_ids=["t"] * 3)
    world.peer.principal = "User:alice"
    return 0, request


@pytest.mark.long
@pytest.mark.parametrize(
    "api", ["ShareFetch", "ShareAcknowledge", "AddPartitionsToTxn", "DescribeTransactions", "ListTransactions"]
)
def test_rights_that_a_handler_checks_are_checked_in_steps(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = Guarded()
    world.grant(READ, GROUP, "g")
    for operation in (WRITE, DESCRIBE):
        world.grant(operation, TRANSACTIONAL_ID, "t")
    make = share_request if api.startswith("Share") else transaction_request
    version, request = make(world, api, [f"n{n}" for n in range(1500)])
    checks = counted_checks(world, monkeypatch)
    answer = world.send(api, version, request)
    assert not answer.done
    assert world.send("ApiVersions", 3, m.ApiVersionsRequest()).done
    world.pass_ms(1000)
    assert sum(checks) >= 1500
    assert max(checks) <= 2 * STEP_ELEMENTS
    refused_in: dict[str, Callable[[Any], Any]] = {
        "ShareFetch": lambda reply: [one.partitions[0].error_code for one in reply.responses],
        "ShareAcknowledge": lambda reply: [one.partitions[0].error_code for one in reply.responses],
        "AddPartitionsToTxn": lambda reply: [
            one.results_by_partition[0].partition_error_code for one in reply.results_by_topic_v3_and_below
        ],
        "DescribeTransactions": lambda reply: [one.topics for one in reply.transaction_states],
        "ListTransactions": lambda reply: reply.transaction_states,
    }
    left_out: dict[str, Any] = {"DescribeTransactions": [[]] * 3, "ListTransactions": []}
    assert refused_in[api](answer.reply) == left_out.get(api, [int(Errors.TOPIC_AUTHORIZATION_FAILED)] * 1500)
