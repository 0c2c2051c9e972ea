"""UpdateMetadata version 0: what a controller tells a broker of the cluster's partitions and brokers. Kafka 0.8 to 3.9
take it, the later ones too, and put it in the Metadata that they answer with. Pure: nothing here speaks with a broker.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from .errors import MalformedMessage

KEY = 6
LEADER_DURING_DELETE = -2
"""The leader of a partition that is gone."""
NAME = "UpdateMetadata"
CLIENT_ID = b"ottla"
_HEADER = struct.Struct(">hhih")
_REPLY = struct.Struct(">ih")


class ToldPartition(NamedTuple):
    topic: str
    partition: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


class ToldBroker(NamedTuple):
    """A broker that is alive, and its listener without TLS and login: version 0 knows no other."""

    id: int
    host: str
    port: int


def request(
    controller: tuple[int, int],
    partitions: Sequence[ToldPartition],
    brokers: Sequence[ToldBroker],
    correlation_id: int,
) -> bytes:
    """Returns the frame with its size. `controller`: its id and its epoch; `brokers`: all that are alive."""
    parts = [_HEADER.pack(KEY, 0, correlation_id, len(CLIENT_ID)), CLIENT_ID, struct.pack(">ii", *controller)]
    parts.append(struct.pack(">i", len(partitions)))
    for one in partitions:
        leader = struct.pack(">iiii", one.partition, controller[1], one.leader, one.leader_epoch)
        parts += [_text(one.topic), leader, _ids(one.isr), struct.pack(">i", 0), _ids(one.replicas)]
    parts.append(struct.pack(">i", len(brokers)))
    for broker in brokers:
        parts += [struct.pack(">i", broker.id), _text(broker.host), struct.pack(">i", broker.port)]
    body = b"".join(parts)
    return struct.pack(">i", len(body)) + body


def error_of(reply: bytes, correlation_id: int) -> int:
    """Returns the error of a reply without its size. Raises MalformedMessage."""
    if len(reply) != _REPLY.size:
        raise MalformedMessage(NAME, f"a reply of {len(reply)} bytes")
    found, error = _REPLY.unpack(reply)
    if found != correlation_id:
        raise MalformedMessage(NAME, f"the reply to {found}, not to {correlation_id}")
    return int(error)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _ids(ids: Sequence[int]) -> bytes:
    return struct.pack(f">{1 + len(ids)}i", len(ids), *ids)
