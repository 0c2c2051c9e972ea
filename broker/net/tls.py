"""Between a TCP connection and a `Connection`: decrypts what arrives and encrypts what is sent, in memory.

The connection counts from the moment it is accepted, so that the limits of connections hold for handshakes too. Until
its handshake is done it gets no data. After a failure the peer gets the alert, and what it still sends is dropped until
the connection closes, because bytes that nothing reads would make the system discard the alert.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol, cast

from ...protocol.config_def import ConfigInvalid
from .. import bugs
from ..broker import Broker
from ..clock import Cancellable
from ..metrics import Metrics
from ..peer import Ending, Peer
from ..tls.listener import TlsListener
from ..tls.stores import StoreError
from .listening import SharedBuffer

logger = logging.getLogger("ottla.org.apache.kafka.common.security.ssl.SslFactory")
HANDSHAKE_SECONDS_MAX = 30.0
PENDING_BYTES_MAX = 48 << 10
CHUNK_BYTES = 64 << 10  # of records are read at a time: what waits for encryption keeps its memory
TURN_BYTES_MAX = 256 << 10  # encrypted or decrypted in one turn of the loop
JOINED_BYTES_MAX = 16 << 10  # what a record of TLS holds
BAD_CERTIFICATE, CERTIFICATE_UNKNOWN = 42, 46  # alerts
WITHOUT_ISSUER = frozenset((18, 19, 20, 21))  # OpenSSL's reasons not to trust who has signed a certificate
FATAL_ALERT = b"\0\2\2"  # its length and its level

Data = bytes | bytearray | memoryview


class Share:
    """How many bytes of TLS one turn of the loop handles, over all connections of a server. Those for which none are
    left wait in line for the next turn.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._renews = False
        self.left = TURN_BYTES_MAX

    def use(self, count: int) -> None:
        self.left -= count
        if not self._renews:
            self._renews = True
            self._loop.call_soon(self._renew)

    def wait(self, call: Callable[[], None]) -> None:
        """Calls in a later turn."""
        self._waiting.append(call)
        self.use(0)

    def _renew(self) -> None:
        self._renews, self.left = False, TURN_BYTES_MAX
        for _ in range(len(self._waiting)):
            if self.left <= 0:
                break
            self._waiting.popleft()()
        if self._waiting:
            self.use(0)


class Serving(Protocol):
    """What TLS needs of the server."""

    broker: Broker
    shared: SharedBuffer


class Above(Protocol):
    """The connection that gets what was decrypted, and whose transport is the TLS."""

    chunk_bytes: int
    ending: Ending | None
    peer: Peer

    @property
    def metrics(self) -> Metrics: ...

    def connection_made(self, transport: asyncio.Transport) -> None: ...

    def connection_lost(self, exc: Exception | None) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def get_buffer(self, sizehint: int) -> memoryview: ...

    def buffer_updated(self, nbytes: int) -> None: ...


