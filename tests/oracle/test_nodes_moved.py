"""Nodes of ottla and brokers of Apache Kafka: partitions move to other replicas, and clients read from followers, with
the same answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, fetch_message, produce_message
from ..support.poll import until
from .cluster import KafkaCluster
from .cluster_pair import RACK_AWARE, SETTINGS, Cluster, Nodes, Pair, ask, create
from .tools import tool

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
RACKED: dict[str, object] = {**SETTINGS, "replica.selector.class": RACK_AWARE, "log.retention.ms": "-1"}
RACKS = ("a", "b", "c")
_LOG_DIRS = re.compile(r'(?<="log_dirs":)\[.*?\]')
_ISR = re.compile(r"(?<=Isr: )[\d,]+")
_TOPIC_ID = re.compile(r"(?<=TopicId: )[A-Za-z0-9_-]{22}")
_LOGGED = re.compile(r"\[?\d{4}-\d\d-\d\d|SLF4J|\s+at | \(org\.apache|\t[a-z0-9.]+ = |$")
MOVES: dict[str, tuple[list[int], list[int]]] = {
    "grows": ([1], [1, 2, 3]),
    "moves": ([1, 2], [2, 3]),
    "leader-goes": ([1, 2], [3]),
    "reordered": ([1, 2, 3], [3, 1, 2]),
    "shrinks": ([1, 2, 3], [2]),
    "same": ([1, 2], [1, 2]),
    "safe": ([1, 2], [3]),
    "all-others": ([1], [3, 2]),
}
PENDING = {"kept": [2, 3], "cancelled": [2, 3], "changed": [3, 2], "ended": [2]}
a, ls = m.AlterPartitionReassignmentsRequest, m.ListPartitionReassignmentsRequest


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Nodes(RACKED, RACKS) as ours, KafkaCluster(RACKED, racks=RACKS, own_processes=(3,)) as kafka:
        yield ours, kafka


def both(pair: Pair, what: str, of: Callable[[Cluster], Any]) -> Any:
    """Waits until both say the same; returns that."""
    ours, kafka = pair
    try:
        until(lambda: of(ours) == of(kafka), what, within=30)
    except AssertionError:
        assert of(ours) == of(kafka), what
    return of(kafka)


def move(cluster: Cluster, topic: str, replicas: Sequence[int] | None, **options: Any) -> tuple[str, str | None]:
    """Returns the error, with its message."""
    parts = [a.ReassignablePartition(partition_index=0, replicas=None if replicas is None else list(replicas))]
    request = a(topics=[a.ReassignableTopic(name=topic, partitions=parts)], timeout_ms=10_000, **options)
    one = ask(cluster, 2, "AlterPartitionReassignments", 1, request).responses[0].partitions[0]
    return Errors(one.error_code).name, one.error_message


def listed(cluster: Cluster) -> dict[str, tuple[list[int], list[int], list[int]]]:
    found = ask(cluster, 2, "ListPartitionReassignments", 0, ls(topics=None, timeout_ms=10_000))
    return {
        topic.name: (one.replicas, one.adding_replicas, one.removing_replicas)
        for topic in found.topics
        for one in topic.partitions
    }


def replicas(cluster: Cluster, names: Sequence[str]) -> dict[str, tuple[object, ...]]:
    r = m.DescribeTopicPartitionsRequest
    found = ask(cluster, 2, "DescribeTopicPartitions", 0, r(topics=[r.TopicRequest(name=name) for name in names]))
    return {
        topic.name: (
            one.replica_nodes,
            sorted(one.isr_nodes),
            one.leader_id,
            one.leader_epoch,
            sorted(one.eligible_leader_replicas or []),
        )
        for topic in found.topics
        for one in topic.partitions
    }


def produced(cluster: Cluster, node: int, topic: str) -> str:
    one = ask(cluster, node, "Produce", 10, produce_message(topic, batch(b"v"), 0)).responses[0].partition_responses[0]
    return Errors(one.error_code).name


def fill(pair: Pair, node: int, topic: str) -> None:
    for one in pair:
        until(lambda one=one: produced(one, node, topic) == "NONE", f"a record in {topic}", within=30)  # type: ignore[misc]


def test_replicas_move_by_the_same_steps(pair: Pair) -> None:
    for name, (before, _) in MOVES.items():
        for one in pair:
            create(one, name, before, configs={"min.insync.replicas": "2"} if name == "safe" else None)
        fill(pair, before[0], name)
    both(pair, "the same replicas before", lambda one: replicas(one, list(MOVES)))
    for name, (_, after) in MOVES.items():
        assert [move(one, name, after) for one in pair] == [("NONE", None)] * 2
    both(pair, "nothing is reassigned any more", listed)
    found = both(pair, "the same replicas after", lambda one: replicas(one, list(MOVES)))
    assert {name: one[0] for name, one in found.items()} == {name: after for name, (_, after) in MOVES.items()}
    assert both(pair, "the same answer to a producer", lambda one: produced(one, 1, "leader-goes")) != "NONE"


def test_replicas_that_left_stay_eligible_and_keep_the_last_one_from_leading(pair: Pair) -> None:
    """Kafka's controller names brokers as eligible that are no replicas any more. After a crash of the last replica,
    only an unclean election gives the partition a leader.
    """
    e = m.ElectLeadersRequest
    for one in pair:
        create(one, "left", [1, 2], configs={"min.insync.replicas": "2"})
        create(one, "uneven", [1, 2], [1, 3], configs={"min.insync.replicas": "2"})
        assert move(one, "left", [3]) == move(one, "uneven", [1]) == ("NONE", None)
    until(lambda: not listed(pair[0]) and not listed(pair[1]), "the reassignments have ended", within=30)
    left = both(pair, "the same replicas", lambda one: replicas(one, ["left"])["left"])
    assert (left[0], left[1], left[4]) == ([3], [3], [1, 2])
    for one in pair:
        one.happens("kill", 3)
    for one in pair:
        until(lambda one=one: replicas(one, ["left"])["left"][2] == -1, "no leader", within=30)  # type: ignore[misc]
    both(pair, "the same eligible replicas beside few", lambda one: replicas(one, ["uneven"]))
    for one in pair:
        one.happens("start", 3)
    both(pair, "the same replicas", lambda one: replicas(one, ["left"])["left"][1:])
    wanted = e(election_type=1, topic_partitions=[e.TopicPartitions(topic="left", partitions=[0])], timeout_ms=10_000)

    def elects(cluster: Cluster) -> bool:
        found = ask(cluster, 1, "ElectLeaders", 2, wanted).replica_election_results
        return bool(found[0].partition_result[0].error_code in (0, Errors.ELECTION_NOT_NEEDED))

    assert replicas(pair[1], ["left"])["left"][2] == -1
    for one in pair:
        until(lambda one=one: elects(one), "an unclean election", within=30)  # type: ignore[misc]
    both(pair, "the same replicas", lambda one: replicas(one, ["left"])["left"][:3])
    assert replicas(pair[1], ["left"])["left"][2] == 3


REFUSED: list[tuple[str, list[int] | None, dict[str, Any]]] = [
    ("refused", None, {}),
    ("refused", [], {}),
    ("refused", [9], {}),
    ("refused", [1, 1], {}),
    ("refused", [-1, 2], {}),
    ("nope", [1], {}),
    ("nope", None, {}),
    ("refused", [1], {"allow_replication_factor_change": False}),
    ("refused", [1, 2, 3], {"allow_replication_factor_change": False}),
    ("refused", [2, 1], {"allow_replication_factor_change": False}),
]


def test_the_same_is_refused(pair: Pair) -> None:
    for one in pair:
        create(one, "refused", [1, 2])
    answers = [[move(one, name, wanted, **options) for name, wanted, options in REFUSED] for one in pair]
    assert answers[0] == answers[1]
    assert {code for code, _ in answers[1]} == {
        "NONE",
        "INVALID_REPLICATION_FACTOR",
        "INVALID_REPLICA_ASSIGNMENT",
        "NO_REASSIGNMENT_IN_PROGRESS",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_a_reassignment_waits_for_a_node_that_has_stopped(pair: Pair) -> None:
    """It is listed, changed and cancelled, and goes on when the node starts."""
    for name, before in PENDING.items():
        for one in pair:
            create(one, name, before)
        fill(pair, before[0], name)
    for one in pair:
        one.happens("stop", 1)
    steps: list[tuple[str, list[int] | None, dict[str, Any]]] = [
        *((name, [1], {}) for name in PENDING),
        ("kept", [1, 3], {"allow_replication_factor_change": False}),
        ("cancelled", None, {}),
        ("cancelled", None, {}),
        ("changed", [1, 2], {}),
        ("changed", [3, 1], {"allow_replication_factor_change": False}),
        ("ended", [3, 2], {}),
    ]
    for name, wanted, options in steps:
        answers = [move(one, name, wanted, **options) for one in pair]
        assert answers[0] == answers[1], (name, wanted)
        both(pair, f"the same list after {name} {wanted}", listed)
        both(pair, f"the same replicas after {name} {wanted}", lambda one: replicas(one, list(PENDING)))
    assert set(listed(pair[1])) == {"kept", "changed"}
    for one in pair:
        one.happens("start", 1)
    until(lambda: not listed(pair[0]) and not listed(pair[1]), "the reassignments have ended", within=60)
    both(pair, "the same replicas at the end", lambda one: replicas(one, list(PENDING)))


def fetched(cluster: Cluster, node: int, topic: str, offset: int, version: int = 11, **fields: Any) -> tuple[Any, ...]:
    message = fetch_message(topic, offset, 0)
    if version >= 13:
        known = ask(
            cluster, 1, "Metadata", 12, m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=topic)])
        )
        message.topics[0].topic, message.topics[0].topic_id = "", known.topics[0].topic_id
    epochs = {name: fields.pop(name) for name in ("current_leader_epoch", "last_fetched_epoch") if name in fields}
    for name, value in fields.items():
        setattr(message, name, value)
    for name, value in epochs.items():
        setattr(message.topics[0].partitions[0], name, value)
    one = ask(cluster, node, "Fetch", version, message).responses[0].partitions[0]
    return (
        Errors(one.error_code).name,
        (one.high_watermark, one.last_stable_offset, one.log_start_offset),
        one.preferred_read_replica,
        len(one.records or b""),
        one.aborted_transactions,
        (one.diverging_epoch.epoch, one.diverging_epoch.end_offset),
        (one.current_leader.leader_id, one.current_leader.leader_epoch),
    )


FETCHES: list[tuple[int, str, int, int, dict[str, Any]]] = [
    *((1, "read", at, 11, {"rack_id": rack}) for rack in ("", "a", "b", "c", "elsewhere") for at in (0, 3, 4)),
    *((1, "read", 0, version, {"rack_id": "b"}) for version in (11, 12)),
    *((1, "read", 0, 11, {"rack_id": rack, "isolation_level": 1}) for rack in ("a", "b")),
    (1, "read", 0, 11, {"rack_id": "b", "current_leader_epoch": 5}),
    (1, "read", 0, 11, {"rack_id": "b", "replica_id": -2}),
    *((2, "read", at, version, {}) for version in (4, 10, 11, 12) for at in (0, 3, 4)),
    (2, "read", 0, 11, {"isolation_level": 1}),
    (2, "read", 0, 11, {"rack_id": "c"}),
    *((2, "read", 0, version, {"replica_id": -2}) for version in (10, 11)),
    *((2, "read", 0, 11, {"replica_id": node}) for node in (1, 3, 7)),
    *((2, "read", 0, 12, {"current_leader_epoch": epoch}) for epoch in (0, 1)),
    *((2, "read", at, 12, {"last_fetched_epoch": epoch}) for epoch in (0, 5) for at in (0, 3)),
    *((2, "elsewhere", 0, version, {}) for version in (12, 15, 16)),
    *((2, "read", 0, version, {}) for version in (13, 16, 18)),
    (1, "elsewhere", 0, 11, {"rack_id": "b"}),
    (1, "elsewhere", 0, 11, {"rack_id": "c"}),
]


def test_followers_answer_the_same(pair: Pair) -> None:
    for one in pair:
        create(one, "read", [1, 2, 3])
        create(one, "elsewhere", [1, 3])
    for _ in range(3):
        fill(pair, 1, "read")
    for node in (1, 2, 3):
        both(pair, f"all have the records: {node}", lambda one, node=node: fetched(one, node, "read", 0))  # type: ignore[misc]
    for node, topic, offset, version, fields in FETCHES:
        words = f"Fetch {version} of {topic} from {offset} at {node}, {fields}"
        both(pair, words, lambda one: fetched(one, node, topic, offset, version, **dict(fields)))  # noqa: B023
    assert fetched(pair[1], 1, "read", 0, rack_id="b")[2] == 2


def test_offsets_are_told_by_leaders_only(pair: Pair) -> None:
    lo, o = m.ListOffsetsRequest, m.OffsetForLeaderEpochRequest
    for one in pair:
        create(one, "read", [1, 2, 3])

    def listing(cluster: Cluster, replica: int, timestamp: int) -> tuple[int, int, int]:
        wanted = lo.ListOffsetsTopic(name="read")
        wanted.partitions = [lo.ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
        found = ask(cluster, 2, "ListOffsets", 7, lo(replica_id=replica, topics=[wanted])).topics[0].partitions[0]
        return found.error_code, found.offset, found.leader_epoch

    def ended(cluster: Cluster) -> tuple[int, int, int]:
        part = o.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
        wanted = o(replica_id=-1, topics=[o.OffsetForLeaderTopic(topic="read", partitions=[part])])
        found = ask(cluster, 2, "OffsetForLeaderEpoch", 4, wanted).topics[0].partitions[0]
        return found.error_code, found.leader_epoch, found.end_offset

    for replica in (-1, -2):
        for timestamp in (-1, -2, -3, 0):
            both(pair, f"offsets for {replica}, {timestamp}", lambda one: listing(one, replica, timestamp))  # noqa: B023
    assert both(pair, "the end of an epoch", ended)[0] == Errors.NOT_LEADER_OR_FOLLOWER


def test_a_node_that_is_stopped_is_not_preferred(pair: Pair) -> None:
    for one in pair:
        create(one, "chosen", [1, 2, 3])
    fill(pair, 1, "chosen")

    def preferred(cluster: Cluster) -> int:
        found: int = fetched(cluster, 1, "chosen", 0, rack_id="b")[2]
        return found

    assert both(pair, "the closest replica", preferred) == 2
    for one in pair:
        one.happens("stop", 2)
    assert both(pair, "the leader, of those that are left", preferred) == -1
    for one in pair:
        one.happens("start", 2)
    until(lambda: preferred(pair[0]) == preferred(pair[1]) == 2, "it is chosen again", within=60)


def printed(cluster: Cluster, name: str, *words: str) -> tuple[int, list[str]]:
    """The exit code of a tool, and what it prints."""
    done = tool(name, "--bootstrap-server", cluster.address(2), *words)
    said = _LOG_DIRS.sub("[]", _TOPIC_ID.sub("its id", done.stdout + done.stderr))
    said = _ISR.sub(lambda found: ",".join(sorted(found[0].split(","))), said)
    return done.returncode, sorted(line for line in said.splitlines() if not _LOGGED.match(line))


def planned(folder: Path, name: str, *placed: list[int]) -> str:
    path = folder / name
    parts = [{"topic": "tool", "partition": index, "replicas": nodes} for index, nodes in enumerate(placed)]
    path.write_text(json.dumps({"version": 1, "partitions": parts}))
    return str(path)


def is_known(cluster: Cluster, topic: str, *placed: list[int]) -> bool:
    """Whether each node knows where the partitions are: a tool asks any."""
    r = m.DescribeTopicPartitionsRequest
    request = r(topics=[r.TopicRequest(name=topic)])
    found = [ask(cluster, node, "DescribeTopicPartitions", 0, request).topics[0] for node in (1, 2, 3)]
    return all([one.replica_nodes for one in topic.partitions] == list(placed) for topic in found)


REASSIGN, SLOW, FAST = "reassign.ReassignPartitionsCommand", "1000", "500000000"
DESCRIBED = ("TopicCommand", "--describe", "--topic", "tool")
RATES = ("kafka.admin.ConfigCommand", "--describe", "--entity-type", "brokers", "--entity-name", "1")
ELECTED = ("LeaderElectionCommand", "--election-type", "preferred", "--topic", "tool", "--partition", "0")
MORE = ("TopicCommand", "--alter", "--topic", "tool", "--partitions")


def same(pair: Pair, *steps: tuple[str, ...]) -> None:
    """Runs tools on both clusters, which print the same. A node of Kafka may know of a change later than the one that
    was told to make it, so a description is asked for again.
    """
    for words in steps:
        if words[: len(DESCRIBED)] == DESCRIBED:
            both(pair, " ".join(words), lambda one, words=words: printed(one, *words))  # type: ignore[misc]
            continue
        answers = [printed(one, *words) for one in pair]
        assert answers[0] == answers[1], words


def test_the_tools_print_the_same(pair: Pair, tmp_path: Path) -> None:
    """A throttle keeps the reassignments from ending, until it is raised."""
    for one in pair:
        create(one, "tool", [2, 3], [3, 2])
        for index, node in enumerate((2, 3)):
            large = produce_message("tool", batch(bytes(900_000)), index)
            for _ in range(20):
                found = ask(one, node, "Produce", 10, large).responses[0].partition_responses[0]
                assert found.error_code == 0
    moved = (REASSIGN, "--reassignment-json-file", planned(tmp_path, "moved", [1, 3], [1, 2]))
    back = (REASSIGN, "--reassignment-json-file", planned(tmp_path, "back", [2, 3], [1, 2]))
    wrong = (REASSIGN, "--reassignment-json-file", planned(tmp_path, "wrong", [9], [1, 2]))
    same(
        pair,
        (*wrong, "--execute"),
        (*moved, "--execute", "--throttle", SLOW),
        (REASSIGN, "--list"),
        (*moved, "--verify"),
        DESCRIBED,
        (*DESCRIBED, "--under-replicated-partitions"),
        RATES,
        (*back, "--execute"),
        (*back, "--execute", "--additional", "--throttle", SLOW),
        (REASSIGN, "--list"),
        (*back, "--cancel", "--preserve-throttles"),
        (REASSIGN, "--list"),
        (*back, "--cancel"),
        DESCRIBED,
        (*moved, "--execute", "--throttle", SLOW),
        (*moved, "--execute", "--additional", "--throttle", FAST),
    )
    until(lambda: not listed(pair[0]) and not listed(pair[1]), "the reassignments have ended", within=60)
    until(lambda: all(is_known(one, "tool", [1, 3], [1, 2]) for one in pair), "each node knows it")
    same(
        pair,
        (*moved, "--verify"),
        DESCRIBED,
        RATES,
        ELECTED,
        (*MORE, "4", "--replica-assignment", "1:3,1:2,3:1,2:1"),
        DESCRIBED,
        (*MORE, "5", "--replica-assignment", "1:3,1:2,3:1,2:1,9:1"),
        (*MORE, "5", "--replica-assignment", "1:3,1:2,3:1,2:1,2"),
    )
