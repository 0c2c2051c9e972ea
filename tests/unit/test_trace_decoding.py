"""Lines of traces, decoded at once: the same events as by the long way, which is there for all other lines."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from ottla.pipeline.trace_decoding import REFUSED, Decoding, message_decoder
from ottla.protocol import messages as m
from ottla.protocol import schema
from ottla.protocol.json_text import json_writer
from ottla.verdict.events import Reply, Request
from ottla.verdict.from_trace import event_of, message_of

from ..support.ask import batch, produce_message
from ..support.generate import Generator
from ..support.seeds import seeds
from ..support.written import MASKS, NAMES, written

HEARTBEAT, PRODUCE = 12, 0
LOOKED_AT = frozenset((HEARTBEAT, PRODUCE))
DECODING = Decoding(LOOKED_AT, LOOKED_AT)


def line(**changed: Any) -> dict[str, Any]:
    """A line as a broker writes it."""
    message = written("HeartbeatRequest", 4, m.HeartbeatRequest(group_id="g"))
    made = {
        "event": "request", "at_ms": 5, "mono_us": 6, "connection": 1, "peer": "h:1", "listener": "L", "principal": "p",
        "client_id": None, "software": None, "software_version": None, "exchange": 2, "api": "Heartbeat",
        "key": HEARTBEAT, "version": 4, "correlation_id": 7, "size": 40, "message": message,
    }  # fmt: skip
    return {**made, **changed}


def reply(**changed: Any) -> dict[str, Any]:
    message = written("HeartbeatResponse", 4, m.HeartbeatResponse(throttle_time_ms=9))
    return {**line(event="reply", latency_us=3, message=message), **changed}


def decoded(of: dict[str, Any], decoding: Decoding = DECODING) -> Request | Reply | None:
    return decoding.event(json.dumps(of).encode())


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(10, 1))
def test_each_message_of_each_version_is_that_of_the_slow_form(seed: int) -> None:
    for name in NAMES:
        loaded = schema.load(name)
        for version in {loaded.valid.low, loaded.valid.high}:
            value = Generator(loaded, version, random.Random(seed), unknown_tags=False).message()
            text = json_writer(name, version, MASKS)(value)
            slow, fast = message_of(name, json.loads(text)), message_decoder(name, version).decode(text.encode())
            assert fast == slow, f"{name} v{version}, seed {seed}"
            assert repr(fast) == repr(slow)


@pytest.mark.parametrize(
    "of",
    [
        line(),
        line(client_id="c", software="s", software_version="1", raw="AAAA", message=None),
        line(key=PRODUCE, version=9, message=written("ProduceRequest", 9, produce_message("t", batch(b"x")))),
        line(key=1),
        reply(),
        reply(message=None),
        reply(waiting=[0, 3]),
        reply(key=1),
    ],
)
@pytest.mark.parametrize("looks_into", [True, False])
def test_an_event_is_that_of_the_long_way(of: dict[str, Any], looks_into: bool) -> None:
    into = LOOKED_AT if looks_into else frozenset[int]()
    assert decoded(of, Decoding(LOOKED_AT, into)) == event_of(of, LOOKED_AT, into)


@pytest.mark.parametrize(
    "of",
    [
        {"event": "trace", "format": 1},
        {"event": "opened", "at_ms": 5, "mono_us": 6, "connection": 1, "peer": "h:1"},
        {},
        line(connection="1"),
        line(at_ms=1.5),
        line(key=True),
        line(peer=None),
        line(client_id=3),
        reply(waiting=["0"]),
        line(version=99),
        line(message={"group_id": "g"}),
        line(message={**line()["message"], "generation_id": "1"}),
        line(message={**line()["message"], "unknown_tags": {"9": "01"}}),
        line(key=PRODUCE, version=9, message={"transactional_id": None, "acks": 1, "timeout_ms": 1, "topic_data": [
            {"name": "t", "partition_data": [{"index": 0, "records": {"bytes": "5"}}]}]}),
        {name: value for name, value in line().items() if name != "exchange"},
    ],
)  # fmt: skip
def test_what_no_broker_writes_and_what_is_rare_go_the_long_way(of: dict[str, Any]) -> None:
    with pytest.raises(REFUSED):
        decoded(of)


def test_what_waited_for_a_reply_is_read_of_a_changed_line_too() -> None:
    found = event_of(reply(waiting=[0, "3", 18], size="40"), LOOKED_AT, LOOKED_AT)
    assert isinstance(found, Reply)
    assert found.waiting == [0, 18]


@pytest.mark.parametrize("data", [b"", b"nonsense", b'{"event":"request"', b'{"event":"reply","size":1e999}', b"\xff"])
def test_what_is_no_json_goes_the_long_way(data: bytes) -> None:
    with pytest.raises(REFUSED):
        DECODING.event(data)
