"""Replies that lie to the clients of `ottla.classic`: an error that its methods announce, and no other."""

from __future__ import annotations

import os
import random
import socketserver
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from ottla.classic.balance.assignment import TopicPartition
from ottla.classic.cluster import Address, Cluster
from ottla.classic.connection import NEWEST
from ottla.classic.errors import BrokerUnreachable, KafkaError
from ottla.classic.message import MessageSet
from ottla.classic.offset_manager import OffsetManager
from ottla.classic.requests import EARLIEST_TIME, FetchRequest, fetched, offsets_before
from ottla.protocol import codec, headers, messages, schema
from ottla.protocol.errors import MalformedMessage

from ..support import fuzz_earlier
from ..support.fuzz import mutated
from ..support.generate import Generator

pytestmark = pytest.mark.long

SEED = int(os.environ.get("OTTLA_SEED", "1"))
SETS, REPLIES = 500, 100
ANNOUNCED = (OSError, MalformedMessage, KafkaError, BrokerUnreachable)
WITH_HOSTS = {"Metadata", "FindCoordinator"}  # no other addresses than these may come of them:
HOSTS = ("127.0.0.1", "127.0.0.1", "a\0b", "x" * 300)
NAMES = {schema.load(f"{name}Request").api_key: name for name in (*NEWEST, "ApiVersions")}


def test_messages_that_lie_are_read_or_malformed() -> None:
    found = dict.fromkeys((True, False), 0)
    for seed in range(SEED, SEED + SETS):
        chance = random.Random(seed)
        data = fuzz_earlier.messages(chance)
        if chance.random() < 0.4:
            data = mutated(bytes(4) + data, chance)[4:]
        try:
            list(MessageSet(data, 0))
            found[True] += 1
        except MalformedMessage:
            found[False] += 1
    assert all(found.values()), found


class Liar(socketserver.ThreadingTCPServer):
    """Answers each request with a random reply of its kind, which is mutated, or has message sets that lie."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, chance: random.Random) -> None:
        super().__init__(("127.0.0.1", 0), _Lies)
        self.chance = chance
        self.answered = 0


class _Lies(socketserver.StreamRequestHandler):
    server: Liar

    def handle(self) -> None:
        while len(prefix := self.rfile.read(4)) == 4:
            frame = self.rfile.read(int.from_bytes(prefix, "big"))
            key, version, correlation_id = struct.unpack_from(">hhi", frame)
            self.wfile.write(self._reply(NAMES[key], version, correlation_id))
            self.server.answered += 1

    def _reply(self, name: str, version: int, correlation_id: int) -> bytes:
        chance, response = self.server.chance, f"{name}Response"
        message: Any = Generator(self._schema(response, version), version, chance).message()
        for one in (*getattr(message, "brokers", ()), *([message] if hasattr(message, "host") else ())):
            one.host = chance.choice(HOSTS)
        if name == "ApiVersions" and chance.random() < 0.9:
            message = self._versions(chance)
        if name == "Fetch" and chance.random() < 0.8:
            message = self._fetched(chance)
        out = codec.build(
            "ResponseHeader",
            headers.response_header_version(response, version),
            messages.ResponseHeader(correlation_id=correlation_id),
        )
        body = bytes(codec.build(response, version, message, out))
        frame = len(body).to_bytes(4, "big") + body
        return frame if name in WITH_HOSTS or chance.random() < 0.5 else mutated(frame, chance)

    @staticmethod
    def _schema(response: str, version: int) -> Any:
        loaded = schema.load(response)
        return loaded if version in loaded.valid else schema.load_removed(response) or loaded

    @staticmethod
    def _versions(chance: random.Random) -> Any:
        r, high = messages.ApiVersionsResponse, chance.choice((0, 1, 5, 11))
        return r(api_keys=[r.ApiVersion(api_key=key or 0, min_version=0, max_version=high) for key in NAMES])

    @staticmethod
    def _fetched(chance: random.Random) -> Any:
        r = messages.FetchResponse
        part = r.PartitionData(
            partition_index=0, error_code=chance.choice((0, 0, 0, 1)), records=fuzz_earlier.messages(chance)
        )
        return r(responses=[r.FetchableTopicResponse(topic="t", partitions=[part])])


@pytest.fixture
def liar() -> Iterator[Liar]:
    with Liar(random.Random(SEED)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_replies_that_lie_raise_what_is_announced(liar: Liar) -> None:
    chance = random.Random(SEED)
    done = sum(_asked(("127.0.0.1", liar.server_address[1]), chance) for _ in range(REPLIES))
    assert liar.answered > REPLIES
    assert done


def _asked(address: Address, chance: random.Random) -> int:
    """Asks the same twice, as a connection is used again after an error; returns how often there was no error."""
    cluster = Cluster(lambda: [address], "", 0.05)
    offsets = OffsetManager(cluster, "g", tries=1, backoff_s=0)
    connection = cluster.connection_at(address)
    asked = chance.choice(
        (
            lambda: list(fetched(connection, [FetchRequest("t", 0, 0, 1000)], 0, 0)[0]),
            lambda: offsets_before(connection, "t", 0, EARLIEST_TIME, 1),
            lambda: cluster.refresh({"t"}),
            lambda: offsets.fetch([TopicPartition("t", 0)]),
        )
    )
    done = 0
    for _ in range(2):
        try:
            asked()
            done += 1
        except ANNOUNCED:
            pass
    cluster.close()
    return done
