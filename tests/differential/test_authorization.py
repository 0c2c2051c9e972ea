"""Every API with each of the rights that it needs taken away: ottla and Apache Kafka refuse the same, with the same
errors.

Both brokers have Kafka's StandardAuthorizer. All connections are of User:ANONYMOUS, but their addresses tell them
apart: 127.0.0.1, from which Kafka talks to itself too, may do everything; 127.0.0.2 may do what a story grants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ottla.broker.apis import apis
from ottla.coordinator.security.acls import ResourceType
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.acls import creations
from ..support.ask import batch
from ..support.differential import Pair, own_brokers
from ..support.stories.rights import (
    CLUSTER,
    HERE,
    OP,
    STORIES,
    THERE,
    R,
    Right,
    Story,
    T,
    U,
    acl,
    grant,
    subsets,
)
from ..support.stories.rights_requests import replica_fetch
from ..support.stories.streams import configure, info, joining, part
from ..support.stories.topics import creatable, create, topic_ids, versions
from ..support.transcripts import CLOSED

pytestmark = pytest.mark.slow


SETTINGS: dict[str, object] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:admin",
}


LOG = (R.TOPIC, "streams-log")


kafka, ours, coordinators = own_brokers(SETTINGS)


@pytest.fixture
def limited(pair: Pair) -> Iterator[Pair]:
    """Connections from an address without rights, beside those that may do everything."""
    kinds = (CLUSTER, (R.TOPIC, "*"), (R.GROUP, "*"), (R.TRANSACTIONAL_ID, "*"))
    pair.ask("CreateAcls", 3, creations([acl((OP.ALL, kind), HERE) for kind in kinds]))
    grant(pair)
    found = pair.beside("limited", THERE)
    yield found
    found.close()
    grant(pair)  # so that a story can be told alone


def await_controller(limited: Pair) -> None:
    """Returns when Kafka's controller knows the rights, too, which it may learn after its broker."""
    r, refused = m.AlterClientQuotasRequest, Errors.CLUSTER_AUTHORIZATION_FAILED
    request = r(entries=[r.EntryData(entity=[r.EntityData(entity_type="user")])], validate_only=True)
    limited.until("AlterClientQuotas", 1, request, lambda reply: reply.entries[0].error_code == refused)


@pytest.mark.parametrize("told", STORIES, ids=[f"{n}-{one.api}" for n, one in enumerate(STORIES)])
def test_rights_taken_away(told: Story, pair: Pair, limited: Pair) -> None:
    for name in ("t", "u", "doomed"):
        create(pair, creatable(name))
    ids = topic_ids(pair, "t")
    for rights in subsets(told.rights):
        grant(pair, *rights)
        for version in told.versions:
            limited.both(told.api, version, lambda side: told.make(version, ids[side]))  # noqa: B023


@pytest.mark.parametrize("api", ["DescribeLogDirs", "DescribeQuorum", "FindCoordinator"])
def test_what_differs_when_it_is_allowed_is_refused_alike(api: str, limited: Pair) -> None:
    requests = {
        "DescribeLogDirs": m.DescribeLogDirsRequest(topics=None),
        "DescribeQuorum": m.DescribeQuorumRequest(topics=[]),
        "FindCoordinator": m.FindCoordinatorRequest(key_type=2, coordinator_keys=[f"g:{'A' * 22}:0"]),
    }
    limited.ask(api, versions(api)[-1], requests[api])


def test_a_fetch_of_a_broker(pair: Pair, limited: Pair) -> None:
    """It needs the right of the cluster, and none of the topic's. The broker that has it is no replica."""
    create(pair, creatable("fetched"))
    ids = topic_ids(pair, "fetched")
    for rights in subsets(((OP.CLUSTER_ACTION, CLUSTER), (OP.READ, (R.TOPIC, "fetched")))):
        grant(pair, *rights)
        for version in (12, 14, 17):
            limited.both("Fetch", version, lambda side: replica_fetch(version, ids[side]))  # noqa: B023
    assert limited.errors("Fetch") == {"NONE", "TOPIC_AUTHORIZATION_FAILED", "NOT_LEADER_OR_FOLLOWER"}


