"""A trace as a capture of packets (pcapng), which Wireshark reads.

Each connection of the trace becomes one of TCP over IP between the addresses of client and broker: a handshake, the
frames in segments of at most `SEGMENT_BYTES`, an acknowledgement for each, and the end. Sequence numbers and checksums
are right. The times are those at which the broker decoded a request, and had a reply ready: a request of several
segments has one time.

Only frames whose bytes the trace has are written. For others the sequence numbers go on as if they had been sent, and
Wireshark shows a gap there ("previous segment not captured").
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from ..verdict.trace_lines import Event, Runs, number
from .reading import frame_of, text

SEGMENT_BYTES: Final = 1460
SNAP_BYTES: Final = 65535
LINK_RAW_IP: Final = 101
WINDOW: Final = 65535
TCP: Final = 6
FIN, SYN, PUSH, ACK = 0x01, 0x02, 0x08, 0x10
FIRST_SEQUENCE: Final = 1000
PORT: Final = 9092  # of the broker, which the trace does not have
_BLOCK: Final = struct.Struct("<II")
Address = IPv4Address | IPv6Address


@dataclass
class Frames:
    """How many frames of a trace a capture has, and how many it lacks because the trace does not have their bytes."""

    written: int = 0
    left_out: int = 0


def capture(events: Iterable[Event], port: int, frames: Frames) -> Iterator[bytes]:
    """Yields the blocks of a pcapng file. `port`: of the broker; `frames` are counted."""
    yield _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    yield _block(1, struct.pack("<HHI", LINK_RAW_IP, 0, SNAP_BYTES))
    connections: dict[int, _Connection] = {}
    runs = Runs()
    for event in events:
        kind, name = event["event"], number(event, "connection")
        if runs.begins(event):
            connections.clear()
        if "connection" not in event:
            continue
        at_us = (runs.zero_us or 0) + number(event, "mono_us")
        connection = connections.get(name)
        if connection is None:
            connection = connections[name] = _Connection(text(event, "peer"), port)
            yield from _at(at_us, connection.opened())
        if kind == "closed":
            yield from _at(at_us, connection.closed())
            del connections[name]
        elif kind in ("request", "refused", "reply") and number(event, "size"):
            raw = frame_of(event)
            has_bytes = len(raw) == number(event, "size")
            frames.written += has_bytes
            frames.left_out += not has_bytes
            sender = 1 if kind == "reply" else 0
            if has_bytes:
                yield from _at(at_us, connection.frame(raw, sender))
            else:
                connection.pass_over(number(event, "size"), sender)


def _block(kind: int, body: bytes) -> bytes:
    padded = body + bytes(-len(body) % 4)
    size = struct.pack("<I", len(padded) + 12)
    return _BLOCK.pack(kind, len(padded) + 12) + padded + size


def _at(at_us: int, packets: Iterable[bytes]) -> Iterator[bytes]:
    for packet in packets:
        head = struct.pack("<IIIII", 0, at_us >> 32, at_us & 0xFFFFFFFF, len(packet), len(packet))
        yield _block(6, head + packet)


class _Connection:
    """The state of a connection's two directions: what each side has sent."""

    def __init__(self, peer: str, port: int) -> None:
        host, _, client_port = peer.rpartition(":")
        try:
            address: Address = ip_address(host.strip("[]").partition("%")[0])
        except ValueError:
            address = IPv4Address("127.0.0.1")
        broker: Address = IPv4Address("127.0.0.1") if address.version == 4 else IPv6Address("::1")
        client = address, int(client_port) if client_port.isdecimal() else 1
        self._ends = (client, (broker, port))  # the client is 0, the broker 1
        self._sent = [FIRST_SEQUENCE, FIRST_SEQUENCE]

    def opened(self) -> Iterator[bytes]:
        yield self._packet(0, SYN)
        yield self._packet(1, SYN | ACK)
        yield self._packet(0, ACK)

    def closed(self) -> Iterator[bytes]:
        yield self._packet(0, FIN | ACK)
        yield self._packet(1, FIN | ACK)
        yield self._packet(0, ACK)

    def pass_over(self, size: int, sender: int) -> None:
        """A frame whose bytes are unknown only moves the sequence."""
        self._sent[sender] += size + 4

    def frame(self, raw: bytes, sender: int) -> Iterator[bytes]:
        """One frame with its length."""
        data = struct.pack(">i", len(raw)) + raw
        for start in range(0, len(data), SEGMENT_BYTES):
            piece = data[start : start + SEGMENT_BYTES]
            yield self._packet(sender, ACK | (PUSH if start + len(piece) == len(data) else 0), piece)
        yield self._packet(1 - sender, ACK)

    def _packet(self, sender: int, flags: int, data: bytes = b"") -> bytes:
        (source, source_port), (target, target_port) = self._ends[sender], self._ends[1 - sender]
        sequence, acknowledged = (self._sent[one] & 0xFFFFFFFF for one in (sender, 1 - sender))
        self._sent[sender] += len(data) + bool(flags & (SYN | FIN))
        options = struct.pack(">BBH", 2, 4, SEGMENT_BYTES) if flags & SYN else b""
        offset = (20 + len(options)) // 4 << 4
        ports = source_port, target_port
        number_acked = acknowledged if flags & ACK else 0
        head = struct.pack(">HHIIBBHHH", *ports, sequence, number_acked, offset, flags, WINDOW, 0, 0)
        segment = head + options + data
        pseudo = source.packed + target.packed + struct.pack(">IHBB", len(segment), 0, 0, TCP)
        segment = segment[:16] + struct.pack(">H", checksum(pseudo + segment)) + segment[18:]
        return _ip_head(source, target, len(segment)) + segment


def _ip_head(source: Address, target: Address, size: int) -> bytes:
    if source.version == 6:
        return struct.pack(">IHBB", 6 << 28, size, TCP, 64) + source.packed + target.packed
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + size, 0, 0x4000, 64, TCP, 0) + source.packed + target.packed
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:]


def checksum(data: bytes) -> int:
    """The checksum of the Internet protocols (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
