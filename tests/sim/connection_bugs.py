"""Deliberate bugs, each one line: the function, what stands there, and what it is replaced by. A test breaks the code
with each of them, and the simulator of connections must find it.
"""

from __future__ import annotations

from ottla.broker.lab import damage
from ottla.broker.net import pacing
from ottla.broker.net.connection import Connection
from ottla.broker.net.dispatch import Dispatcher
from ottla.broker.net.intercepting import _Intercepted
from ottla.broker.net.pacing import PacedTransport
from ottla.broker.net.sending import Sending

from ..support.bugs import Bug

BUGS: tuple[Bug, ...] = (
    (PacedTransport, "_sent", "self._connection.write_to(self._raw, None)", "pass"),
    (PacedTransport, "_sent", "if self.ends:", "if False:"),
    (PacedTransport, "_sent", "return self._raw.close()", "return None"),
    (PacedTransport, "close", "if self._timer is None and not self._rest:", "if True:"),
    (PacedTransport, "write", "self._connection.hold_replies()", "pass"),
    (pacing, "pace", "outgoing.end = False", "pass"),
    (Connection, "_write", "if not self.is_serving or self._paced is not None:", "if not self.is_serving:"),
    (Connection, "_send", "self._write_replies()", "pass"),
    (Connection, "_send", "if self._out is None and not self._paused_writing:", "if self._out is None:"),
    (Connection, "_send", "for _, part in reply.parts if reply else ():", "for _, part in ():"),
    (Connection, "write_to", "self._write_replies()", "pass"),
    (Connection, "write_on", "and not self._full and", "and"),
    (Connection, "write_on", "and not self._frozen", ""),
    (Connection, "resume_writing", "self._full = False", "pass"),
    (Connection, "thaw", "self.write_on()", "pass"),
    (Connection, "thaw", "self._server.again(self)", "pass"),
    (Connection, "connection_lost", "self._waiting.cancel()", "pass"),
    (Connection, "connection_lost", "self._out.release()", "pass"),
    (Connection, "connection_lost", "part.release()", "pass"),
    (Connection, "_mute", "self.peer.throttle_ms = self.peer.throttle_ms, 0", "_ = self.peer.throttle_ms, 0"),
    (Connection, "_next", "if self.peer.throttle_ms:", "if False:"),
    (Connection, "_keep_rest", "if self._busy and left", "if left"),
    (Connection, "close", "self._write_replies()", "pass"),
    (Sending, "_passed", "records.release()", "pass"),
    (_Intercepted, "_encoded", "if waits is not None and await self._waited(waits, size) is CLOSE:", "if False:"),
    (_Intercepted, "_steps", "self._times.parked -= 1", "pass"),
    (_Intercepted, "_steps", "self._outgoing.forget()", "pass"),
    (_Intercepted, "_waited", "seam.waiting_bytes -= size", "pass"),
    (Dispatcher, "_park", "later.when_cancelled(parked.ended)", "pass"),
    (damage, "repeat", "Borrowed(records)", "records"),
    (damage, "cut", "records.release()", "pass"),
)
