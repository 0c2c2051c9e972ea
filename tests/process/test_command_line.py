"""The process of a broker: how it starts, why it does not, what it reads and writes, and the other commands."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from ottla.broker.config import sources
from ottla.protocol import messages as m

from ottla import testing
from ottla.cli import main
from ottla.lab_cluster import Cluster
from ottla.testing import Broker, BrokerFailed

from ..lanes import NOT_SLOW
from ..support.ask import batch, create, fetch, produce
from ..support.wire import Wire

pytestmark = pytest.mark.long


@pytest.fixture
def wire(broker: Broker) -> Any:
    with Wire(broker.bootstrap_servers) as connected:
        yield connected


@pytest.mark.slow
def test_data_and_metadata_outlive_a_restart_and_a_crash(tmp_path: Path) -> None:
    broker = Broker(directory=tmp_path).start()
    with Wire(broker.bootstrap_servers) as wire:
        topic_id = create(wire, "kept", 2, retention_ms="777777")
        for n in range(50):
            produce(wire, "kept", b"%d" % n, producer_id=5, producer_epoch=0, base_sequence=n)
    for how in (broker.stop, broker.kill, broker.stop):
        how()
        broker.start()
        with Wire(broker.bootstrap_servers) as wire:
            found = wire.ask("Metadata", 12, m.MetadataRequest(topics=None)).topics
            assert [(t.name, t.topic_id, len(t.partitions)) for t in found] == [("kept", topic_id, 2)]
            wanted = m.DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=2, resource_name="kept", configuration_keys=["retention.ms"]
            )
            described = wire.ask("DescribeConfigs", 4, m.DescribeConfigsRequest(resources=[wanted])).results[0]
            assert described.configs[0].value == "777777"
            again = produce(wire, "kept", b"49", producer_id=5, producer_epoch=0, base_sequence=49)
            assert (again.error_code, again.base_offset) == (0, 49), "the duplicate is still known"
            assert fetch(wire, "kept") == [b"%d" % n for n in range(50)]
    broker.close()


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KAFKA_")}
    command = [sys.executable, "-m", "ottla", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)


@pytest.mark.slow
def test_a_configuration_that_cannot_be_is_exit_2(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=1\n\nnum.partitions=none\n")
    refused = serve("-c", str(file))
    assert refused.returncode == 2
    assert f"{file}, line 3" in refused.stderr
    assert "Not a number of type INT" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("listeners=nonsense", "nonsense"),
        ("listeners=SASL_PLAINTEXT://127.0.0.1:0", "GSSAPI needs a keytab"),
        ("group.consumer.assignors=no_such:thing", "no_such:thing cannot be loaded"),
    ],
)
def test_settings_that_cannot_be_are_exit_2(tmp_path: Path, setting: str, reason: str) -> None:
    refused = serve("listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={tmp_path}", setting)
    assert (refused.returncode, reason in refused.stderr) == (2, True)


@pytest.mark.slow
def test_other_exit_codes_say_why_it_did_not_start(tmp_path: Path) -> None:
    data = tmp_path / "a" / "data"
    with Broker(directory=tmp_path / "a") as broker:
        taken = serve(f"listeners=PLAINTEXT://{broker.bootstrap_servers}", f"log.dirs={tmp_path / 'b'}")
        assert (taken.returncode, "in use" in taken.stderr) == (3, True)
        locked = serve("listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={data}")
        assert (locked.returncode, "another process" in locked.stderr) == (4, True)
    other = serve("listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={data}", "node.id=7")
    assert (other.returncode, "node 1" in other.stderr) == (5, True)
    (data / "ottla.json").write_text('{"format": 99}')
    newer = serve("listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={data}")
    assert (newer.returncode, "format 99" in newer.stderr) == (5, True)


@pytest.mark.slow
def test_settings_of_a_test_are_those_of_its_broker(tmp_path: Path) -> None:
    with Broker({"num.partitions": 5}, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        r = m.CreateTopicsRequest
        topic = r.CreatableTopic(name="d", num_partitions=-1, replication_factor=-1)
        wire.ask("CreateTopics", 5, r(topics=[topic], timeout_ms=5000))
        (topic,) = wire.ask("Metadata", 9, m.MetadataRequest(topics=None)).topics
        assert len(topic.partitions) == 5


def test_configuration_comes_from_a_file_variables_and_arguments(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nno.such.key=1\n")
    built = sources.build(
        sources.from_environment({"KAFKA_LOG_DIRS": "/x", "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "5", "PATH": "y"}),
        sources.from_file(str(file)),
        sources.from_arguments(["num.partitions=4"]),
    )
    assert (built.log_dirs, built["num.partitions"], built["group.initial.rebalance.delay.ms"]) == (["/x"], 4, 5)
    assert built.warnings == [f"{file}, line 2: unknown configuration key 'no.such.key'; ignored"]


def test_a_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    """Each byte is a character of Latin-1, also one of what an editor wrote as UTF-8; others are escaped."""
    file = tmp_path / "server.properties"
    file.write_bytes(b"broker.rack=na\xefve \\u20ac\nlog.dirs=/gr\xc3\xb6\n")
    assert [(key, value) for key, value, _ in sources.from_file(str(file))] == [
        ("broker.rack", "naïve €"),
        ("log.dirs", "/grÃ¶"),
    ]


def test_a_broker_that_cannot_start_says_so_to_the_test() -> None:
    with pytest.raises(BrokerFailed, match="exit code 2"):
        Broker({"num.partitions": "many"}).start()


def test_a_broker_that_runs_is_not_started_again(tmp_path: Path) -> None:
    """The second process could not listen, and nothing would end the first one."""
    with Broker(directory=tmp_path) as broker:
        first = broker.pid
        with pytest.raises(RuntimeError, match="is running already"):
            broker.start()
        assert broker.running
        assert broker.pid == first
        os.kill(first, signal.SIGKILL)
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
        broker.start()  # one that has ended by itself may begin again
        assert broker.pid != first


def test_a_broker_that_starts_again_listens_where_it_did(tmp_path: Path) -> None:
    """Not at the address that it advertises, which may be another machine's."""
    settings: dict[str, object] = {
        "listeners": "PLAINTEXT://0.0.0.0:0",
        "advertised.listeners": "PLAINTEXT://kafka.invalid:0",
    }
    with Broker(settings, directory=tmp_path) as broker:
        address = broker.bootstrap_servers
        broker.stop()
        broker.start()
        assert broker.bootstrap_servers == address
        port = int(address.removeprefix("kafka.invalid:"))
        socket.create_connection(("127.0.0.2", port), timeout=10).close()


