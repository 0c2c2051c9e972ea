"""How `ottla compare` and `ottla replay` begin connections of their own: as our verdict wants it of every client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from ottla.protocol import messages as m

from ottla.addresses import Address
from ottla.cli import main
from ottla.replay.target import Target
from ottla.testing import Broker

from ..support.compared import compared
from ..support.wire import Wire

pytestmark = pytest.mark.slow


def first_requests(trace: Path) -> set[str]:
    found: dict[int, str] = {}
    for event in map(json.loads, trace.read_text().splitlines()):
        if event["event"] == "request":
            found.setdefault(event["connection"], event["api"])
    return set(found.values())


def trace_of_a_client(path: Path, node: int) -> None:
    lines = [
        {"event": "begin", "format": 1, "version": "1", "mono_us": 0, "at_ms": 0},
        {
            "event": "request",
            "mono_us": 1,
            "at_ms": 0,
            "connection": 1,
            "exchange": 1,
            "node": node,
            "api": "ApiVersions",
            "key": 18,
            "version": 0,
            "correlation_id": 1,
            "client_id": "shop",
            "message": {},
        },
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))


def test_every_connection_begins_with_api_versions(tmp_path: Path) -> None:
    traces = [tmp_path / f"{name}.jsonl" for name in "ab"]
    with (
        Broker({"ottla.trace": traces[0], "ottla.nodes": 2}) as a,
        Broker({"ottla.trace": traces[1], "ottla.nodes": 2}) as b,
    ):
        first = [one.bootstrap_servers.split(",")[0] for one in (a, b)]
        with compared(*first) as proxy, Wire(proxy.bootstrap_servers) as wire:
            wire.ask("ApiVersions", 3, m.ApiVersionsRequest(client_software_name="a", client_software_version="1"))
            wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["g", "h", "i", "j"]))
            for group in "ghij":  # the coordinators of some are at the other node of B
                wire.ask("OffsetFetch", 7, m.OffsetFetchRequest(group_id=group, topics=None))
            r = m.CreateTopicsRequest
            wire.ask("CreateTopics", 5, r(topics=[r.CreatableTopic(name="t", num_partitions=1, replication_factor=1)]))
        warned = []
        for node in (2, 9):
            trace_of_a_client(tmp_path / "replayed.jsonl", node)
            done = CliRunner().invoke(main, ["replay", "--to", first[1], str(tmp_path / "replayed.jsonl")])
            warned.append(done.stderr)
    assert [first_requests(one) for one in traces] == [{"ApiVersions"}] * 2
    assert warned[0] == ""
    assert "is one of 2 nodes: it gets the requests for node 9, and refuses those" in warned[1]
    shown = [CliRunner().invoke(main, ["trace", "show", "--node", n, str(traces[1])]).stdout for n in ("1", "2")]
    assert [one.count("client=shop") for one in shown] == [1, 1]  # a node goes to its own, one that is lacking to --to
    assert [" node 1 > ApiVersions" in shown[0], " node 2 " in shown[0]] == [True, False]


@pytest.mark.parametrize("release", ["0.8.2", "0.9"])  # the one closes the connection, the other is silent
def test_brokers_that_do_not_know_api_versions_are_reached_without(release: str) -> None:
    with Broker({"ottla.emulate": release}) as old, compared(old.bootstrap_servers, old.bootstrap_servers) as proxy:
        with Wire(proxy.bootstrap_servers) as wire:
            assert wire.ask("Metadata", 0, m.MetadataRequest(topics=[])).brokers
        proxy.end()
        notes = [one["text"] for one in proxy.events if one["event"] == "note"]
        assert Target(*Address.parse(old.bootstrap_servers)).nodes(2.0).keys() <= {1}
    words = "does not answer ApiVersions, as brokers before Kafka 0.10"
    assert notes[:2] == [f"A {words}", f"B {words}"]
    assert proxy.summary["compared"] == {"Metadata": 1}