def test_the_topics_of_a_transaction(pair: Pair, limited: Pair) -> None:
    for name in ("t", "u"):
        create(pair, creatable(name))
    begin = m.InitProducerIdRequest(transactional_id="open", transaction_timeout_ms=600_000)
    mine, theirs = pair.ask("InitProducerId", 4, begin)
    r = m.AddPartitionsToTxnRequest
    topics = [r.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in ("t", "u")]
    add, add_theirs = (
        r(
            v3_and_below_transactional_id="open",
            v3_and_below_producer_id=one.producer_id,
            v3_and_below_producer_epoch=one.producer_epoch,
            v3_and_below_topics=topics,
        )
        for one in (mine, theirs)
    )
    pair.ask("AddPartitionsToTxn", 3, add_theirs, add)
    _with_each_subset(
        (pair, limited),
        ("DescribeTransactions", m.DescribeTransactionsRequest(transactional_ids=["open"])),
        ((OP.DESCRIBE, (R.TRANSACTIONAL_ID, "open")), (OP.DESCRIBE, T), (OP.DESCRIBE, U)),
    )


@pytest.mark.parametrize("kind", ["Consumer", "Share"])
def test_the_topics_of_a_group(kind: str, pair: Pair, limited: Pair) -> None:
    for name in ("t", "u"):
        create(pair, creatable(name))
    group = f"with-{kind.lower()}s"
    member = {"group_id": group, "member_id": "M" * 22, "subscribed_topic_names": ["t", "u"]}
    joins: dict[str, Any] = {"rebalance_timeout_ms": 600_000, "topic_partitions": []} if kind == "Consumer" else {}
    beat, describe = f"{kind}GroupHeartbeat", f"{kind}GroupDescribe"
    request = getattr(m, f"{beat}Request")
    pair.until(beat, 1, request(member_epoch=0, **member, **joins), _is_assigned)
    described = getattr(m, f"{describe}Request")(group_ids=[group], include_authorized_operations=True)
    rights = ((OP.DESCRIBE, (R.GROUP, group)), (OP.DESCRIBE, T), (OP.DESCRIBE, U))
    _with_each_subset((pair, limited), (describe, described), rights)
    pair.ask(beat, 1, request(member_epoch=-1, **{**member, "subscribed_topic_names": None}))


def test_the_topics_of_a_streams_group(pair: Pair, limited: Pair) -> None:
    """Who may not create the internal topics is told so; who may not describe all topics is not told of the group."""
    for name in ("t", "u"):
        create(pair, creatable(name))
    configure(pair, "streams", streams_initial_rebalance_delay_ms="0")
    request = joining("streams", part("0", "t", changelogs=[info("streams-log")]), part("1", "u"))
    reads = (OP.READ, (R.GROUP, "streams")), (OP.DESCRIBE, T), (OP.DESCRIBE, U), (OP.DESCRIBE, LOG)
    grant(pair, *reads)
    missing = 3  # the status of missing internal topics; another one before the coordinators know of the sources
    told = ("StreamsGroupHeartbeat", 1, request)
    limited.until(*told, lambda reply: any(one.status_code == missing for one in reply.status))
    limited.ask(*told)
    described = m.StreamsGroupDescribeRequest(group_ids=["streams"], include_authorized_operations=True)
    rights = ((OP.DESCRIBE, (R.GROUP, "streams")), (OP.DESCRIBE, T), (OP.DESCRIBE, U), (OP.DESCRIBE, LOG))
    _with_each_subset((pair, limited), ("StreamsGroupDescribe", described), rights)
    grant(pair, *reads, (OP.CREATE, LOG))
    limited.ask(*told)
    named = m.DescribeTopicPartitionsRequest(topics=[m.DescribeTopicPartitionsRequest.TopicRequest(name=LOG[1])])
    pair.until("DescribeTopicPartitions", 0, named, lambda reply: reply.topics[0].error_code == 0)
    pair.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=[LOG[1]], timeout_ms=10_000))
    pair.until("DescribeTopicPartitions", 0, named, lambda reply: reply.topics[0].error_code != 0)


