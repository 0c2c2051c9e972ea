"""`kafka-metadata-quorum` and `kafka-cluster` where they change who is in the cluster: they print of ottla what they
print of Kafka.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.storage.checkpoints import uuid_to_text

from ottla.testing import Broker

from ..oracle.kafka import Kafka
from ..oracle.tools import tool
from ..support.poll import until
from ..support.wire import Wire

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
DIRECTORY = uuid_to_text(bytes(range(16)))
_SAID = re.compile(r"[A-Z][a-z]|org.apache|DRY")  # not the log of the client, nor stacks
_UUID = re.compile(r"(?<=directoryId=)[A-Za-z0-9_-]{22}")


def new_controller(folder: Path, node_id: int, directory: str = DIRECTORY) -> Path:
    """Writes what `add-controller` reads of the controller that it adds: its configuration and its directory."""
    data = folder / f"data-{node_id}"
    data.mkdir()
    (data / "meta.properties").write_text(
        f"version=1\ncluster.id=some-cluster\nnode.id={node_id}\ndirectory.id={directory}\n"
    )
    properties = folder / f"{node_id}.properties"
    properties.write_text(
        f"process.roles=controller\nnode.id={node_id}\nlog.dirs={data}\ncontroller.listener.names=CONTROLLER\n"
        "listeners=CONTROLLER://127.0.0.1:1\ncontroller.quorum.bootstrap.servers=127.0.0.1:1\n"
    )
    return properties


def printed(servers: str, folder: Path) -> dict[str, tuple[int, list[str]]]:
    """What each command prints, and its exit code."""
    folder.mkdir()
    added = {
        f"add-controller {n}": ("--command-config", str(new_controller(folder, n)), "add-controller") for n in (1, 7)
    }
    removed = {
        f"remove-controller {' '.join((str(n), *more))}": ("remove-controller", "-i", str(n), "-d", DIRECTORY, *more)
        for n in (1, 7)
        for more in ((), ("--dry-run",))
    }
    commands = [
        ("MetadataQuorumCommand", name, ("--bootstrap-server", servers, *words))
        for name, words in {**added, **removed}.items()
    ]
    commands += [
        ("ClusterTool", f"unregister {n}", ("unregister", "--bootstrap-server", servers, "--id", str(n)))
        for n in (7, 1)
    ]
    found = {}
    for command, name, words in commands:
        done = tool(command, *words)
        said = _UUID.sub("its own", done.stdout + done.stderr)
        found[name] = (done.returncode, [line for line in said.splitlines() if _SAID.match(line)])
    return found


def without_brokers(servers: str) -> tuple[list[Any], list[tuple[int, str]], list[tuple[int, str]]]:
    """What the only broker answers after it was unregistered: brokers, errors of new topics, and of elections."""
    c, e = m.CreateTopicsRequest, m.ElectLeadersRequest
    cluster = m.DescribeClusterRequest(include_fenced_brokers=True)
    assigned = c.CreatableTopic(name="x", num_partitions=-1, replication_factor=-1)
    assigned.assignments = [c.CreatableReplicaAssignment(partition_index=0, broker_ids=[1])]
    topics = [c.CreatableTopic(name="u", num_partitions=1, replication_factor=1)]
    topics += [c.CreatableTopic(name="v", num_partitions=1, replication_factor=-1), assigned]
    elected = [e.TopicPartitions(topic="t", partitions=[0])]
    with Wire(servers) as wire:
        until(lambda: not wire.ask("DescribeCluster", 2, cluster).brokers, "the broker has heard of it")
        brokers = wire.ask("Metadata", 12, m.MetadataRequest(topics=[])).brokers
        made = wire.ask("CreateTopics", 7, c(topics=topics, timeout_ms=5000)).topics
        elections = [
            wire.ask("ElectLeaders", 2, e(election_type=kind, topic_partitions=elected, timeout_ms=5000))
            for kind in (0, 1)
        ]
        again = wire.ask("UnregisterBroker", 0, m.UnregisterBrokerRequest(broker_id=1))
    errors = [(one.error_code, one.error_message) for one in (*made, again)]
    found = [one for reply in elections for one in reply.replica_election_results[0].partition_result]
    return brokers, errors, [(one.error_code, one.error_message) for one in found]


def test_they_print_what_they_print_of_kafka(tmp_path: Path) -> None:
    with Broker(lab=False) as ours, Kafka(own_process=True) as kafka:
        made = [
            tool("TopicCommand", "--bootstrap-server", one.bootstrap_servers, "--create", "--topic", "t")
            for one in (ours, kafka)
        ]
        assert [one.returncode for one in made] == [0, 0]
        mine, theirs = (
            printed(ours.bootstrap_servers, tmp_path / "ours"),
            printed(kafka.bootstrap_servers, tmp_path / "k"),
        )
        after = [without_brokers(one.bootstrap_servers) for one in (ours, kafka)]
        kafka.stop(signal.SIGKILL)  # it would wait for a controller that lets it go
    assert mine == theirs
    assert after[0] == after[1]
    assert "already part of the set of voters" in "\n".join(mine["add-controller 1"][1])
    assert "Cannot remove voter" in "\n".join(mine["remove-controller 7"][1])
    assert mine["unregister 7"][0] == 1
    assert mine["unregister 1"] == (0, ["Broker 1 is no longer registered."])


def test_controllers_at_nodes_leave_and_join(tmp_path: Path) -> None:
    """What the tool asks of a quorum of three, and that it understands the replies."""
    with Broker({"ottla.nodes": 3, "ottla.controller.node": 2}, lab=False) as broker:

        def quorum(*words: str) -> str:
            done = tool("MetadataQuorumCommand", "--bootstrap-server", broker.bootstrap_servers, *words)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        def roles() -> dict[str, str]:
            lines = quorum("describe", "--replication").splitlines()[1:]
            return {line.split()[0]: line.split()[-1] for line in lines}

        status = quorum("describe", "--status")
        assert re.search(r"LeaderId:\s+2$", status, re.MULTILINE)
        directories = dict(re.findall(r'"id": (\d), "directoryId": "([\w-]{22})"', status))
        assert roles() == {"1": "Follower", "2": "Leader", "3": "Follower"}
        quorum("remove-controller", "-i", "3", "-d", directories["3"])
        assert roles() == {"1": "Follower", "2": "Leader", "3": "Observer"}
        quorum("--command-config", str(new_controller(tmp_path, 3, directories["3"])), "add-controller")
        quorum("remove-controller", "-i", "2", "-d", directories["2"])
        assert roles() == {"1": "Leader", "2": "Observer", "3": "Follower"}