def test_nodes_that_start_again_listen_where_they_did(tmp_path: Path) -> None:
    with Cluster(nodes=3, directory=tmp_path) as cluster:
        servers = cluster.bootstrap_servers
        cluster.stop()
        cluster.start()
        assert cluster.bootstrap_servers == servers


def test_a_broker_listens_at_an_address_of_ipv6(tmp_path: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"the machine has no ::1: {error}")
    with Broker({"listeners": "PLAINTEXT://[::1]:0"}, directory=tmp_path) as broker:
        address = broker.bootstrap_servers
        assert address.startswith("[::1]:")
        broker.stop()
        broker.start()
        assert broker.bootstrap_servers == address
        assert CliRunner().invoke(main, ["ready", "-b", address]).exit_code == 0
        (node,) = broker.lab.get("nodes")["nodes"]
        assert node["listeners"] == [f"PLAINTEXT://{address}"]


def test_a_broker_that_does_not_stop_is_killed_and_says_so_to_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(testing, "STOP_SECONDS_MAX", 0.1)
    broker = Broker().start()
    os.kill(broker.pid, signal.SIGSTOP)
    with pytest.raises(BrokerFailed, match=r"did not stop within 0\.1 s"):
        broker.close()
    assert not broker.running
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_cannot_start_leaves_nothing_open_and_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(BrokerFailed, match="exit code 2"), Broker({"num.partitions": "many"}):
        pass
    assert (list(tmp_path.iterdir()), len(os.listdir("/dev/fd"))) == ([], before)


def run_cli(*arguments: str) -> str:
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command_line_watches_holds_and_dumps(broker: Broker, wire: Wire) -> None:
    create(wire, "cli")
    at = ["--lab", broker.lab_url]
    assert "held" in run_cli("hold", *at, "cli")
    produce(wire, "cli", b"hello", acks=1)
    assert run_cli("topics", *at, "cli").splitlines()[1].split()[:6] == ["cli", "0", "0", "0", "0", "1"]
    assert run_cli("step", *at, "cli").splitlines()[1].split()[3] == "1"
    assert "immediate" in run_cli("release", *at, "cli")
    assert "lag=5ms" in run_cli("policy", *at, "-t", "cli", "lag=5ms")
    run_cli("ready", "-b", broker.bootstrap_servers)
    folder = broker.data_directory / "cli-0"
    entries = [
        json.loads(line) for line in run_cli("dump", "--json", str(folder / "00000000000000000000.log")).splitlines()
    ]
    assert [e["kind"] for e in entries] == ["file", "batch", "record"]
    assert entries[1]["crc_valid"]
    assert entries[2]["value"] == "hello"
    metadata = broker.data_directory / "__cluster_metadata-0" / "00000000000000000000.log"
    assert "TopicRecord" in run_cli("dump", str(metadata))


def test_no_broker_is_ready_where_none_listens() -> None:
    assert CliRunner().invoke(main, ["ready", "-b", "127.0.0.1:1"]).exit_code == 1
    found = CliRunner().invoke(main, ["ready", "-b", "127.0.0.1"])
    assert (found.exit_code, found.stderr) == (1, "not ready: 127.0.0.1: '127.0.0.1' is not HOST:PORT\n")


