"""The Scala clients of Kafka 0.8.2 to 1.1, unchanged, and tools of those years, at brokers in a ZooKeeper that emulate
their release and later ones. By default of some releases, with OTTLA_RELEASES=1 of all.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..oracle.jars import missing
from ..oracle.kafka import program
from ..oracle.zookeeper import ZooKeeperServer, tool
from ..support.poll import until
from ..support.wire import Wire
from .earlier_pairs import ALL, LATER, since

pytestmark = pytest.mark.slow
VERSIONS = {"0.8.2": "0.8.2.2", "0.10.2": "0.10.2.2", "1.1": "1.1.1"}
VERSIONS |= {"0.9": "0.9.0.1", "0.10.0": "0.10.0.1", "0.10.1": "0.10.1.1", "0.11": "0.11.0.3", "1.0": "1.0.2"}
CHOSEN = {"0.8.2": ["0.8.2", "3.9"], "0.10.2": ["0.10.2"]}


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeperServer]:
    reason = missing()
    if reason is not None:
        assert not os.environ.get("CI"), reason
        pytest.skip(reason)
    with ZooKeeperServer() as running:
        yield running


def registered(zookeeper: ZooKeeperServer, release: str) -> Broker:
    own = {"ottla.emulate": release, "zookeeper.connect": f"{zookeeper.address}/{release}", "num.partitions": 1}
    return Broker({**own, "offsets.topic.num.partitions": 1}, lab=False)


@pytest.fixture(scope="module")
def brokers(zookeeper: ZooKeeperServer) -> Iterator[dict[str, Broker]]:
    """Makes a broker of a release when it is first asked for."""
    running: dict[str, Broker] = {}

    class Made(dict[str, Broker]):
        def __missing__(self, release: str) -> Broker:
            broker = running[release] = self[release] = registered(zookeeper, release).__enter__()
            find = m.FindCoordinatorRequest(key="g")  # SimpleConsumer does not ask for it
            with Wire(broker.bootstrap_servers) as wire:
                until(lambda: not wire.ask("FindCoordinator", 0, find).error_code, "there is a coordinator", within=20)
            return broker

    yield Made()
    for broker in running.values():
        broker.__exit__(None, None, None)


@pytest.mark.parametrize("client", VERSIONS if ALL else CHOSEN)
def test_scala_clients(brokers: dict[str, Broker], zookeeper: ZooKeeperServer, client: str, tmp_path: Path) -> None:
    """They produce, sync and async, with each codec, read, ask for offsets, and commit to ZooKeeper and to Kafka."""
    later = [one for one in since(client, "4.0") if one in (client, *LATER)]
    served = later if ALL else CHOSEN[client]
    places = [f"{one}={brokers[one].bootstrap_servers}={zookeeper.address}/{one}" for one in served]
    command = program(f"kafka-{VERSIONS[client]}", "ScalaClients", tmp_path)
    done = subprocess.run([*command, *places], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.splitlines() == [*(f"{one} ok" for one in served), "ok"], (done.stdout + done.stderr)[-3000:]


@pytest.mark.parametrize("client", ["0.8.2", "0.10.2"])
def test_tools_that_read_with_a_simple_consumer(brokers: dict[str, Broker], client: str) -> None:
    """At a broker that is registered in a ZooKeeper."""
    servers, version, topic = brokers[client].bootstrap_servers, VERSIONS[client], f"tools-{client}"
    lines = [f"value {number}" for number in range(100)]
    at = ("--broker-list", servers, "--topic", topic)
    tool(version, "tools.ConsoleProducer", *at, given="\n".join(lines) + "\n")
    for time, offset in (("-1", 100), ("-2", 0)):
        assert tool(version, "tools.GetOffsetShell", *at, "--time", time).split() == [f"{topic}:0:{offset}"]
    shown = tool(version, "tools.SimpleConsumerShell", *at, "--partition", "0", "--offset", "-2", "--no-wait-at-logend")
    assert [line for line in shown.splitlines() if line.startswith("value")] == lines
    some = tool(version, "tools.SimpleConsumerShell", *at, "--partition", "0", "--offset", "90", "--max-messages", "5")
    assert [line for line in some.splitlines() if line.startswith("value")] == lines[90:95]