class TlsConnection(asyncio.BufferedProtocol, asyncio.Transport):
    """The protocol of a TCP connection, and the transport of the `Connection` above it."""

    def __init__(self, server: Serving, share: Share, listener: TlsListener, connection: Above) -> None:
        super().__init__()
        self._server = server
        self._share = share
        self._listener = listener
        self._connection = connection
        connection.chunk_bytes = CHUNK_BYTES
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = listener.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._plain: deque[Data] = deque()
        self._raw: asyncio.Transport = cast(asyncio.Transport, None)
        self._loop = asyncio.get_running_loop()
        self._deadline: Cancellable | None = None
        self._is_open = self._has_failed = self._is_closing = False
        self._is_paused = self._is_full = self._yields = self._reads = self._waits_to_read = False

    # the protocol of the TCP connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast(asyncio.Transport, transport)
        self._reads = True
        self._deadline = self._loop.call_later(HANDSHAKE_SECONDS_MAX, self._give_up)
        self._connection.connection_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._shaken()
        self._connection.connection_lost(exc)
        del self._tls, self._incoming, self._outgoing  # not when garbage is collected, but now

    def eof_received(self) -> bool:
        return False

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._server.shared.view

    def buffer_updated(self, nbytes: int) -> None:
        if self._has_failed or self._is_closing:
            return
        self._incoming.write(self._server.shared.view[:nbytes])
        if self._is_open or self._shake():
            self._decrypt()

    def pause_writing(self) -> None:
        self._is_full = True
        self._read_or_not()
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._is_full = False
        self._read_or_not()
        if not self._yields:
            self._go_on()

    def _read_or_not(self) -> None:
        """Reads from the socket unless the connection has enough, or the peer does not take what was sent: it could
        ask for ever more answers of TLS itself.
        """
        reads = not self._is_paused and not self._is_full
        if reads != self._reads and not self._is_closing and not self._raw.is_closing():
            self._reads = reads
            if reads:
                self._raw.resume_reading()
            else:
                self._raw.pause_reading()

    # the handshake

    def _shake(self) -> bool:
        """Continues the handshake; returns whether it is done."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        except ssl.SSLError as error:
            self._connection.metrics.authentications[self._listener.name, "failed_authentication"] += 1
            self._fail("the TLS handshake failed", _reason(error), _alert(error))
            return False
        self._shaken()
        if not self._listener.protocol.has_sasl:  # with SASL, the client has not authenticated yet
            self._connection.metrics.authenticated(self._listener.name, can_again=False)
        try:
            self._connection.peer.principal = self._listener.principal(self._tls.getpeercert(True))
        except ValueError as error:
            self._fail("the client's certificate has no principal", str(error))
            return False
        self._is_open = True
        self._flush()
        return True

    def _shaken(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        self._complain("the TLS handshake failed", f"it took longer than {HANDSHAKE_SECONDS_MAX:g} s")
        self._connection.ending = "refused"
        self._raw.abort()

    def _fail(self, what: str, why: str, alert: int | None = None) -> None:
        """Sends the alert, and closes the connection after a delay, as Kafka does after a failed authentication.
        `alert`: Java's, instead of OpenSSL's where that is not encrypted (TLS 1.2).
        """
        self._complain(what, why)
        self._connection.ending = self._connection.ending or "refused"
        self._has_failed = True
        self._plain.clear()
        if alert is not None and not self._is_closing:
            record = self._outgoing.read()
            is_plain = len(record) == 7 and record[0] == 21 and record[3:6] == FATAL_ALERT
            self._raw.write(record[:6] + bytes((alert,)) if is_plain else record)
        self._flush()
        broker = self._server.broker
        self._shaken()
        self._deadline = broker.schedule.later(
            broker.config["connection.failed.authentication.delay.ms"], self._raw.close
        )

    def _complain(self, what: str, why: str) -> None:
        self._server.broker.sparsely.warning(
            "tls", "%s with %s on the listener %s: %s", what, self._connection.peer.address, self._listener.name, why
        )

    # what was received

    def _decrypt(self) -> None:
        """Gives the connection what was received, as long as it takes it, and in this turn of the loop."""
        if self._waits_to_read:
            return
        connection, read = self._connection, self._tls.read
        is_more, has_ended = True, False
        while is_more and not self._is_paused and not self._is_closing:
            if self._share.left <= 0:
                self._waits_to_read = True
                return self._share.wait(self._read_again)
            view = connection.get_buffer(-1)
            room, filled = len(view), 0
            try:
                while filled < room and not has_ended:
                    count = cast(int, read(room - filled, view[filled:]))
                    filled += count
                    has_ended = count == 0  # the peer says that it sends no more
            except ssl.SSLWantReadError:
                is_more = False
            except ssl.SSLError as error:
                return self._fail("TLS failed", _reason(error))
            if filled:
                self._share.use(filled)
                connection.buffer_updated(filled)
            if has_ended:
                return self._raw.close()
        if not self._is_closing:
            self._flush()

    def _read_again(self) -> None:
        self._waits_to_read = False
        if not self._is_closing and not self._has_failed:
            self._decrypt()

    def _flush(self) -> None:
        """Sends what TLS itself has to say."""
        if self._outgoing.pending and not self._is_closing:
            self._raw.write(self._outgoing.read())

    # the transport of the connection

    def write(self, data: Data) -> None:
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[Data]) -> None:
        if self._is_closing or self._has_failed:
            return
        parts = list(list_of_data)
        if len(parts) > 1 and sum(map(len, parts)) <= JOINED_BYTES_MAX:
            parts = [b"".join(parts)]
        self._plain.extend(parts)
        if not self._yields:
            self._encrypt(self._share.left)

    def _encrypt(self, bytes_max: int) -> None:
        """Encrypts and sends what waits, up to some bytes; the rest follows after others had their turn."""
        plain, write, outgoing, encrypted = self._plain, self._tls.write, self._outgoing, []
        try:
            while plain and bytes_max > 0:
                data = plain[0]
                done = write(data)  # at most one record of TLS
                if done < len(data):
                    plain[0] = memoryview(data)[done:]
                else:
                    plain.popleft()
                bytes_max -= done
                self._share.use(done)
                if outgoing.pending > PENDING_BYTES_MAX:  # the memory of a BIO only grows
                    encrypted.append(outgoing.read())
        except ssl.SSLError as error:
            return self._fail("TLS failed", _reason(error))
        encrypted.append(outgoing.read())
        if plain:
            self._yields = True
            self._connection.pause_writing()
            self._share.wait(self._go_on)
        self._raw.writelines(encrypted)

    def _go_on(self) -> None:
        """Encrypts what waits, or lets the connection write again, unless the peer takes nothing."""
        self._yields = False
        if self._is_full or self._is_closing or self._has_failed:
            return
        if self._plain:
            self._encrypt(self._share.left)
        if not self._plain and not self._is_full:
            self._connection.resume_writing()

    def close(self) -> None:
        if self._is_closing:
            return
        if self._is_open and not self._has_failed:
            self._encrypt(sum(map(len, self._plain)))
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()  # only says that no more comes, and does not wait for the peer
            self._flush()
        self._is_closing = True
        self._raw.close()

    def abort(self) -> None:
        self._is_closing = True
        self._raw.abort()

    def is_closing(self) -> bool:
        return self._is_closing or self._raw.is_closing()

    def pause_reading(self) -> None:
        self._is_paused = True
        self._read_or_not()

    def resume_reading(self) -> None:
        self._is_paused = False
        self._read_or_not()
        self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        """Continues with what was received before reading was paused."""
        if not self._is_closing and not self._has_failed and self._is_open:
            self._decrypt()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._raw.set_write_buffer_limits(high=high, low=low)

    def get_write_buffer_size(self) -> int:
        """Returns the bytes that wait in both directions."""
        return self._raw.get_write_buffer_size() + sum(map(len, self._plain)) + self._incoming.pending

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._raw.get_extra_info(name, default)


def _reason(error: ssl.SSLError) -> str:
    """Returns OpenSSL's reason in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is refused: {error.verify_message}"
    return (error.reason or str(error)).replace("_", " ").lower()


