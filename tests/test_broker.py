"""A broker process: the simulated high watermark, sessions, bad input, limits, the command line."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ottla.coordinator.hashing import partition_for
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.errors import Errors

from ottla.testing import Broker, BrokerFailed

from .ask import batch, create, fetch, fetch_message, lab, produce, produce_message, values
from .generate import Generator
from .wire import Closed, Wire, request_frame


@pytest.fixture
def wire(broker: Broker) -> Any:
    with Wire(broker.bootstrap_servers) as connected:
        yield connected


# commits


def test_what_members_commit_at_the_same_time_is_one_batch(broker: Broker, wire: Wire) -> None:
    """Eight requests that the broker finds when it comes back to its sockets; each gets its own reply."""
    create(wire, "together", 8)
    while wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["together"])).coordinators[0].error_code:
        continue
    r = m.OffsetCommitRequest

    def request(n: int) -> Any:
        part = r.OffsetCommitRequestPartition(partition_index=n, committed_offset=100 + n, committed_metadata="")
        return r(group_id="together", topics=[r.OffsetCommitRequestTopic(name="together", partitions=[part])])

    while wire.ask("OffsetCommit", 8, request(0)).topics[0].partitions[0].error_code == Errors.COORDINATOR_LOAD_IN_PROGRESS:
        continue
    members = [Wire(broker.bootstrap_servers) for _ in range(8)]
    for member in members:
        member.ask("ListGroups", 4, m.ListGroupsRequest())  # they are known to the broker
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        for n, member in enumerate(members):
            member.say("OffsetCommit", 8, request(n))
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    for n, member in enumerate(members):
        (part,) = member.reply("OffsetCommit", 8).topics[0].partitions
        assert (part.partition_index, part.error_code) == (n, 0)
        member.close()
    (log,) = (broker.data_directory / f"__consumer_offsets-{partition_for('together', 50)}").glob("*.log")
    assert [at.header.record_count for at in records.batches(log.read_bytes())][-2:] == [1, 8]


# the simulated high watermark


def test_a_held_high_watermark_holds_acks_all_and_consumers(broker: Broker, wire: Wire) -> None:
    create(wire, "held")
    assert produce(wire, "held", b"seen").error_code == 0
    lab(broker, "/v1/hold", {"topic": "held"})
    assert produce(wire, "held", b"one", acks=1).base_offset == 1
    assert produce(wire, "held", b"two", timeout_ms=50).error_code == Errors.REQUEST_TIMED_OUT
    assert fetch(wire, "held") == [b"seen"]
    with Wire(broker.bootstrap_servers) as waiting, Wire(broker.bootstrap_servers) as producer:
        waiting.send(request_frame("Fetch", 11, fetch_message("held", 1, wait_ms=10_000)))
        producer.send(request_frame("Produce", 9, produce_message("held", batch(b"three"))))
        stepped = lab(broker, "/v1/step", {"topic": "held", "batches": 1})
        assert stepped["partitions"][0]["high_watermark"] == 2
        assert values(waiting.reply("Fetch", 11).responses[0].partitions[0].records) == [b"one"]
        lab(broker, "/v1/release", {"topic": "held"})
        assert producer.reply("Produce", 9).responses[0].partition_responses[0].error_code == 0
    assert fetch(wire, "held") == [b"seen", b"one", b"two", b"three"], "what timed out stayed"


def test_a_lagging_high_watermark_lets_acks_all_wait(broker: Broker, wire: Wire) -> None:
    create(wire, "lagging")
    lab(broker, "/v1/policy", {"topic": "lagging", "policy": "lag=150ms"})
    before = lab(broker, "/v1/topics/lagging")["partitions"][0]
    assert before["policy"] == "lag=150ms"
    assert produce(wire, "lagging", b"a", acks=1).error_code == 0
    assert fetch(wire, "lagging") == []
    assert produce(wire, "lagging", b"b").error_code == 0
    assert fetch(wire, "lagging") == [b"a", b"b"]


def test_a_policy_by_bytes_keeps_the_end_back(broker: Broker, wire: Wire) -> None:
    create(wire, "bytes")
    lab(broker, "/v1/policy", {"topic": "bytes", "policy": "bytes=300"})
    for n in range(10):
        produce(wire, "bytes", b"%d" % n * 50, acks=1)
    seen = fetch(wire, "bytes")
    assert 0 < len(seen) < 10
    assert seen == [b"%d" % n * 50 for n in range(len(seen))]


def test_flush_messages_makes_acks_all_wait_for_the_disk(wire: Wire) -> None:
    create(wire, "durable", flush_messages="1")
    assert [produce(wire, "durable", b"%d" % n).base_offset for n in range(5)] == list(range(5))
    assert len(fetch(wire, "durable")) == 5


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/hold", {"topic": "absent"}, 404),
        ("/v1/policy", {"topic": "held", "policy": "sometimes"}, 400),
        ("/v1/hold", {"topic": "__cluster_metadata"}, 404),
        ("/v1/topics/absent", None, 404),
        ("/v1/nothing", {}, 404),
        ("/v2/state", None, 404),
    ],
)
def test_the_lab_says_what_is_wrong(broker: Broker, path: str, body: Any, status: int) -> None:
    assert lab(broker, path, body) == status


def test_the_lab_shows_state_and_metrics(broker: Broker, wire: Wire) -> None:
    create(wire, "shown")
    produce(wire, "shown", b"x")
    before = lab(broker, "/v1/state")
    assert before["connections"] >= 1
    produce(wire, "shown", b"x", partition=77)
    state = lab(broker, "/v1/state")
    assert state["coordinators"]["__cluster_metadata-0"]["state"] == "active"
    assert lab(broker, "/ready") == {"ready": True}
    host, port = broker.lab_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as plain:
        plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        text = b""
        while chunk := plain.recv(65536):
            text += chunk
    assert b'kafka_log_Log_LogEndOffset{partition="0",topic="shown"} 1.0' in text
    assert b'kafka_network_RequestMetrics_Requests_total{request="Produce",version="9"}' in text
    errors = [x for x in text.splitlines() if x.startswith(b'kafka_network_RequestMetrics_Errors_total{error="3",request="Produce"}')]
    assert float(errors[0].split()[-1]) >= 1
    for phase in (b"parse", b"handle", b"send"):
        line = next(x for x in text.splitlines() if x.startswith(b'ottla_request_seconds_total{phase="%s",request="Produce"}' % phase))
        assert float(line.split()[-1]) > 0
    with socket.create_connection((host, int(port))) as plain:
        plain.sendall(b"\x16\x03\x01 not http\r\n\r\n")
        assert plain.recv(100).startswith(b"HTTP/1.1 4")


# waiting and order


def test_a_waiting_fetch_is_woken_by_the_first_record(broker: Broker, wire: Wire) -> None:
    create(wire, "wake")
    wire.send(request_frame("Fetch", 11, fetch_message("wake", 0, wait_ms=30_000)))
    with Wire(broker.bootstrap_servers) as other:
        produce(other, "wake", b"now")
    assert values(wire.reply("Fetch", 11).responses[0].partitions[0].records) == [b"now"]


def test_a_waiting_fetch_ends_when_its_topic_goes(broker: Broker, wire: Wire) -> None:
    create(wire, "gone")
    wire.send(request_frame("Fetch", 11, fetch_message("gone", 0, wait_ms=30_000)))
    with Wire(broker.bootstrap_servers) as other:
        other.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["gone"], timeout_ms=5000))
    (answer,) = wire.reply("Fetch", 11).responses[0].partitions
    assert answer.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION


def test_replies_keep_the_order_of_their_requests(broker: Broker, wire: Wire) -> None:
    """A parked request holds up those behind it on its connection, and nobody else."""
    create(wire, "order")
    wire.send(request_frame("Fetch", 11, fetch_message("order", 0, wait_ms=30_000), correlation_id=1))
    for n in range(2, 40):
        wire.send(request_frame("Produce", 9, produce_message("order", batch(b"x" * 5000)), correlation_id=n))
    with Wire(broker.bootstrap_servers) as other:
        produce(other, "order", b"wake up")
    assert [int.from_bytes(wire.read_frame()[:4], "big") for _ in range(39)] == list(range(1, 40))


def test_acks_0_has_no_reply_and_an_error_ends_the_connection(broker: Broker, wire: Wire) -> None:
    create(wire, "quiet")
    wire.send(request_frame("Produce", 9, produce_message("quiet", batch(b"a"), acks=0)))
    assert fetch(wire, "quiet") == [b"a"]
    wire.send(request_frame("Produce", 9, produce_message("quiet", batch(b"a"), partition=5, acks=0)))
    with pytest.raises(Closed):
        wire.read(1)


def test_null_records_are_refused(wire: Wire) -> None:
    """Kafka never answers this one; clients are better served by an error."""
    create(wire, "null")
    answer = wire.ask("Produce", 9, produce_message("null", None)).responses[0].partition_responses[0]
    assert answer.error_code == Errors.INVALID_RECORD


def test_a_topic_made_anew_has_another_id_and_no_records(wire: Wire) -> None:
    first = create(wire, "phoenix")
    produce(wire, "phoenix", b"old")
    wire.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["phoenix"], timeout_ms=5000))
    assert create(wire, "phoenix") != first
    assert fetch(wire, "phoenix") == []


def test_a_slow_reader_gets_everything(broker: Broker, wire: Wire) -> None:
    create(wire, "slow")
    for n in range(40):
        produce(wire, "slow", bytes([n]) * 100_000)
    with Wire(broker.bootstrap_servers) as reader:
        reader.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        reader.send(request_frame("Fetch", 11, fetch_message("slow", 0, max_bytes=30 << 20)))
        found = values(reader.reply("Fetch", 11).responses[0].partitions[0].records)
    assert found == [bytes([n]) * 100_000 for n in range(40)]


# bad input


def test_a_frame_a_byte_at_a_time(wire: Wire) -> None:
    frame = request_frame("Metadata", 9, m.MetadataRequest(topics=[]))
    for n in range(len(frame)):
        wire.send(frame[n : n + 1])
    assert wire.reply("Metadata", 9).controller_id == 1


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"\0\0\0\0",
        b"\0\0\0\x04abcd",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0\0\0\x0a\0\x03\0\x63\0\0\0\x01\xff\xff",
        b"\0\0\0\x0a\x7f\xff\0\0\0\0\0\x01\xff\xff",
    ],
)
def test_what_is_no_request_ends_the_connection_and_nothing_else(broker: Broker, data: bytes) -> None:
    with Wire(broker.bootstrap_servers) as bad:
        bad.send(data)
        bad.socket.shutdown(socket.SHUT_WR)
        with pytest.raises(Closed):
            bad.read(1)
    with Wire(broker.bootstrap_servers) as good:
        assert good.ask("Metadata", 9, m.MetadataRequest(topics=[])).controller_id == 1


def test_a_large_frame_that_never_comes_takes_no_memory(broker: Broker) -> None:
    import psutil

    before = psutil.Process(broker.pid).memory_info().rss
    liars = [Wire(broker.bootstrap_servers) for _ in range(200)]
    for liar in liars:
        liar.send((90_000_000).to_bytes(4, "big") + b"\0\0\0\x09")
    with Wire(broker.bootstrap_servers) as good:
        good.ask("Metadata", 9, m.MetadataRequest(topics=[]))
    assert psutil.Process(broker.pid).memory_info().rss - before < 40 << 20
    for liar in liars:
        liar.close()


@pytest.mark.slow
def test_mutated_requests_of_every_api_leave_the_broker_well(broker: Broker) -> None:
    from . import fuzz

    assert fuzz.run(broker, count=4000, seed=int(os.environ.get("OTTLA_SEED", "1"))) == 4000


def test_random_messages_of_every_api_are_answered_or_end_the_connection(broker: Broker) -> None:
    from ottla.broker.registry import apis
    from ottla.protocol import schema

    chance = random.Random(7)
    for api in apis().values():
        for version in range(api.low, api.high + 1):
            message = Generator(schema.load(api.request), version, chance).message()
            if hasattr(message, "max_wait_ms"):
                message.max_wait_ms = 0
            if getattr(message, "acks", -1) == 0:
                message.acks = 1
            with Wire(broker.bootstrap_servers) as one:
                try:
                    one.ask(api.name, version, message)
                except Closed:
                    continue
    assert "Traceback" not in broker.log, broker.log[-3000:]


# the process


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
            wanted = m.DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name="kept", configuration_keys=["retention.ms"])
            described = wire.ask("DescribeConfigs", 4, m.DescribeConfigsRequest(resources=[wanted])).results[0]
            assert described.configs[0].value == "777777"
            again = produce(wire, "kept", b"49", producer_id=5, producer_epoch=0, base_sequence=49)
            assert (again.error_code, again.base_offset) == (0, 49), "the duplicate is still known"
            assert fetch(wire, "kept") == [b"%d" % n for n in range(50)]
    broker.close()


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KAFKA_")}
    command = [sys.executable, "-m", "ottla", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, env=environment)


def test_exit_codes_say_why_it_did_not_start(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=1\n\nnum.partitions=none\n")
    refused = serve("-c", str(file))
    assert refused.returncode == 2
    assert f"{file}, line 3" in refused.stderr
    assert "Not a number of type INT" in refused.stderr
    assert serve("listeners=nonsense").returncode == 2
    assert "only PLAINTEXT" in serve("listeners=SSL://127.0.0.1:0").stderr
    with Broker(directory=tmp_path / "a") as broker:
        taken = serve(f"listeners=PLAINTEXT://{broker.bootstrap_servers}", f"log.dirs={tmp_path / 'b'}")
        assert (taken.returncode, "in use" in taken.stderr) == (3, True)
        locked = serve("listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={broker.data_directory}")
        assert (locked.returncode, "another process" in locked.stderr) == (4, True)
    other = serve("listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={tmp_path / 'a' / 'data'}", "node.id=7")
    assert (other.returncode, "node 1" in other.stderr) == (5, True)
    (tmp_path / "a" / "data" / "ottla.json").write_text('{"format": 99}')
    newer = serve("listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={tmp_path / 'a' / 'data'}")
    assert (newer.returncode, "format 99" in newer.stderr) == (5, True)


def test_configuration_comes_from_a_file_variables_and_arguments(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nno.such.key=1\n")
    broker = Broker({"num.partitions": 5}, directory=tmp_path)
    with broker, Wire(broker.bootstrap_servers) as wire:
        r = m.CreateTopicsRequest
        wire.ask("CreateTopics", 5, r(topics=[r.CreatableTopic(name="d", num_partitions=-1, replication_factor=-1)], timeout_ms=5000))
        (topic,) = wire.ask("Metadata", 9, m.MetadataRequest(topics=None)).topics
        assert len(topic.partitions) == 5
    from ottla.broker import config

    built = config.build(
        config.from_environment({"KAFKA_LOG_DIRS": "/x", "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "5", "PATH": "y"}),
        config.from_file(str(file)),
        config.from_arguments(["num.partitions=4"]),
    )
    assert (built.log_dirs, built["num.partitions"], built["group.initial.rebalance.delay.ms"]) == (["/x"], 4, 5)
    assert built.warnings == [f"{file}, line 2: nobody knows the key no.such.key; it has no effect"]


def test_a_broker_that_cannot_start_says_so_to_the_test() -> None:
    with pytest.raises(BrokerFailed, match="exit code 2"):
        Broker({"num.partitions": "many"}).start()


def run_cli(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "ottla", *arguments], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
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
    entries = [json.loads(line) for line in run_cli("dump", "--json", str(folder / "00000000000000000000.log")).splitlines()]
    assert [e["kind"] for e in entries] == ["file", "batch", "record"]
    assert entries[1]["crc_valid"]
    assert entries[2]["value"] == "hello"
    metadata = broker.data_directory / "__cluster_metadata-0" / "00000000000000000000.log"
    assert "TopicRecord" in run_cli("dump", str(metadata))


def test_nobody_is_ready_where_nobody_listens() -> None:
    done = subprocess.run([sys.executable, "-m", "ottla", "ready", "-b", "127.0.0.1:1"], capture_output=True, check=False)
    assert done.returncode == 1


def test_seeded_topics_are_there(tmp_path: Path) -> None:
    seed = tmp_path / "seed.yaml"
    seed.write_text(
        "topics:\n  - name: orders\n    partitions: 2\n    configs: {retention.ms: 5000}\n"
        "    records:\n      - {key: a, value: first, partition: 1, headers: {source: seed}}\n      - {value: second, partition: 1}\n"
    )
    with Broker({"ottla.seed.file": seed}, directory=tmp_path / "d") as broker, Wire(broker.bootstrap_servers) as wire:
        assert fetch(wire, "orders", partition=1) == [b"first", b"second"]


def test_the_request_log_is_lines_of_json(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    with Broker({"ottla.request.log": path}, directory=tmp_path / "d") as broker, Wire(broker.bootstrap_servers) as wire:
        create(wire, "logged")
        produce(wire, "logged", b"secret")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(x["api"], x["direction"]) for x in lines] == [(a, d) for a in ("CreateTopics", "Produce") for d in ("request", "reply")]
    assert lines[0]["message"]["topics"][0]["name"] == "logged"
    assert "bytes of records" in lines[2]["message"]["topic_data"][0]["partition_data"][0]["records"]


def test_two_thousand_partitions_with_few_descriptors(tmp_path: Path) -> None:
    command = f"ulimit -n 1024; exec {sys.executable} -m ottla serve --announce listeners=PLAINTEXT://127.0.0.1:0 log.dirs={tmp_path}"
    with subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE, text=True) as limited:
        assert limited.stdout is not None
        address = limited.stdout.readline().strip()
        with Wire(address, timeout=60) as wire:
            create(wire, "many", 2000)
            r = m.ProduceRequest
            parts = [r.PartitionProduceData(index=i, records=batch(b"x")) for i in range(2000)]
            answer = wire.ask("Produce", 9, r(acks=-1, timeout_ms=30_000, topic_data=[r.TopicProduceData(name="many", partition_data=parts)]))
            assert all(p.error_code == 0 for p in answer.responses[0].partition_responses)
            assert fetch(wire, "many", partition=1999) == [b"x"]
        limited.terminate()
        assert limited.wait() == 0


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_sigkill(tmp_path: Path) -> None:
    """20 here; `python -m tests.kill 200` runs the 200 moments."""
    from . import kill

    kill.run(tmp_path, moments=20, seed=3)


@pytest.mark.slow
def test_the_quick_tests_hold_on_stock_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of them that have an event loop at all."""
    monkeypatch.setenv("OTTLA_LOOP", "asyncio")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow and not oracle and not go and not node"]
    done = subprocess.run([*command, "tests/test_broker.py", "tests/test_packaging.py"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def test_records_are_checked_in_full_when_asked(tmp_path: Path) -> None:
    data = bytearray(batch(b"abc"))
    data[-5] = 0x7E  # a record that claims more than there is
    data[17:21] = records.computed_crc(data, 0, len(data)).to_bytes(4, "big")
    for mode, code in (("header", Errors.NONE), ("full", Errors.CORRUPT_MESSAGE)):
        with Broker({"ottla.record.validation": mode}, directory=tmp_path / mode) as broker, Wire(broker.bootstrap_servers) as wire:
            create(wire, "t")
            answer = wire.ask("Produce", 9, produce_message("t", bytes(data))).responses[0].partition_responses[0]
            assert answer.error_code == code
