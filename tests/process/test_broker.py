"""A broker's process as clients see it: commits, the simulated high watermark, waiting and order, bad input, limits."""

from __future__ import annotations

import os
import random
import signal
import socket
from typing import Any

import pytest
from ottla.coordinator.hashing import partition_for
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.errors import Errors

from ottla.testing import Broker

from ..support.ask import batch, create, fetch, fetch_message, lab, produce, produce_message, values
from ..support.generate import Generator
from ..support.seeds import seeds
from ..support.wire import Closed, Wire, request_frame


@pytest.fixture
def wire(broker: Broker) -> Any:
    with Wire(broker.bootstrap_servers) as connected:
        yield connected


# commits


def test_what_members_commit_at_the_same_time_is_one_batch(broker: Broker, wire: Wire) -> None:
    """Eight requests that the broker finds when it comes back to its sockets; each gets its own reply."""
    create(wire, "together", 8)
    while (
        wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["together"]))
        .coordinators[0]
        .error_code
    ):
        continue
    r = m.OffsetCommitRequest

    def request(n: int) -> Any:
        part = r.OffsetCommitRequestPartition(partition_index=n, committed_offset=100 + n, committed_metadata="")
        return r(group_id="together", topics=[r.OffsetCommitRequestTopic(name="together", partitions=[part])])

    while (
        wire.ask("OffsetCommit", 8, request(0)).topics[0].partitions[0].error_code
        == Errors.COORDINATOR_LOAD_IN_PROGRESS
    ):
        continue
    members = [Wire(broker.bootstrap_servers) for _ in range(8)]
    for member in members:
        member.ask("ListGroups", 4, m.ListGroupsRequest())  # they are known to the broker
    os.kill(broker.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, broker.pid, os.WSTOPPED | os.WNOWAIT)  # until then it may still find some of the requests
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
    lab(broker, "/v1/policy", {"topic": "lagging", "policy": "lag=600000ms"})
    before = lab(broker, "/v1/topics/lagging")["partitions"][0]
    assert before["policy"] == "lag=600000ms"
    assert produce(wire, "lagging", b"a", acks=1).error_code == 0
    assert fetch(wire, "lagging") == []
    lab(broker, "/v1/policy", {"topic": "lagging", "policy": "lag=20ms"})
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
    errors = [
        x
        for x in text.splitlines()
        if x.startswith(b'kafka_network_RequestMetrics_Errors_total{error="3",request="Produce"}')
    ]
    assert float(errors[0].split()[-1]) >= 1
    for phase in (b"parse", b"handle", b"send"):
        line = next(
            x
            for x in text.splitlines()
            if x.startswith(b'ottla_request_seconds_total{phase="%s",request="Produce"}' % phase)
        )
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
    """A parked request holds up the requests after it on its connection, and on no other."""
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


def test_a_topic_that_is_created_again_has_another_id_and_no_records(wire: Wire) -> None:
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
    from ..support import fuzz

    assert fuzz.run(broker, count=4000, seed=int(os.environ.get("OTTLA_SEED", "1"))) == 4000


@pytest.mark.slow
@pytest.mark.parametrize("release", ["0.8.2", "0.10.2", "3.9"])
def test_mutated_requests_to_an_earlier_release_leave_the_broker_well(release: str) -> None:
    from ..support import fuzz

    assert fuzz.run_earlier(release, count=400, seed=int(os.environ.get("OTTLA_SEED", "1"))) == 800


@pytest.mark.slow
def test_mutated_frames_of_sasl_leave_the_broker_well() -> None:
    from ..support import fuzz
    from ..support.secured import SETTINGS

    settings = {**SETTINGS, "ottla.users": "alice:alice-secret", "connection.failed.authentication.delay.ms": 0}
    with Broker(settings) as broker:
        assert fuzz.run_sasl(broker, count=300, seed=int(os.environ.get("OTTLA_SEED", "1"))) == 300


SHARES = 4  # of the versions of every API


@pytest.mark.parametrize("share", seeds(SHARES, quick=1))
def test_random_messages_of_every_api_are_answered_or_end_the_connection(broker: Broker, share: int) -> None:
    from ottla.broker.apis import apis
    from ottla.protocol import schema

    chance = random.Random(7)
    for api in apis().values():
        for version in range(api.low + share, api.high + 1, SHARES):
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
