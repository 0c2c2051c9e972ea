"""Traces as captures of packets: blocks, checksums, sequences."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable
from ipaddress import ip_address
from typing import NamedTuple

import pytest
from ottla.verdict.trace_lines import Event

from ottla.traces.packets import ACK, FIN, PORT, PUSH, SEGMENT_BYTES, SYN, Frames, capture, checksum

HEAD: Event = {"event": "trace", "format": 1, "clock_ms": 1_000_000, "mono_us": 5_000}


class Packet(NamedTuple):
    at_us: int
    source: str
    port: int
    target_port: int
    sequence: int
    acknowledged: int
    flags: int
    data: bytes


def event(kind: str, frame: bytes = b"", peer: str = "127.0.0.1:4000", at_us: int = 6_000, raw: bool = True) -> Event:
    found: Event = {"event": kind, "mono_us": at_us, "connection": 1, "peer": peer, "size": len(frame)}
    return {**found, "raw": base64.b64encode(frame).decode()} if raw and frame else found


def packets(events: Iterable[Event], frames: Frames | None = None) -> list[Packet]:
    """Reads a capture; asserts what holds of every block and packet."""
    data, found = b"".join(capture(events, PORT, Frames() if frames is None else frames)), []
    while data:
        kind, size = struct.unpack_from("<II", data)
        assert size % 4 == 0
        assert struct.unpack_from("<I", data, size - 4) == (size,)
        if kind == 6:
            _, high, low, captured, whole = struct.unpack_from("<IIIII", data, 8)
            assert captured == whole
            found.append(_packet(high << 32 | low, data[28 : 28 + captured]))
        data = data[size:]
    return found


def _packet(at_us: int, data: bytes) -> Packet:
    is_ipv6 = data[0] >> 4 == 6
    size = 40 if is_ipv6 else 20
    source, target = (data[8:24], data[24:40]) if is_ipv6 else (data[12:16], data[16:20])
    segment = data[size:]
    if not is_ipv6:
        assert checksum(data[:size]) == 0
        assert struct.unpack_from(">H", data, 2) == (len(data),)
    assert checksum(source + target + struct.pack(">IHBB", len(segment), 0, 0, 6) + segment) == 0
    port, target_port, sequence, acknowledged, offset, flags = struct.unpack_from(">HHIIBB", segment)
    return Packet(
        at_us, str(ip_address(source)), port, target_port, sequence, acknowledged, flags, segment[(offset >> 4) * 4 :]
    )


def test_an_exchange_becomes_a_connection_with_right_sequences() -> None:
    request, reply = b"r" * 3000, b"a" * 10
    found = packets([HEAD, event("opened"), event("request", request), event("reply", reply), event("closed")])
    assert [one.flags for one in found] == [
        *(SYN, SYN | ACK, ACK),
        *(ACK, ACK, PUSH | ACK, ACK),
        *(PUSH | ACK, ACK),
        *(FIN | ACK, FIN | ACK, ACK),
    ]
    sent = {4000: b"", 9092: b""}
    following: dict[int, int] = {}
    for one in found:
        assert following.setdefault(one.port, one.sequence) == one.sequence
        if one.flags & ACK:
            assert one.acknowledged == following[one.target_port]
        following[one.port] += len(one.data) + bool(one.flags & (SYN | FIN))
        sent[one.port] += one.data
        assert len(one.data) <= SEGMENT_BYTES
    assert sent == {4000: struct.pack(">i", 3000) + request, 9092: struct.pack(">i", 10) + reply}
    assert {one.at_us for one in found} == {1_000_000_000 + 1_000}


@pytest.mark.parametrize("raw", [None, "YWJj\u00e9", "YWJ", "Y*Jj"])
def test_a_frame_without_bytes_leaves_a_gap(raw: str | None) -> None:
    frames = Frames()
    damaged = {**event("request", b"abc", raw=False), "raw": raw}
    found = packets([HEAD, damaged, event("request", b"def")], frames)
    assert frames == Frames(written=1, left_out=1)
    assert [one.data for one in found if one.data] == [b"\0\0\0\x03def"]
    assert found[3].sequence == found[2].sequence + 7


@pytest.mark.parametrize(
    ("peer", "source"),
    [("::1:4000", "::1"), ("[::1]:4000", "::1"), ("fe80::1%eth0:4000", "fe80::1"), ("unknown", "127.0.0.1")],
)
def test_addresses_are_those_of_the_trace(peer: str, source: str) -> None:
    found = packets([HEAD, event("request", b"abc", peer=peer)])
    assert found[0].source == source


def test_another_broker_in_the_same_file_has_connections_of_its_own() -> None:
    again: Event = {**HEAD, "clock_ms": 2_000_000}
    found = packets([HEAD, event("request", b"abc"), {**HEAD}, event("request", b"abc"), again, event("request", b"d")])
    assert [bool(one.flags & SYN) for one in found].count(True) == 4


def test_a_broker_that_starts_again_on_the_same_machine_has_connections_of_its_own() -> None:
    """Its clock goes on, and its connections begin with 1; a file that was rotated begins with a head as well."""
    ask, opened = event("request", b"abc"), event("opened")
    assert handshakes([HEAD, opened, ask, {**HEAD}, ask, {**HEAD}, {**opened, "connection": 2}]) == 2
    assert handshakes([HEAD, opened, ask, {**HEAD}, opened, ask]) == 2


def handshakes(events: list[Event]) -> int:
    return sum(one.flags == SYN for one in packets(events))