def _is_assigned(reply: Any) -> bool:
    return reply.assignment is not None and bool(reply.assignment.topic_partitions)


def _with_each_subset(pairs: tuple[Pair, Pair], asked: tuple[str, Any], rights: tuple[Right, ...]) -> None:
    """Grants each subset of the rights over the first of the pairs, and asks over the second."""
    pair, limited = pairs
    api, request = asked
    for some in subsets(rights):
        grant(pair, *some)
        limited.ask(api, versions(api)[-1], request)


def test_refused_topics_of_a_produce(pair: Pair, limited: Pair) -> None:
    """They come behind what the log got, and before what is not there and what is no batch."""
    for name in ("mine", "theirs", "broken"):
        create(pair, creatable(name))
    grant(pair, *((OP.WRITE, (R.TOPIC, name)) for name in ("mine", "absent", "broken")))
    r = m.ProduceRequest
    for names in ("absent theirs mine", "broken absent theirs", "broken mine absent theirs", "theirs mine theirs"):
        topics = []
        for name in names.split():
            data = batch(b"v")[: 30 if name == "broken" else None]
            part = r.PartitionProduceData(index=0, records=data)
            topics.append(r.TopicProduceData(name=name, partition_data=[part]))
        for version in (3, 9, 12):
            limited.ask("Produce", version, r(acks=1, timeout_ms=10_000, topic_data=topics))


def test_what_is_no_batch_is_refused_before_rights_are_asked_for(pair: Pair, limited: Pair) -> None:
    for name in ("allowed", "forbidden"):
        create(pair, creatable(name))
    grant(pair, (OP.WRITE, (R.TOPIC, "allowed")))
    r, garbage = m.ProduceRequest, b"g" * 70
    transactional = batch(b"v", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    for sent in (
        [("forbidden", garbage)],
        [("allowed", batch(b"v")), ("forbidden", garbage)],
        [("allowed", transactional), ("forbidden", garbage)],
    ):
        topics = [
            r.TopicProduceData(name=name, partition_data=[r.PartitionProduceData(index=0, records=data)])
            for name, data in sent
        ]
        for version in (3, 9, 12):
            limited.ask("Produce", version, r(acks=1, timeout_ms=10_000, topic_data=topics))
    assert limited.errors("Produce") == {"CORRUPT_MESSAGE", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"}


@pytest.mark.parametrize("where", [CLUSTER, (R.TOPIC, "born")], ids=["cluster", "topic"])
def test_a_topic_that_metadata_creates(where: tuple[ResourceType, str], pair: Pair, limited: Pair) -> None:
    """The reply that creates it is another one each time; that the topic is there, or is not, is compared."""
    wanted = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="born")])
    wanted.allow_auto_topic_creation = True
    named = m.DescribeTopicPartitionsRequest(topics=[m.DescribeTopicPartitionsRequest.TopicRequest(name="born")])
    for rights in ((), ((OP.CREATE, where),), ((OP.DESCRIBE, (R.TOPIC, "born")),)):
        grant(pair, *rights)
        limited.ask("Metadata", 12, wanted)
        pair.ask("DescribeTopicPartitions", 0, named)
    grant(pair, (OP.CREATE, where), (OP.DESCRIBE, (R.TOPIC, "born")))
    for wire in limited.wires:
        wire.ask("Metadata", 12, wanted)
    pair.until("DescribeTopicPartitions", 0, named, lambda reply: reply.topics[0].error_code == 0)
    pair.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["born"], timeout_ms=10_000))
    pair.until("DescribeTopicPartitions", 0, named, lambda reply: reply.topics[0].error_code != 0)


