"""What a client of a recorder notes in a block, and what is read from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest
from ottla.broker.lab.seam import Line
from ottla.broker.lab.traces import recording
from ottla.broker.lab.traces.client import START_BYTES, Block, Client, Wanted
from ottla.broker.lab.traces.recording import REPLY, REQUEST, filled, records, without_large
from ottla.broker.peer import Peer
from ottla.broker.replies import Reply, Send
from ottla.protocol import messages as m
from ottla.protocol.structs import Struct

from ..support.machine import VirtualMachine
from ..support.wire import request_frame

LENGTH = 4


@dataclass(frozen=True)
class Api:
    key: int
    has_records: bool = False


@dataclass(frozen=True)
class ProduceApi(Api):
    request: str = "Produce"


@dataclass
class Asked:
    api: Api
    version: int
    correlation_id: int
    client_id: str = "client"


METADATA, FETCH, PRODUCE = Api(3), Api(1), ProduceApi(0, has_records=True)
COUNTED = 12_345  # the correlation id of the first request


class Records:
    """Of a reply, in a file."""

    def __len__(self) -> int:
        return 1000


class Noting:
    """A client, its block, and what was sent to it."""

    def __init__(self) -> None:
        self.machine = VirtualMachine()
        self.machine.schedule.is_machines = True
        self.due: list[int] = []
        self.block = Block(self.machine.schedule, self.machine.work_ns, self.due.append)
        self.block.due_bytes = 1 << 20
        line = Line(7, Peer("PLAINTEXT", "127.0.0.1:50000"), None, 1)
        self.client = Client(line, {}, Wanted(None, None, has_raw=False), self.block, lambda line: None)
        self.sent: list[tuple[Reply | None, bool]] = []
        self._asked = 0

    def ask(self, api: Api, version: int = 9, more: bytes = b"body", request: Struct | None = None) -> Send:
        """Notes a request; a millisecond passes after it."""
        self._asked += 1
        correlation_id = COUNTED + self._asked - 1
        frame = api.key.to_bytes(2, "big") + version.to_bytes(2, "big") + correlation_id.to_bytes(4, "big") + more
        context = cast(Any, Asked(api, version, correlation_id))
        send = self.client.watch(self._asked, context, cast(Any, request), memoryview(frame), self._send)
        self.machine.advance(1)
        return send

    def _send(self, reply: Reply | None, end: bool) -> None:
        self.sent.append((reply, end))

    @property
    def events(self) -> list[tuple[Any, ...]]:
        """Kind, exchange, API, version, correlation id, microseconds since the request, size and body."""
        return [shown(one) for one in records(bytes(self.block.out))]


def shown(one: Any) -> tuple[Any, ...]:
    kind, _, ns, text, exchange, key, version, correlation_id, size, began_ns, body, holes, _ = one
    assert '"connection":7' in text
    return kind, exchange, key, version, correlation_id - COUNTED, (ns - began_ns) // 1000, size, body, holes


def reply(body: bytes = b"\0\0\0\x04done", *parts: tuple[int, Records]) -> Reply:
    return Reply(bytearray(body), cast(Any, list(parts)))


def asked(exchange: int, api: Api, version: int = 9, more: bytes = b"body") -> tuple[Any, ...]:
    correlation = (COUNTED + exchange - 1).to_bytes(4, "big")
    body = api.key.to_bytes(2, "big") + version.to_bytes(2, "big") + correlation + more
    return REQUEST, exchange, api.key, version, exchange - 1, 0, len(body), body, None


def answered(exchange: int, api: Api, us: int, version: int = 9) -> tuple[Any, ...]:
    return REPLY, exchange, api.key, version, exchange - 1, us, 4, b"\0\0\0\x04done", None


def test_exchanges_of_apis_in_turn_are_all_noted() -> None:
    noting = Noting()
    apis = [METADATA, METADATA, FETCH, METADATA, FETCH, FETCH]
    for api in apis:
        noting.ask(api)(reply(), False)
    expected = [one for n, api in enumerate(apis, 1) for one in (asked(n, api), answered(n, api, 1000))]
    assert noting.events == expected
    assert (noting.block.count, len(noting.sent)) == (12, 6)


def test_a_block_names_a_client_once() -> None:
    noting = Noting()
    for _ in range(5):
        noting.ask(METADATA)(reply(), False)
    assert bytes(noting.block.out).count(b'"connection":7') == 1


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_replies_to_requests_that_wait_beside_each_other_are_told_apart(order: tuple[int, ...]) -> None:
    noting = Noting()
    noting.ask(METADATA)(reply(), False)
    sends = [noting.ask(api) for api in (METADATA, FETCH, METADATA)]
    for number in order:
        sends[number](reply(), False)
    of = {0: answered(2, METADATA, 3000), 1: answered(3, FETCH, 2000), 2: answered(4, METADATA, 1000)}
    assert noting.events[-3:] == [of[number] for number in order]
    assert len(noting.sent) == 4


def test_a_reply_in_a_later_block_says_all_of_its_request() -> None:
    noting = Noting()
    noting.ask(METADATA)(reply(), False)
    send = noting.ask(METADATA, version=8)
    noting.block.begin()
    send(reply(), False)
    assert noting.events == [answered(2, METADATA, 1000, version=8)]


def test_a_reply_says_the_time_if_that_is_not_the_machines_any_more() -> None:
    noting = Noting()
    noting.ask(METADATA)(reply(), False)
    send = noting.ask(METADATA)
    noting.machine.schedule.is_machines = False
    at_ms = noting.machine.wall_ms()
    send(reply(), False)
    noting.machine.schedule.is_machines = True
    noting.ask(METADATA)(reply(), False)
    times = [one[1] for one in records(bytes(noting.block.out)) if not isinstance(one, bytes)]
    assert times == [None, None, None, at_ms, None, None]


def test_records_that_are_not_sent_from_memory_are_a_hole() -> None:
    noting = Noting()
    for _ in range(2):
        noting.ask(FETCH)(reply(b"\0\0\x03\xeerecords", (8, Records())), False)
    noting.ask(FETCH)(reply(b"\0\0\x03\xeerecords", (8, Records()), (9, Records())), False)
    replies = [one[-3:] for one in noting.events if one[0] == REPLY]
    body = b"\0\0\x03\xeerecords"
    assert replies == [(1007, body, [(8, 1000)])] * 2 + [(2007, body, [(8, 1000), (9, 1000)])]


def test_records_that_are_written_are_a_hole_whether_the_request_is_the_first_or_like_the_one_before_it() -> None:
    noting = Noting()
    partition = m.ProduceRequest.PartitionProduceData(index=0, records=bytes(range(256)) * 9)
    topic = m.ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
    request = m.ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
    more = request_frame("Produce", 9, request)[LENGTH + 8 :]
    for _ in range(3):
        noting.ask(PRODUCE, more=more, request=request)(reply(), False)
    events = noting.events
    assert events[1::2] == [answered(n, PRODUCE, 1000) for n in (1, 2, 3)]
    for n, (*event, body, holes) in enumerate(events[::2], 1):
        *expected, frame, _ = asked(n, PRODUCE, more=more)
        assert event == expected
        assert holes == [(START_BYTES, len(frame) - START_BYTES)]
        assert filled(body, holes) == frame[:START_BYTES] + bytes(len(frame) - START_BYTES)
    block = bytes(noting.block.out)
    assert [shown(one) for one in records(without_large(block, START_BYTES))] == events
    assert [shown(one) for one in records(without_large(without_large(block, 99), 98))] == [
        (*one[:-2], None, one[-1]) if one[0] == REQUEST else one for one in events
    ]


def test_what_is_raised_while_a_reply_is_noted_does_not_keep_it_back() -> None:
    noting = Noting()
    noting.ask(METADATA)(reply(), False)
    send, whole = noting.ask(METADATA), noting.events
    broken = reply()
    broken.parts.append(cast(Any, ()))
    send(broken, True)
    assert noting.sent[-1] == (broken, True)
    assert noting.events == whole


def test_bodies_that_are_left_out_leave_the_rest() -> None:
    noting = Noting()
    for _ in range(2):
        noting.ask(METADATA, more=b"x" * 20)(reply(), False)
    noting.ask(FETCH)(reply(b"\0\0\x03\xeerecords", (8, Records())), False)
    block = bytes(noting.block.out)
    found = [shown(one) for one in records(without_large(block, 7))]
    assert found == [(*one[:-2], None, one[-1]) for one in noting.events]
    assert [shown(one) for one in records(without_large(block, 12))] == [
        (*one[:-2], one[-2] if len(one[-2]) <= 12 else None, one[-1]) for one in noting.events
    ]
    assert [shown(one) for one in records(without_large(without_large(block, 12), 7))] == found


def test_the_body_of_a_reply_in_a_later_block_is_left_out_too() -> None:
    noting = Noting()
    noting.ask(METADATA)(reply(), False)
    send = noting.ask(METADATA)
    noting.block.begin()
    send(reply(), False)
    block = bytes(noting.block.out)
    (whole,) = noting.events
    assert [shown(one) for one in records(without_large(block, 8))] == [whole]
    assert [shown(one) for one in records(without_large(block, 7))] == [(*whole[:-2], None, None)]


def test_the_bytes_of_a_very_large_frame_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    noting = Noting()
    noting.ask(METADATA, more=request_frame("Metadata", 9, m.MetadataRequest())[LENGTH + 8 :])
    (event,) = records(bytes(noting.block.out))
    assert not isinstance(event, bytes)
    size = event[8]
    for limit, has_raw in ((size, True), (size - 1, False)):
        monkeypatch.setattr(recording, "RAW_BYTES_MAX", limit)
        assert (b'"raw":' in recording.line(event, 0, "secrets")) == has_raw
