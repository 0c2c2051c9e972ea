"""Changes of the quorum and of registrations, asked of ottla and of Apache Kafka, compared field by field."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.schema import NO_UUID

from ..support.differential import Pair
from ..support.stories.topics import versions

pytestmark = pytest.mark.slow
OTHER = bytes(range(16))
ADD, REMOVE = m.AddRaftVoterRequest, m.RemoveRaftVoterRequest
_UUID = re.compile(r"(?<=directoryId=)[A-Za-z0-9_-]{22}|(?<=cluster id \")[A-Za-z0-9_-]{22}")


def without_ids(reply: Any) -> None:
    """Each broker has a cluster and a directory of its own."""
    reply.error_message = _UUID.sub("its own", reply.error_message)


def at(*names: str, host: str = "127.0.0.1", port: int = 1) -> list[Any]:
    return [ADD.Listener(name=name, host=host, port=port) for name in names]


def identities(pair: Pair) -> list[tuple[str, bytes]]:
    """The cluster and the directory of the voter, of ours and of theirs."""
    q = m.DescribeQuorumRequest
    log = q.TopicData(topic_name="__cluster_metadata", partitions=[q.PartitionData(partition_index=0)])
    found = []
    for wire in pair.wires:
        (voter,) = wire.ask("DescribeQuorum", 2, q(topics=[log])).topics[0].partitions[0].current_voters
        cluster = wire.ask("DescribeCluster", 0, m.DescribeClusterRequest()).cluster_id
        found.append((cluster, voter.replica_directory_id))
    return found


@pytest.mark.parametrize("version", versions("AddRaftVoter"))
def test_a_voter_is_added(pair: Pair, version: int) -> None:
    """To each id that is new, Kafka connects once; a second time it would wait."""
    pair.trims["AddRaftVoter"] = without_ids
    known = identities(pair)
    new = iter(range(100 * (version + 1), 1000))

    def add(voter_id: int, listeners: list[Any], directory: bytes | None = OTHER, **more: Any) -> None:
        def made(side: int) -> Any:
            cluster, own = known[side]
            return ADD(
                voter_id=voter_id,
                voter_directory_id=own if directory is None else directory,
                listeners=listeners,
                **{"cluster_id": cluster, "timeout_ms": 1000, **more},
            )

        pair.both("AddRaftVoter", version, made)

    controller = at("CONTROLLER")
    for directory in (None, OTHER):
        add(1, controller, directory)
        add(1, controller, directory, cluster_id=None)
        add(1, [], directory)
        add(1, controller, directory, cluster_id="x")
    for cluster in ("x", "", "é"):
        add(2, controller, cluster_id=cluster)
        add(-1, [], cluster_id=cluster)
    for voter_id in (-1, -2, -(1 << 31)):
        add(voter_id, controller)
        add(voter_id, [])
    add(2, controller, NO_UUID)
    add(1, controller, NO_UUID)
    for names in ((), ("NOPE",), ("a", "b", "c"), ("x", "X"), ("SSL", "EXTERNAL", "INTERNAL", "PLAINTEXT")):
        add(2, at(*names))
    for names in (("CONTROLLER",), ("controller",), ("X", "CONTROLLER"), ("CONTROLLER", "CONTROLLER")):
        add(next(new), at(*names))
    for timeout_ms in (0, -1):
        add(next(new), controller, timeout_ms=timeout_ms)
    if version >= 1:
        add(next(new), controller, ack_when_committed=False)
    expected = {"DUPLICATE_VOTER", "INCONSISTENT_CLUSTER_ID", "INVALID_REQUEST", "REQUEST_TIMED_OUT"}
    assert pair.errors("AddRaftVoter") == expected


def test_a_voter_is_removed(pair: Pair) -> None:
    pair.trims["RemoveRaftVoter"] = without_ids
    known = identities(pair)
    for voter_id in (1, 2, 0, -1):
        for directory in (None, OTHER, NO_UUID):
            for cluster in (None, "own", "", "x"):

                def made(side: int) -> Any:
                    named, own = known[side]
                    return REMOVE(
                        cluster_id=named if cluster == "own" else cluster,  # noqa: B023
                        voter_id=voter_id,  # noqa: B023
                        voter_directory_id=own if directory is None else directory,  # noqa: B023
                    )

                pair.both("RemoveRaftVoter", 0, made)
    assert pair.errors("RemoveRaftVoter") == {"INCONSISTENT_CLUSTER_ID", "INVALID_REQUEST", "VOTER_NOT_FOUND"}


def test_a_controller_is_unregistered(pair: Pair) -> None:
    for controller_id in (1, 2, 0, -1, (1 << 31) - 1):
        pair.ask("UnregisterController", 0, m.UnregisterControllerRequest(controller_id=controller_id))
    assert pair.errors("UnregisterController") == {"CONTROLLER_ID_NOT_REGISTERED", "INVALID_REQUEST"}


def test_a_broker_that_is_not_registered_is_unregistered(pair: Pair) -> None:
    for broker_id in (2, 0, -1, (1 << 31) - 1):
        pair.ask("UnregisterBroker", 0, m.UnregisterBrokerRequest(broker_id=broker_id))
    assert pair.errors("UnregisterBroker") == {"BROKER_ID_NOT_REGISTERED"}