@pytest.mark.parametrize("unknown", ["resource_type", "pattern_type", "operation", "permission_type"])
def test_an_unknown_code_closes_the_connection_whoever_asks(unknown: str, limited: Pair) -> None:
    """Kafka reads the codes of entries and filters before it asks for rights."""
    c, d, x = m.CreateAclsRequest, m.DescribeAclsRequest, m.DeleteAclsRequest
    codes = {"resource_type": 2, "pattern_type": 3, "operation": 3, "permission_type": 3, unknown: 0}
    entry = c.AclCreation(resource_name="x", principal="User:a", host="*", resource_type=codes["resource_type"])
    entry.resource_pattern_type = codes["pattern_type"]
    one, described = x.DeleteAclsFilter(), d()
    for wanted in (one, described):
        wanted.resource_type_filter, wanted.pattern_type_filter = codes["resource_type"], codes["pattern_type"]
    for coded in (entry, one, described):
        coded.operation, coded.permission_type = codes["operation"], codes["permission_type"]
    for api, request in (
        ("CreateAcls", c(creations=[entry])),
        ("DeleteAcls", x(filters=[one])),
        ("DescribeAcls", described),
    ):
        for version in versions(api):
            limited.ask(api, version, request)
        assert limited.errors(api) >= {CLOSED}


def test_refused_records_of_a_topic_without_partitions(pair: Pair, limited: Pair) -> None:
    """A topic of which the request names no partition is not in the reply; one that is named twice is there once."""
    create(pair, creatable("kept"))
    r = m.DeleteRecordsRequest
    parts = [r.DeleteRecordsPartition(partition_index=0, offset=1)]
    for topics in (
        [r.DeleteRecordsTopic(name="kept")],
        [r.DeleteRecordsTopic(name="kept"), r.DeleteRecordsTopic(name="absent", partitions=parts)],
        [r.DeleteRecordsTopic(name="kept", partitions=parts) for _ in range(2)],
    ):
        for version in versions("DeleteRecords"):
            limited.ask("DeleteRecords", version, r(topics=topics, timeout_ms=10_000))
    assert limited.errors("DeleteRecords") == {"TOPIC_AUTHORIZATION_FAILED"}


def test_refused_configurations_of_metrics_and_of_brokers(pair: Pair, limited: Pair) -> None:
    """Kafka's controller refuses those of metrics, with words; its broker refuses its own, without."""
    await_controller(limited)
    for api in ("AlterConfigs", "IncrementalAlterConfigs"):
        r = getattr(m, f"{api}Request")
        resources = [
            r.AlterConfigsResource(resource_type=kind, resource_name=name)
            for kind, name in ((16, "some"), (16, ""), (4, "1"), (4, ""), (2, "t"), (32, "g"))
        ]
        for version in versions(api):
            for one in resources:
                limited.ask(api, version, r(resources=[one]))
            limited.ask(api, version, r(resources=resources))
        assert "CLUSTER_AUTHORIZATION_FAILED" in limited.errors(api)


def test_refused_users_are_in_order(limited: Pair) -> None:
    """Each once, in the order of UTF-16 code units."""
    await_controller(limited)
    r = m.AlterUserScramCredentialsRequest
    names = ("z", "a", "\U0001f600", "\uffee", "", "a")
    deletions = [r.ScramCredentialDeletion(name=name, mechanism=1) for name in names]
    upsertions = [
        r.ScramCredentialUpsertion(name=name, mechanism=1, iterations=4096, salt=b"s", salted_password=b"p")
        for name in ("b", "a", "z")
    ]
    _, other = limited.ask("AlterUserScramCredentials", 0, r(deletions=deletions, upsertions=upsertions))
    assert [one.user for one in other.results] == ["", "a", "b", "z", "\U0001f600", "\uffee"]


def test_refused_quotas_come_without_the_tags_of_the_request(limited: Pair) -> None:
    r = m.AlterClientQuotasRequest
    parts = [r.EntityData(entity_type="user", entity_name="a", unknown_tags=[(9000, b"unknown")]), r.EntityData()]
    entry = r.EntryData(entity=parts, ops=[r.OpData(key="producer_byte_rate", value=1.0)], unknown_tags=[(7, b"")])
    request = r(entries=[entry, entry], validate_only=True)
    await_controller(limited)
    limited.ask("AlterClientQuotas", 1, request)
    assert limited.errors("AlterClientQuotas") == {"CLUSTER_AUTHORIZATION_FAILED"}


