"""A connection over TLS beside its sockets: time limits, alerts, peers that take nothing, and what is dropped."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ottla.broker.broker_schedule import BrokerSchedule
from ottla.broker.machine import Machine
from ottla.broker.metrics import Metrics
from ottla.broker.net import tls
from ottla.broker.net.listening import SharedBuffer
from ottla.broker.net.tls import Share, TlsConnection
from ottla.broker.peer import Peer, SecurityProtocol
from ottla.broker.tls.context import server_context
from ottla.broker.tls.listener import FIXED, STORES
from ottla.broker.tls.stores import key_store
from ottla.protocol.config_def import keys

from ottla import certs

from ..support.tls import PASSWORD, client_context


class _Raw:
    """A TCP transport that keeps what is written."""

    def __init__(self) -> None:
        self.written, self.ended, self.reads = bytearray(), "", True
        self.is_ended = asyncio.Event()

    def writelines(self, parts: Iterable[bytes]) -> None:
        self.written += b"".join(parts)

    def write(self, data: bytes) -> None:
        self.written += data

    def _end(self, how: str) -> None:
        self.ended = self.ended or how
        self.is_ended.set()

    def close(self) -> None:
        self._end("closed")

    def abort(self) -> None:
        self._end("aborted")

    def is_closing(self) -> bool:
        return bool(self.ended)

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def get_write_buffer_size(self) -> int:
        return 0


class _Above:
    """The connection above: it takes everything and counts."""

    def __init__(self) -> None:
        self.peer = Peer("SSL", "127.0.0.1:7")
        self.received, self.data, self.is_paused = bytearray(), bytearray(64), False
        self.ending: str | None = None
        self.metrics = Metrics()

    def connection_made(self, transport: object) -> None:
        pass

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.data)

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.data[:nbytes]

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False


class _Pair:
    """The connection, and a client of OpenSSL in memory."""

    def __init__(self, folder: Path, client: str | None = None, verify: bool = False) -> None:
        self.shared, self.raw, self.above = SharedBuffer(), _Raw(), _Above()
        self.complaints: list[str] = []
        sparsely = SimpleNamespace(warning=lambda kind, text, *arguments: self.complaints.append(text % arguments))
        config = {"connection.failed.authentication.delay.ms": 0}
        self.metrics = self.above.metrics
        broker = SimpleNamespace(sparsely=sparsely, config=config, schedule=BrokerSchedule(Machine()))
        values = {name: keys("broker")[name].parse(keys("broker")[name].default) for name in (*FIXED, *STORES)}
        values |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(folder / "good" / "server.pem")}
        values |= {"ssl.client.auth": "required" if verify else "none"}
        listener = SimpleNamespace(
            name="SSL",
            context=server_context(values, key_store(values)),
            principal=lambda _: "User:x",
            protocol=SecurityProtocol.SSL,
        )
        server = SimpleNamespace(broker=broker, shared=self.shared)
        self.under_test = TlsConnection(
            cast(Any, server), Share(asyncio.get_running_loop()), cast(Any, listener), cast(Any, self.above)
        )
        self.under_test.connection_made(cast(Any, self.raw))
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client_context(folder, client).wrap_bio(self._in, self._out, server_hostname="localhost")

    def receive(self, data: bytes) -> None:
        self.under_test.get_buffer(-1)[: len(data)] = data
        self.under_test.buffer_updated(len(data))

    def exchange(self) -> None:
        self.receive(self._out.read())
        self._in.write(bytes(self.raw.written))
        self.raw.written.clear()

    def shake(self) -> None:
        for _ in range(3):
            try:
                self.client.do_handshake()
            except ssl.SSLWantReadError:
                self.exchange()
        self.exchange()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certs")
    certs.make(made / "good", certs.HOSTS, [], PASSWORD)
    return made


async def test_a_handshake_that_takes_too_long_is_aborted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "HANDSHAKE_SECONDS_MAX", 0.0)
    pair = _Pair(folder)
    await asyncio.wait_for(pair.raw.is_ended.wait(), 10)
    assert pair.raw.ended == "aborted"
    assert "the TLS handshake failed with 127.0.0.1:7 on the listener SSL: it took longer" in pair.complaints[0]


async def test_data_passes_in_both_directions_in_their_order(folder: Path) -> None:
    pair = _Pair(folder)
    pair.shake()
    assert pair.above.peer.principal == "User:x"
    assert pair.metrics.authentications == {
        ("SSL", "successful_authentication"): 1,
        ("SSL", "successful_authentication_no_reauth"): 1,
    }
    sent = bytes(range(256)) * 100
    pair.client.write(sent)
    pair.exchange()
    assert pair.above.received == sent
    large: list[tls.Data] = [b"a", b"b" * 300_000, memoryview(b"c" * 300_000)]
    pair.under_test.writelines(large)
    assert pair.above.is_paused  # the rest follows in later turns
    pair.under_test.write(b"d")
    found = bytearray()
    while not found.endswith(b"d"):
        await asyncio.sleep(0)
        pair.exchange()
        try:
            while part := pair.client.read(65536):
                found += part
        except ssl.SSLWantReadError:
            continue
    assert found == b"a" + b"b" * 300_000 + b"c" * 300_000 + b"d"
    assert not pair.above.is_paused


async def test_what_waits_is_sent_before_the_goodbye(folder: Path) -> None:
    pair = _Pair(folder)
    pair.shake()
    pair.under_test.writelines([b"x" * 500_000])
    pair.under_test.close()
    pair._in.write(bytes(pair.raw.written))
    found = 0
    while part := pair.client.read(65536):
        found += len(part)
    assert (found, pair.raw.ended) == (500_000, "closed")


async def test_after_a_failure_the_rest_is_dropped(folder: Path) -> None:
    pair = _Pair(folder, verify=True)
    pair.shake()
    assert pair.complaints == [
        "the TLS handshake failed with 127.0.0.1:7 on the listener SSL: peer did not return a certificate"
    ]
    assert pair.metrics.authentications == {("SSL", "failed_authentication"): 1}
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
        pair.client.read(1)
    pair.receive(b"x" * 1000)
    pair.under_test.write(b"y")
    assert not pair.above.received
    assert not pair.raw.written
    await asyncio.wait_for(pair.raw.is_ended.wait(), 10)
    assert pair.raw.ended == "closed"


async def test_nothing_is_read_while_the_peer_takes_nothing(folder: Path) -> None:
    pair = _Pair(folder)
    pair.shake()
    pair.under_test.pause_writing()
    assert (pair.raw.reads, pair.above.is_paused) == (False, True)
    pair.under_test.pause_reading()
    pair.under_test.resume_writing()
    assert (pair.raw.reads, pair.above.is_paused) == (False, False)
    pair.under_test.resume_reading()
    assert pair.raw.reads


async def test_what_came_before_a_pause_is_read_after_it(folder: Path) -> None:
    pair = _Pair(folder)
    pair.shake()
    pair.under_test.pause_reading()
    pair.client.write(b"early")
    pair.exchange()
    assert pair.above.received == b""
    pair.under_test.resume_reading()
    await asyncio.sleep(0)
    assert pair.above.received == b"early"


async def test_a_turn_of_the_loop_handles_a_bounded_number_of_bytes_over_all_connections() -> None:
    share = Share(asyncio.get_running_loop())
    done: list[int] = []

    def one(number: int) -> None:
        done.append(number)
        share.use(tls.TURN_BYTES_MAX // 2)

    for number in range(5):
        share.wait(partial(one, number))
    turns = []
    while len(done) < 5:
        await asyncio.sleep(0)
        turns.append(len(done))
    assert turns[-3:] == [2, 4, 5]
    await asyncio.sleep(0)
    assert share.left > 0
