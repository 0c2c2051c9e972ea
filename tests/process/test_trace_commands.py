"""`ottla trace`: what a running broker has written, and what Wireshark's dissector says to it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from ottla.protocol import messages as m

from ottla.cli import main
from ottla.testing import Broker

from ..support import tshark
from ..support.ask import batch, fetch, produce_message
from ..support.wire import Closed, Wire

pytestmark = pytest.mark.slow


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["trace", *arguments])


SUBSCRIPTION = bytes.fromhex("0000 00000001 0006") + b"orders" + bytes(4)  # of a consumer


def _use(broker: Broker) -> None:
    """Asks what clients ask most, in versions that Wireshark 4.0 knows."""
    with Wire(broker.bootstrap_servers, client_id="shop") as wire:
        wire.ask("ApiVersions", 3, m.ApiVersionsRequest(client_software_name="wire", client_software_version="1"))
        wire.ask("Metadata", 9, m.MetadataRequest(topics=[]))
        r = m.CreateTopicsRequest
        topic = r.CreatableTopic(name="orders", num_partitions=2, replication_factor=1)
        wire.ask("CreateTopics", 5, r(topics=[topic], timeout_ms=10_000))
        wire.ask("Produce", 8, produce_message("orders", batch(*[b"v" * 500] * 10)))
        assert len(fetch(wire, "orders")) == 10
        wire.ask("FindCoordinator", 3, m.FindCoordinatorRequest(key="g"))
        wire.ask("InitProducerId", 4, m.InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1))
        o = m.ListOffsetsRequest
        partition = o.ListOffsetsPartition(partition_index=0, timestamp=-1)
        wire.ask("ListOffsets", 5, o(topics=[o.ListOffsetsTopic(name="orders", partitions=[partition])]))
        join = m.JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocol_type="consumer")
        join.protocols = [m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)]
        wire.ask("JoinGroup", 6, join)
        wire.ask("Heartbeat", 4, m.HeartbeatRequest(group_id="g", member_id="m"))
        wire.ask("OffsetFetch", 5, m.OffsetFetchRequest(group_id="g", topics=None))
        wire.ask("ListGroups", 3, m.ListGroupsRequest())
        wire.ask("DescribeConfigs", 2, _configs())
        wire.ask("DeleteTopics", 4, m.DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1000))
    with Wire(broker.bootstrap_servers, client_id="odd") as wire:
        wire.send(b"\0\0\0\x0a\x03\xe7\0\0\0\0\0\x09\xff\xff")
        with pytest.raises(Closed):
            wire.read_frame()


def _configs() -> Any:
    r = m.DescribeConfigsRequest
    return r(resources=[r.DescribeConfigsResource(resource_type=2, resource_name="orders")])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace from the start to the end of a broker."""
    path = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    with Broker({"ottla.trace": path, "ottla.trace.raw": "frames"}) as broker:
        _use(broker)
        shown = run("show", broker.lab_url, "--api", "Produce")  # the last events are at hand
        assert [line.split()[4:6] for line in shown.output.splitlines()[1:]] == [["Produce", "v8"]] * 2, shown.output
        assert run("show", f"{broker.lab_url}/v1/traces/7").exit_code == 1
    return path


def test_a_trace_from_the_start_is_shown_and_filtered(path: Path) -> None:
    shown = run("show", str(path)).stdout.splitlines()
    assert re.fullmatch(r"trace of ottla \S+, cluster \S+, node 1", shown[0])
    assert any(" > Produce v8 id=4 client=shop " in line and line.endswith("topic=orders") for line in shown)
    assert any("> key 999 v0 id=9 10B refused: API key 999 is not served" in line for line in shown)
    errors = run("show", "--errors", str(path)).stdout.splitlines()
    assert [line.split()[4] for line in errors] == ["JoinGroup", "Heartbeat", "key"]
    assert "MEMBER_ID_REQUIRED" in errors[0]
    of_group = run("show", "--group", "g", "--json", str(path)).stdout.splitlines()
    apis = {json.loads(line).get("api") for line in of_group[1:]}
    assert apis == {"JoinGroup", "Heartbeat", "OffsetFetch", "ListGroups"}
    assert '"group_id": "g"' in run("show", "-v", "--api", "JoinGroup", str(path)).stdout
    assert run("show", "--since", "2100-01-01T00:00:00", str(path)).stdout.count("\n") == 1
    assert run("show", "--since", "noon", str(path)).exit_code == 2
    unknown = run("show", "--api", "Fetch,Joingrup", str(path))
    assert (unknown.exit_code, "no API 'Joingrup' (did you mean JoinGroup?)" in unknown.stderr) == (2, True)


def test_a_file_that_is_missing_or_no_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("[]\n")
    for file in ("x", "absent"):
        found = run("show", str(tmp_path / file))
        assert (found.exit_code, found.stderr[:7]) == (1, "ottla: ")
    assert found.stderr == f"ottla: {tmp_path / 'absent'}: No such file or directory\n"


@pytest.mark.parametrize("file", ["x", "absent"])
def test_no_capture_is_made_of_what_is_no_trace(file: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("[]\n")
    (tmp_path / "earlier.pcapng").write_text("an earlier capture")
    for out in ("earlier.pcapng", "new.pcapng"):
        assert run("pcap", str(tmp_path / file), str(tmp_path / out)).exit_code == 1
    assert (tmp_path / "earlier.pcapng").read_text() == "an earlier capture"
    assert not (tmp_path / "new.pcapng").exists()


def test_a_trace_without_the_bytes_of_frames_is_no_capture(tmp_path: Path) -> None:
    asked = {"event": "request", "mono_us": 1, "connection": 1, "peer": "127.0.0.1:1", "size": 9}
    head = {"event": "trace", "format": 1, "clock_ms": 1, "mono_us": 1}
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in (head, asked)))
    found = run("pcap", str(tmp_path / "t.jsonl"), str(tmp_path / "t.pcapng"))
    words = "the capture lacks 1 frames, whose bytes the trace does not have (ottla.trace.raw); 0 are in it"
    assert (found.exit_code, found.stderr) == (1, f"ottla: {words}\n")


def test_wireshark_reads_the_capture_of_a_trace(path: Path, tmp_path: Path) -> None:
    capture = tmp_path / "capture.pcapng"
    assert run("pcap", str(path), str(capture)).exit_code == 0
    columns = ("kafka.api_key", "kafka.correlation_id", "tcp.analysis.flags", "_ws.malformed", "tcp.checksum.status")
    options = ["-r", str(capture), "-T", "fields", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    try:
        printed = tshark.tshark(*options, *(one for column in columns for one in ("-e", column)))
    except tshark.Missing as missing:
        pytest.skip(str(missing))
    rows = [line.split("\t") for line in printed.splitlines()]
    assert [row[2] != "" for row in rows][-3:] == [True, True, False]  # the refused frame has no bytes
    del rows[-3:]
    keys = {int(key) for row in rows for key in row[0].split(",") if key}
    assert keys >= {0, 1, 2, 3, 9, 10, 11, 12, 16, 18, 19, 20, 22, 32}
    wrong = [row for row in rows if row[2] or row[3] or row[4] != "1"]
    assert wrong == [], "flags of TCP, malformed packets or bad checksums"
    dissected = tshark.tshark("-r", str(capture), "-V", "-Y", "kafka")
    assert "Topic Name: orders" in dissected