@pytest.mark.parametrize(
    ("sent", "words"), [(b"HTTP/1.1 400", "no reply of a Kafka broker"), (b"", "it closed the connection")]
)
def test_what_is_no_broker_is_not_ready_for_a_reason(sent: bytes, words: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as beside:

        def answer() -> None:
            with listening.accept()[0] as peer:
                peer.recv(100)
                peer.sendall(sent)

        answered = beside.submit(answer)
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        found = CliRunner().invoke(main, ["ready", "-b", address])
        answered.result()
    assert (found.exit_code, found.stderr) == (1, f"not ready: {address}: {words}\n")


def test_the_page_in_the_browser_ends_with_ctrl_c() -> None:
    pytest.importorskip("nicegui")
    command = [sys.executable, "-m", "ottla", "ui", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as page:
        try:
            assert page.stdout is not None
            line = page.stdout.readline()
            assert line.startswith("ottla ui is ready: http://127.0.0.1:")
            with urlopen(line.split()[-1], timeout=60) as shown:  # by now it hears Ctrl-C
                assert shown.status == 200
            page.send_signal(signal.SIGINT)
            assert page.communicate(timeout=60) == ("", "")
        finally:
            page.kill()
    assert page.returncode == 0


def test_a_report_that_cannot_be_written_is_refused_before_anything_is_compared() -> None:
    found = CliRunner().invoke(main, ["compare", "127.0.0.1:1", "127.0.0.1:2", "--report", "/proc/absent/report"])
    assert (found.exit_code, "'/proc/absent/report': No such file" in found.stderr) == (2, True)


def test_the_broker_that_is_ready_may_have_an_address_of_ipv6() -> None:
    try:
        listening = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError as error:
        pytest.skip(f"the machine has no ::1: {error}")

    def answer() -> None:
        with listening.accept()[0] as peer:
            peer.recv(100)
            peer.sendall(bytes.fromhex("00000006 00000001 0000"))

    listening.settimeout(20)
    with listening, ThreadPoolExecutor(1) as beside:
        answered = beside.submit(answer)
        assert CliRunner().invoke(main, ["ready", "-b", f"[::1]:{listening.getsockname()[1]}"]).exit_code == 0
        answered.result()


@pytest.mark.slow
def test_seeded_topics_are_there(tmp_path: Path) -> None:
    seed = tmp_path / "seed.yaml"
    seed.write_text(
        "topics:\n  - name: orders\n    partitions: 2\n    configs: {retention.ms: 5000}\n"
        "    records:\n      - {key: a, value: first, partition: 1, headers: {source: seed}}\n      - {value: "
        "second, partition: 1}\n"
    )
    with Broker({"ottla.seed.file": seed}, directory=tmp_path / "d") as broker, Wire(broker.bootstrap_servers) as wire:
        assert fetch(wire, "orders", partition=1) == [b"first", b"second"]


def test_the_request_log_is_lines_of_json(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    with (
        Broker({"ottla.request.log": path}, directory=tmp_path / "d") as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        create(wire, "logged")
        produce(wire, "logged", b"secret")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(x["api"], x["direction"]) for x in lines] == [
        (a, d) for a in ("CreateTopics", "Produce") for d in ("request", "reply")
    ]
    assert lines[0]["message"]["topics"][0]["name"] == "logged"
    assert {line["principal"] for line in lines} == {"User:ANONYMOUS"}
    assert "bytes of records" in lines[2]["message"]["topic_data"][0]["partition_data"][0]["records"]


@pytest.mark.slow
def test_two_thousand_partitions_with_few_descriptors(tmp_path: Path) -> None:
    command = (
        f"ulimit -n 1024; exec {sys.executable} -m ottla serve --announce listeners=PLAINTEXT://127.0.0.1:0 "
        f"log.dirs={tmp_path}"
    )
    with subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE, text=True) as limited:
        assert limited.stdout is not None
        address = limited.stdout.readline().strip()
        with Wire(address, timeout=60) as wire:
            create(wire, "many", 2000)
            r = m.ProduceRequest
            parts = [r.PartitionProduceData(index=i, records=batch(b"x")) for i in range(2000)]
            answer = wire.ask(
                "Produce",
                9,
                r(acks=-1, timeout_ms=30_000, topic_data=[r.TopicProduceData(name="many", partition_data=parts)]),
            )
            assert all(p.error_code == 0 for p in answer.responses[0].partition_responses)
            assert fetch(wire, "many", partition=1999) == [b"x"]
        limited.terminate()
        assert limited.wait() == 0


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_sigkill(tmp_path: Path) -> None:
    """20 here; `python -m tests.support.kill 200` runs the 200 moments."""
    from ..support import kill

    kill.run(tmp_path, moments=20, seed=3)


OF_DIRECTORIES = ("adopt", "handover")


@pytest.mark.slow
def test_the_quick_tests_hold_on_stock_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of them that have an event loop at all, but for those of commands that read directories."""
    monkeypatch.setenv("OTTLA_LOOP", "asyncio")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-m",
        NOT_SLOW,
    ]
    done = subprocess.run(
        [*command, "tests/process", *(f"--ignore=tests/process/test_{name}.py" for name in OF_DIRECTORIES)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
