"""The lab's clock on a running broker: what its clients can see obeys it, and what concerns the machine does not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from ottla.protocol import messages as m

from ottla.clock import Clock
from ottla.lab_client import Lab, LabRefused
from ottla.testing import Broker

from ..support.ask import batch, create, fetch, fetch_message, lab, lab_text, produce, produce_message
from ..support.frozen import clock, wire
from ..support.scripted import (
    Transaction,
    assert_silent,
    beat,
    classic_state,
    commit,
    committed,
    consumer_members,
    find,
    join,
    offsets,
)
from ..support.share_session import ShareSession
from ..support.wire import Closed, Wire

__all__ = ["clock", "wire"]
pytestmark = pytest.mark.slow
SETTINGS: dict[str, object] = {
    "ottla.lab.clock": "frozen",
    "offsets.retention.minutes": 60,
    "producer.id.expiration.ms": 3_600_000,
    "log.segment.delete.delay.ms": 1000,
    "connections.max.idle.ms": 10_800_000,
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        yield running


def test_the_session_of_a_classic_member_expires(wire: Wire, clock: Clock) -> None:
    create(wire, "classic")
    find(wire, "classic")
    join(wire, clock, "classic", "classic", session_ms=45_000)
    clock.advance("44s")
    assert classic_state(wire, "classic") == "Stable"
    clock.advance("2s")
    assert classic_state(wire, "classic") == "Empty"


def test_a_rebalance_ends_without_the_member_that_does_not_come_back(broker: Broker, wire: Wire, clock: Clock) -> None:
    create(wire, "rebalance")
    find(wire, "rebalance")
    join(wire, clock, "rebalance", "rebalance", session_ms=300_000)
    with Wire(broker.bootstrap_servers) as other:
        first = other.ask("JoinGroup", 5, _join("rebalance"))
        other.say("JoinGroup", 5, _join("rebalance", first.member_id))
        clock.advance("9s")
        assert classic_state(wire, "rebalance") == "PreparingRebalance"
        clock.advance("2s")
        reply = other.reply("JoinGroup", 5)
    assert (reply.error_code, len(reply.members)) == (0, 1)


def _join(group: str, member_id: str = "") -> m.JoinGroupRequest:
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    return m.JoinGroupRequest(
        group_id=group, session_timeout_ms=300_000, rebalance_timeout_ms=10_000, member_id=member_id,
        protocol_type="consumer", protocols=[protocol],
    )  # fmt: skip


def test_the_session_of_a_consumer_group_s_member_expires(wire: Wire, clock: Clock) -> None:
    create(wire, "modern")
    find(wire, "modern")
    more = {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": ["modern"], "owned": []}
    assert beat(wire, "modern", "m", 0, **more).error_code == 0
    clock.advance("44s")
    assert consumer_members(wire, "modern") == ["m"]
    clock.advance("2s")
    assert consumer_members(wire, "modern") == []


def test_a_transaction_times_out(wire: Wire, clock: Clock) -> None:
    create(wire, "transaction")
    transaction = Transaction(wire, "transaction", "transaction", timeout_ms=60_000)
    assert transaction.write(b"never committed") == 0
    clock.advance("59s")
    assert transaction.state() == "Ongoing"
    assert offsets(wire, "transaction", isolation=1) == (0, 0)
    clock.advance("11s")  # the coordinator looks for transactions every 10 s
    assert transaction.state() == "CompleteAbort"
    assert offsets(wire, "transaction", isolation=1) == (0, 2), "the record and its marker"


def test_retention_deletes(wire: Wire, clock: Clock) -> None:
    create(wire, "retention", retention_ms="3600000", segment_ms="600000")
    now = clock.now_ms
    produce_at(wire, "retention", b"old", now)
    clock.advance("11m")
    produce_at(wire, "retention", b"new", clock.now_ms)
    clock.advance("48m")
    assert offsets(wire, "retention") == (0, 2)
    clock.advance("7m")
    assert offsets(wire, "retention") == (1, 2)
    clock.advance("2h")
    assert offsets(wire, "retention") == (2, 2)


def produce_at(wire: Wire, topic: str, value: bytes, now_ms: int) -> None:
    reply = wire.ask("Produce", 9, produce_message(topic, batch(value, now=now_ms)))
    assert reply.responses[0].partition_responses[0].error_code == 0


def test_a_share_lock_ends(wire: Wire, clock: Clock) -> None:
    topic_id = create(wire, "share")
    find(wire, "share")
    produce(wire, "share", b"a", b"b")
    session = ShareSession(wire, "share", topic_id, 1)
    assert session.fetch() == [(0, 0, 1, 1)]
    clock.advance("29s")
    shown = lab_share(clock)
    assert [one["lock_remaining_ms"] for one in shown] == [1000]
    clock.advance("2s")
    assert session.fetch() == [(0, 0, 1, 2)], "delivered for the second time"


def lab_share(clock: Clock) -> list[dict[str, int]]:
    (one,) = clock._lab.get("share/share/share/0")["share_partitions"]
    rows: list[dict[str, int]] = one["records"]
    return rows


def test_a_fetch_and_a_produce_wait_until_their_deadlines(broker: Broker, wire: Wire, clock: Clock) -> None:
    create(wire, "waits")
    with Wire(broker.bootstrap_servers) as reader, Wire(broker.bootstrap_servers) as writer:
        reader.say("Fetch", 11, fetch_message("waits", 0, wait_ms=500))
        lab(broker, "/v1/hold", {"topic": "waits"})
        writer.say("Produce", 9, produce_message("waits", batch(b"x"), timeout_ms=5000))
        assert_silent(reader)
        clock.advance(500)
        assert reader.reply("Fetch", 11).responses[0].partitions[0].records in (None, b"")
        assert_silent(writer)
        clock.advance("4.6s")
        assert writer.reply("Produce", 9).responses[0].partition_responses[0].error_code == 7, "REQUEST_TIMED_OUT"
    lab(broker, "/v1/release", {"topic": "waits"})
    assert fetch(wire, "waits") == [b"x"]


def test_a_high_watermark_lags_in_the_broker_s_time(broker: Broker, wire: Wire, clock: Clock) -> None:
    create(wire, "lags")
    lab(broker, "/v1/policy", {"topic": "lags", "policy": "lag=250ms"})
    produce(wire, "lags", b"x", acks=1)
    clock.advance(249)
    assert offsets(wire, "lags") == (0, 0)
    clock.advance(2)
    assert offsets(wire, "lags") == (0, 1)


def test_a_throttled_client_is_muted_in_the_broker_s_time(broker: Broker, wire: Wire, clock: Clock) -> None:
    create(wire, "quota")
    a = m.AlterClientQuotasRequest
    entity = [a.EntityData(entity_type="client-id", entity_name="greedy")]
    entry = a.EntryData(entity=entity, ops=[a.OpData(key="producer_byte_rate", value=1000.0)])
    wire.ask("AlterClientQuotas", 1, a(entries=[entry]))
    with Wire(broker.bootstrap_servers, client_id="greedy") as greedy:
        throttle_ms = greedy.ask("Produce", 9, produce_message("quota", batch(b"x" * 30_000))).throttle_time_ms
        assert throttle_ms > 1000
        greedy.say("ApiVersions", 0, m.ApiVersionsRequest())
        clock.advance(throttle_ms - 1)
        assert_silent(greedy)
        clock.advance(2)
        assert greedy.reply("ApiVersions", 0).error_code == 0


def test_committed_offsets_expire(wire: Wire, clock: Clock) -> None:
    create(wire, "expires")
    find(wire, "expires")
    assert commit(wire, "expires", "expires", 7) == 0
    clock.advance("59m")
    assert committed(wire, "expires", "expires") == 7
    clock.advance("11m")
    assert committed(wire, "expires", "expires") == -1


def test_an_idle_connection_is_closed_in_the_broker_s_time(broker: Broker, clock: Clock) -> None:
    with Wire(broker.bootstrap_servers) as idle, Wire(broker.bootstrap_servers) as busy:
        for one in (idle, busy):
            one.ask("ApiVersions", 0, m.ApiVersionsRequest())
        clock.advance("179m")
        busy.ask("ApiVersions", 0, m.ApiVersionsRequest())
        clock.advance("2m")
        with pytest.raises(Closed):
            idle.read(1)
        busy.ask("ApiVersions", 0, m.ApiVersionsRequest())


def test_a_connection_that_never_sends_anything_is_idle(broker: Broker, clock: Clock) -> None:
    clock.advance("1d")  # since when nothing happens, so the broker does not look at connections
    with Wire(broker.bootstrap_servers, timeout=20) as silent:
        clock.advance("179m")
        clock.advance("2m")
        with pytest.raises(Closed):
            silent.read(1)


def test_the_lab_and_its_metrics_do_not_obey(broker: Broker, clock: Clock) -> None:
    """Scrapes work while time stands still, and lines on stderr have the machine's time."""
    before = clock.show()
    assert "ottla_loop_lag" in lab_text(broker, "/metrics")
    clock.advance("20m")
    assert "ottla_loop_lag" in lab_text(broker, "/metrics")
    assert clock.show()["now_ms"] == before["now_ms"] + 1_200_000
    with Wire(broker.bootstrap_servers) as loud:
        loud.send(b"\x16\x03\x01\x00\x00\x00\x00\x00")
        with pytest.raises(Closed):
            loud.read(1)
    stamps = re.findall(r"^(\d{4}-\d\d-\d\d \d\d:\d\d):", broker.log, re.MULTILINE)
    now = time.time()
    machine = {time.strftime("%Y-%m-%d %H:%M", time.localtime(now - ago)) for ago in range(0, 600, 30)}
    assert stamps
    assert stamps[-1] in machine


