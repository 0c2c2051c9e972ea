"""What one node without an authorizer has to say of ACLs, log-ins, elections and directories; compared with Kafka."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.protocol.schema import NO_UUID

from ..support.differential import Pair
from ..support.poll import until
from ..support.stories.topics import (
    T,
    batch,
    produce,
    topic,
    versions,
)

pytestmark = pytest.mark.slow


# what one node without an authorizer has to say of these


def test_acls_without_an_authorizer(pair: Pair) -> None:
    d, c, x = m.DescribeAclsRequest, m.CreateAclsRequest, m.DeleteAclsRequest
    creation = c.AclCreation(resource_type=2, resource_name="x", resource_pattern_type=3, principal="User:a", host="*")
    creation.operation = creation.permission_type = 3
    filter_ = x.DeleteAclsFilter(resource_type_filter=2, pattern_type_filter=3, operation=1, permission_type=1)
    for version in versions("DescribeAcls"):
        pair.ask(
            "DescribeAcls", version, d(resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1)
        )
        pair.ask("CreateAcls", version, c(creations=[creation, creation]))
        pair.ask("DeleteAcls", version, x(filters=[filter_, filter_]))
        pair.ask("DeleteAcls", version, x(filters=[]))
    assert pair.errors("CreateAcls") == {"SECURITY_DISABLED"}
    assert pair.errors("DeleteAcls") == {"SECURITY_DISABLED"}
    assert pair.errors("DescribeAcls") == {"SECURITY_DISABLED"}


def test_a_listener_without_sasl(pair: Pair) -> None:
    """Each is refused, and the connection goes on."""
    for version in versions("SaslHandshake"):
        pair.ask("SaslHandshake", version, m.SaslHandshakeRequest(mechanism="PLAIN"))
    for version in versions("SaslAuthenticate"):
        pair.ask("SaslAuthenticate", version, m.SaslAuthenticateRequest(auth_bytes=b"x"))
    assert pair.errors("SaslAuthenticate") == {"ILLEGAL_SASL_STATE"}
    assert pair.errors("SaslHandshake") == {"ILLEGAL_SASL_STATE"}


def test_delegation_tokens_are_for_those_who_logged_in(pair: Pair) -> None:
    c, d = m.CreateDelegationTokenRequest, m.DescribeDelegationTokenRequest
    renewers = [c.CreatableRenewers(principal_type="User", principal_name="a")]
    for version in versions("CreateDelegationToken"):
        pair.ask("CreateDelegationToken", version, c(renewers=renewers, max_lifetime_ms=1000))
    pair.ask("CreateDelegationToken", 3, c(owner_principal_type="User", owner_principal_name="b", max_lifetime_ms=-1))
    for version in versions("RenewDelegationToken"):
        pair.ask("RenewDelegationToken", version, m.RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=1))
        pair.ask("ExpireDelegationToken", version, m.ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=1))
    for version in versions("DescribeDelegationToken"):
        for owners in (None, [], [d.DescribeDelegationTokenOwner(principal_type="User", principal_name="a")]):
            pair.ask("DescribeDelegationToken", version, d(owners=owners))
    assert pair.errors("CreateDelegationToken") == {"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"}
    assert pair.errors("DescribeDelegationToken") == {"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"}
    assert pair.errors("ExpireDelegationToken") == {"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"}
    assert pair.errors("RenewDelegationToken") == {"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"}


def test_scram_credentials(pair: Pair) -> None:
    """Of one mechanism for each user: in which order Kafka tells several is chance."""
    a, d = m.AlterUserScramCredentialsRequest, m.DescribeUserScramCredentialsRequest

    def put(name: str, mechanism: int, iterations: int = 4096, password: bytes = b"pw") -> Any:
        return a.ScramCredentialUpsertion(
            name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=password
        )

    def delete(name: str, mechanism: int) -> Any:
        return a.ScramCredentialDeletion(name=name, mechanism=mechanism)

    steps: list[tuple[list[Any], list[Any]]] = [
        ([], []),
        ([delete("a", 1)], []),
        ([], [put("a", 1), put("b", 2, 8192), put("carol", 1, 16384)]),
        ([], [put("a", 1, 5000)]),
        ([], [put("c", 1, 4095), put("d", 1, 16385), put("e", 0), put("f", 3), put("", 1), put("g", -1, 1)]),
        ([delete("", 1), delete("a", 0), delete("a", 2), delete("zz", 1), delete("zz", 1)], []),
        ([delete("a", 1)], [put("a", 1), put("h", 1)]),
        ([delete("a", 1), delete("a", 1)], [put("i", 1), put("i", 2), put("j", 2)]),
        ([delete("a", 1), delete("b", 1)], [put("k", 2), put("l", 2), put("l", 7)]),
        ([delete("b", 2)], [put("n", 1), put("m", 1, password=b"")]),
        ([delete("carol", 1), delete("b", 2)], [put("Ödön", 1), put("x" * 300, 2)]),
    ]

    def users_when_both_agree() -> list[list[tuple[str, dict[int, int]]]]:
        """Kafka answers an alteration before its broker has heard of it."""
        mine, other = (
            [
                (one.user, {i.mechanism: i.iterations for i in one.credential_infos})
                for one in wire.ask("DescribeUserScramCredentials", 0, d(users=None)).results
            ]
            for wire in pair.wires
        )
        return [mine] if mine == other else []

    for deletions, upsertions in steps:
        pair.ask("AlterUserScramCredentials", 0, a(deletions=deletions, upsertions=upsertions))
        until(users_when_both_agree, "both know the same users")
        some = [d.UserName(name=name) for name in ("a", "zz", "b", "b", "", "carol")]
        for users in (None, [], some):
            pair.ask("DescribeUserScramCredentials", 0, d(users=users))
    pair.ask("AlterUserScramCredentials", 0, a(upsertions=[put("k", 1)]))
    (known,) = until(users_when_both_agree, "both know the same users")
    assert ("k", {1: 4096, 2: 4096}) in known


def test_an_empty_password_is_found_after_a_user_that_is_named_twice(pair: Pair) -> None:
    """Kafka derives the keys when it has checked all users."""
    r = m.AlterUserScramCredentialsRequest
    upsertions = [
        r.ScramCredentialUpsertion(name=name, mechanism=1, iterations=4096, salt=b"salt", salted_password=password)
        for name, password in (("twice", b""), ("once", b""), ("twice", b"pw"), ("first", b"pw"), ("first", b""))
    ]
    _, other = pair.ask("AlterUserScramCredentials", 0, r(upsertions=upsertions))
    found = {one.user: Errors(one.error_code).name for one in other.results}
    assert found == {"twice": "DUPLICATE_RESOURCE", "once": "UNKNOWN_SERVER_ERROR", "first": "DUPLICATE_RESOURCE"}


def test_elections(pair: Pair) -> None:
    topic(pair, "elected", 2)
    r = m.ElectLeadersRequest
    some = [
        r.TopicPartitions(topic="elected", partitions=[0, 1, 7, -1]),
        r.TopicPartitions(topic="nope", partitions=[0]),
    ]
    for version in versions("ElectLeaders"):
        for kind in (0, 1, 5) if version else (0,):
            for asked in (some, [], [r.TopicPartitions(topic="elected", partitions=[])]):
                pair.ask("ElectLeaders", version, r(election_type=kind, topic_partitions=asked, timeout_ms=10_000))
        of_all = r(topic_partitions=None, timeout_ms=10_000)
        every = [wire.ask("ElectLeaders", version, of_all).replica_election_results for wire in pair.wires]
        assert all("elected" in {one.topic for one in results} for results in every)
        assert not any(one.partition_result for results in every for one in results)


def test_reassignments(pair: Pair) -> None:
    topic(pair, "reassigned", 2)
    a, ls = m.AlterPartitionReassignmentsRequest, m.ListPartitionReassignmentsRequest
    listed = [
        ls.ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 9]) for name in ("reassigned", "nope")
    ]
    for version in versions("AlterPartitionReassignments"):
        for wanted in (
            [(0, [1]), (1, None), (5, [1]), (-1, None)],
            [(0, [2]), (1, [])],
            [(0, [1, 1]), (1, [2, 1])],
            [(0, [-1])],
            [],
        ):
            parts = [a.ReassignablePartition(partition_index=index, replicas=replicas) for index, replicas in wanted]
            topics = [a.ReassignableTopic(name=name, partitions=parts) for name in ("reassigned", "nope")]
            pair.ask("AlterPartitionReassignments", version, a(topics=topics, timeout_ms=10_000))
            if version:
                pair.ask(
                    "AlterPartitionReassignments",
                    version,
                    a(topics=topics, timeout_ms=10_000, allow_replication_factor_change=False),
                )
        nothing = a(topics=[], timeout_ms=10_000, allow_replication_factor_change=version == 0)
        pair.ask("AlterPartitionReassignments", version, nothing)
    for asked in (None, [], listed):
        pair.ask("ListPartitionReassignments", 0, ls(topics=asked, timeout_ms=10_000))
    assert pair.errors("AlterPartitionReassignments") == {
        "INVALID_REPLICA_ASSIGNMENT",
        "NONE",
        "NO_REASSIGNMENT_IN_PROGRESS",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


@pytest.mark.parametrize("version", versions("DescribeLogDirs"))
def test_log_directories(pair: Pair, version: int) -> None:
    """The same but for where they are, and what is left there when each is asked."""
    name = f"dirs-{version}"
    ids = topic(pair, name, 2)
    produce(pair, name, ids, batch("a" * 100, "b"))
    produce(pair, name, ids, batch("c"))
    r = m.DescribeLogDirsRequest
    one, other = (
        r.DescribableLogDirTopic(topic=name, partitions=[0, 5]),
        r.DescribableLogDirTopic(topic="nope", partitions=[0]),
    )
    for asked in ([one, other], [other], [], [r.DescribableLogDirTopic(topic=name, partitions=[])]):
        told = []
        for wire in pair.wires:
            answer = wire.ask("DescribeLogDirs", version, r(topics=asked))
            (found,) = answer.results
            assert Path(found.log_dir).is_absolute()
            assert (
                (0 < found.usable_bytes <= found.total_bytes)
                if version >= 4
                else (found.usable_bytes, found.total_bytes) == (-1, -1)
            )
            found.log_dir, found.usable_bytes, found.total_bytes = "", 0, 0
            told.append(answer)
        assert told[0] == told[1]
    every = [wire.ask("DescribeLogDirs", version, r(topics=None)).results[0].topics for wire in pair.wires]
    mine, theirs = (
        {p.partition_index: p.partition_size for t in topics if t.name == name for p in t.partitions}
        for topics in every
    )
    assert mine == theirs
    assert mine[0] > mine[1] == 0


def test_replicas_are_moved_in_the_order_of_hash_tables(pair: Pair) -> None:
    """Topics without partitions are left out."""
    r = m.AlterReplicaLogDirsRequest

    def move(*dirs: dict[str, list[int]]) -> None:
        wanted = [
            r.AlterReplicaLogDir(
                path=f"/absent-{number}",
                topics=[r.AlterReplicaLogDirTopic(name=name, partitions=indexes) for name, indexes in topics.items()],
            )
            for number, topics in enumerate(dirs)
        ]
        for version in versions("AlterReplicaLogDirs"):
            pair.ask("AlterReplicaLogDirs", version, r(dirs=wanted))

    move({"moved": [], "other": []})
    move({"moved": [0], ".": [7]}, {"moved": [0, 1], ".": [0, 1], "empty": []})
    move({name: [0] for name in ("a", "b", "c", "d", "e", "ff", "hhh", "x" * 250)})
    move({f"topic-{n}": [0, 1, 2] for n in range(12)}, {f"topic-{n}": list(range(n)) for n in range(5, 55, 7)})
    assert pair.errors("AlterReplicaLogDirs") == {"INVALID_TOPIC_EXCEPTION", "LOG_DIR_NOT_FOUND"}


@pytest.mark.parametrize("version", versions("DescribeQuorum"))
def test_the_quorum(pair: Pair, version: int) -> None:
    r = m.DescribeQuorumRequest

    def asked(*topics: tuple[str, list[int]]) -> Any:
        return r(
            topics=[
                r.TopicData(topic_name=name, partitions=[r.PartitionData(partition_index=i) for i in indexes])
                for name, indexes in topics
            ]
        )

    log = "__cluster_metadata"
    none: list[int] = []
    for topics in ([("t", [0])], [(log, [1])], [(log, [0, 1])], [(log, [0]), ("t", [0])], [(log, none)], []):
        pair.ask("DescribeQuorum", version, asked(*topics))
    told = []
    for wire in pair.wires:
        answer = wire.ask("DescribeQuorum", version, asked((log, [0])))
        (partition,) = answer.topics[0].partitions
        (voter,) = partition.current_voters
        assert 0 < partition.high_watermark <= voter.log_end_offset
        assert voter.last_fetch_timestamp == voter.last_caught_up_timestamp
        assert (voter.last_fetch_timestamp > T) is (version >= 1)
        assert (voter.replica_directory_id != NO_UUID) is (version >= 2)
        controllers = [(listener.name, listener.host) for node in answer.nodes for listener in node.listeners]
        assert controllers == ([("CONTROLLER", "127.0.0.1")] if version >= 2 else [])
        partition.high_watermark = voter.log_end_offset = voter.last_fetch_timestamp = (
            voter.last_caught_up_timestamp
        ) = partition.leader_epoch = 0
        voter.replica_directory_id, answer.nodes = NO_UUID, []
        told.append(answer)
    assert told[0] == told[1]


@pytest.mark.parametrize("bytes_max", [-1, 0, 1 << 20])
def test_a_fetch_of_fewer_than_no_bytes(pair: Pair, bytes_max: int) -> None:
    """Kafka fails where it reads a segment; only the first partition is read with the request's own limit."""
    name, r = f"nb-{bytes_max}", m.FetchRequest
    ids = topic(pair, name, 2)
    for partition in (0, 1):
        produce(pair, name, ids, batch("a", "b"), partition=partition)
    for size, offset, level in product((-1, 0, 1000), (0, 1, 2, 3), (0, 1)):
        first = r.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=size)
        second = r.FetchPartition(partition=1, partition_max_bytes=1000)
        for wanted in ([first], [first, second]):
            topics = [r.FetchTopic(topic=name, partitions=wanted)]
            pair.ask("Fetch", 12, r(topics=topics, min_bytes=0, max_bytes=bytes_max, isolation_level=level))
    assert pair.errors("Fetch") == {"NONE", "OFFSET_OUT_OF_RANGE", "UNKNOWN_SERVER_ERROR"}


@pytest.mark.parametrize("version", [13, 18])
def test_a_fetch_of_partitions_behind_one_without_an_id(pair: Pair, version: int) -> None:
    """Kafka fails where it compares the name of a topic with none: not where that comes last, and not of twins."""
    r, other = m.FetchRequest, b"?" * 16
    told = set()
    for epoch, wanted in product((-1, 0), ([NO_UUID], [NO_UUID] * 2, [other, NO_UUID], [NO_UUID, other])):
        topics = [r.FetchTopic(topic_id=one, partitions=[r.FetchPartition(partition_max_bytes=9)]) for one in wanted]
        told.add(pair.ask("Fetch", version, r(topics=topics, session_epoch=epoch))[0].error_code)
        two = [r.FetchPartition(partition=partition, partition_max_bytes=9) for partition in (0, 1)]
        topics = [r.FetchTopic(topic_id=wanted[-1], partitions=two)]
        told.add(pair.ask("Fetch", version, r(topics=topics, session_epoch=epoch))[0].error_code)
    assert told == {0, -1}