def test_an_unknown_isolation_level_is_of_those_who_may_read(pair: Pair, limited: Pair) -> None:
    names = ("levelled", "besides")
    for name in names:
        create(pair, creatable(name))
    ids = [topic_ids(pair, name) for name in names]
    r = m.FetchRequest

    def asked(side: int) -> m.FetchRequest:
        part = r.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        topics = [r.FetchTopic(topic_id=one[side], partitions=[part]) for one in ids]
        return r(max_bytes=1000, isolation_level=2, session_epoch=-1, topics=topics)

    for rights in ((), ((OP.READ, (R.TOPIC, names[0])),)):
        grant(pair, *rights)
        limited.both("Fetch", 17, asked)
    assert limited.errors("Fetch") == {"NONE", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_SERVER_ERROR"}


REFUSED_ONLY = {
    ("DescribeLogDirs", OP.DESCRIBE, R.CLUSTER),
    ("DescribeQuorum", OP.DESCRIBE, R.CLUSTER),
    ("FindCoordinator", OP.CLUSTER_ACTION, R.CLUSTER),
}
"""Rights whose replies differ when they are granted: `test_what_differs_when_it_is_allowed_is_refused_alike`."""
ELSEWHERE = {
    ("Fetch", OP.CLUSTER_ACTION, R.CLUSTER): test_a_fetch_of_a_broker,
    ("Metadata", OP.CREATE, R.TOPIC): test_a_topic_that_metadata_creates,
    ("DescribeTransactions", OP.DESCRIBE, R.TOPIC): test_the_topics_of_a_transaction,
    ("ConsumerGroupDescribe", OP.DESCRIBE, R.TOPIC): test_the_topics_of_a_group,
    ("ShareGroupDescribe", OP.DESCRIBE, R.TOPIC): test_the_topics_of_a_group,
    ("StreamsGroupDescribe", OP.DESCRIBE, R.TOPIC): test_the_topics_of_a_streams_group,
    ("StreamsGroupHeartbeat", OP.CREATE, R.TOPIC): test_the_topics_of_a_streams_group,
    ("StreamsGroupHeartbeat", OP.CREATE, R.CLUSTER): test_the_topics_of_a_streams_group,
    ("CreateDelegationToken", OP.CREATE_TOKENS, R.USER): "test_tokens.py",
    ("DescribeDelegationToken", OP.DESCRIBE, R.DELEGATION_TOKEN): "test_tokens.py",
    ("DescribeDelegationToken", OP.DESCRIBE_TOKENS, R.USER): "test_tokens.py",
}
WITHOUT_RIGHTS = {
    "ApiVersions": "for everyone",
    "GetTelemetrySubscriptions": "for everyone",
    "PushTelemetry": "for everyone",
    "SaslHandshake": "before anybody is known",
    "SaslAuthenticate": "before anybody is known",
    "RenewDelegationToken": "of the owner and the renewers: test_tokens.py",
    "ExpireDelegationToken": "of the owner and the renewers: test_tokens.py",
}


def test_every_right_of_every_api_is_taken_away() -> None:
    """An API that is added, and a check that is added to one, needs its stories."""
    told = {(one.api, operation, kind) for one in STORIES for operation, (kind, _) in one.rights}
    told |= REFUSED_ONLY | set(ELSEWHERE)
    declared = set()
    for api in apis().values():
        assert api.handle is not None
        assert bool(api.authorization) is (api.name not in WITHOUT_RIGHTS), f"{api.name} checks nothing, or something"
        declared |= {(api.name, check.operation, check.resource_type) for check in api.authorization}
    missing = [f"{api}: {operation.name} on {kind.name}" for api, operation, kind in sorted(declared - told)]
    assert not missing, f"no story takes away {missing}"