def test_at_a_rate_time_passes_by_itself(broker: Broker, wire: Wire, clock: Clock) -> None:
    create(wire, "fast")
    find(wire, "fast")
    join(wire, clock, "fast", "fast", session_ms=45_000)
    clock.rate(1000)
    with Wire(broker.bootstrap_servers) as reader:  # 100 s of the broker: its reply is the event to wait for
        reader.ask("Fetch", 11, fetch_message("fast", 0, wait_ms=100_000))
    clock.freeze()
    assert classic_state(wire, "fast") == "Empty"


def test_the_command(broker: Broker) -> None:
    """`ottla clock` with and without --json, and with what cannot be."""
    began = json.loads(command(broker, "show", "--json"))
    command(broker, "freeze")
    out = command(broker, "advance", "90s")
    assert "90.000 s passed" in out
    assert "frozen" in out
    found = json.loads(command(broker, "advance", "30s", "--json"))
    assert found["advanced"]["left_ms"] == 0
    assert found["clock"]["mode"] == "frozen"
    assert found["clock"]["now_ms"] - began["now_ms"] >= 120_000
    assert json.loads(command(broker, "rate", "2", "--json"))["rate"] == 2
    assert "system" in command(broker, "system")
    assert "must be a duration" in command(broker, "advance", "soon", code=1)
    assert "because there were too many events" in command(broker, "advance", "1h", "--events", "1", code=1)


def command(broker: Broker, *arguments: str, code: int = 0) -> str:
    environment = {**os.environ, "OTTLA_LAB": broker.lab_url}
    asked = [sys.executable, "-m", "ottla", "clock", *arguments]
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_what_the_lab_refuses(broker: Broker) -> None:
    lab = Lab(broker.lab_url)
    for method, body, key in (
        ("PUT", {"mode": "rate"}, "rate"),
        ("PUT", {"mode": "frozen", "rate": 2}, "rate"),
        ("PUT", {"mode": "rate", "rate": 0}, "rate"),
        ("PUT", {"mode": "stop"}, "mode"),
        ("POST", {"span": "-1s"}, "span"),
        ("POST", {"span": "9999999h"}, "span"),
        ("POST", {"span": "1s", "speed": 1}, "speed"),
    ):
        with pytest.raises(LabRefused) as found:
            lab.call(method, "clock", body)
        assert (found.value.status, found.value.key) == (400, key)