def _alert(error: ssl.SSLError) -> int | None:
    """Returns the alert with which Java refuses a client; None for OpenSSL's.

    Java's certificate request names the authorities that it trusts, so that Java, Go and librdkafka send no certificate
    of another one, which is bad_certificate. OpenSSL's from Python names none, and gets the certificate.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return BAD_CERTIFICATE if error.verify_code in WITHOUT_ISSUER else CERTIFICATE_UNKNOWN
    return BAD_CERTIFICATE if error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE" else None


def start(broker: Broker) -> None:
    """Gives the listeners with TLS the values that the metadata has for them."""
    for listener in broker.tls.values():
        try:
            listener.start()
        except (ConfigInvalid, StoreError) as error:
            logger.warning("the listener %s keeps its static configuration of TLS: %s", listener.name, error)
        if not listener.has_key:
            logger.warning("the listener %s has no key store: no client can connect to it", listener.name)


def follow(broker: Broker) -> None:
    """Gives the listeners with TLS new contexts if files or values have changed; reads them in a thread."""
    for listener in broker.tls.values():
        renew = listener.changed()
        if renew is not None:
            done = asyncio.get_running_loop().run_in_executor(None, renew)
            done.add_done_callback(partial(_followed, listener))


def _followed(listener: TlsListener, done: asyncio.Future[None]) -> None:
    error = done.exception()
    if error is None:
        logger.info("the listener %s has new keys and certificates", listener.name)
    elif isinstance(error, StoreError):
        logger.warning("the listener %s keeps its keys and certificates: %s: %s", listener.name, error.key, error)
    else:
        bugs.report(f"new keys of the listener {listener.name}", error)
