"""What the connections of a loop share: their server, the buffer into which they read, and what looks for their next
requests before the loop goes to sleep.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from ..broker import Broker
from ..machine import MachineTime
from ..peer import Peer
from .dispatch import Dispatcher
from .sending import Pipe

C_contra = TypeVar("C_contra", contravariant=True)
SHARED_BYTES = 256 << 10
INTERRUPTED_NS = 500_000  # between two polls: others have had the processor
REST_MIN_NS, REST_MAX_NS = 2_000_000, 128_000_000
AGAIN_NS = 10_000_000  # after a rest, in which a process that wants the processor interrupts the polls again
TLS_HANDSHAKE = b"\x16\x03"  # as the size of a frame, more than any limit


class SharedBuffer:
    """The buffer into which the idle connections of a loop read."""

    def __init__(self) -> None:
        self.data = bytearray(SHARED_BYTES)
        self.view = memoryview(self.data)


class IdlePoll:
    """Looks for the next request of a client that asks without a pause, before the loop goes to sleep.

    A process that sleeps needs a wake-up, which takes as long as a small request. So after a client has asked twice
    within `ottla.idle.poll.us`, the loop polls its sockets for that long, and then sleeps as usual, as with Seastar's
    `--idle-poll-time-us`. A poll that takes long shows that others need the processor: then it rests, first for a
    moment, and longer each time that it is interrupted again soon. Machines that share their processors with others
    interrupt a poll now and then, which is no reason to rest for long.
    `window_us`: for how long the loop polls; 0 for never.
    """

    __slots__ = (
        "_at_end_of_turn",
        "_is_polling",
        "_last_ns",
        "_rest_ns",
        "_rests_until_ns",
        "_until_ns",
        "_window_ns",
        "_work_ns",
    )

    def __init__(self, machine: MachineTime, window_us: int) -> None:
        self._work_ns = machine.work_ns
        self._at_end_of_turn = machine.at_end_of_turn
        self._window_ns = window_us * 1000
        self._is_polling = False
        self._last_ns = self._until_ns = self._rest_ns = self._rests_until_ns = 0

    def now_ns(self) -> int:
        return self._work_ns() if self._window_ns else 0

    def served(self, last_ns: int, asked_ns: int) -> int:
        """Notes that a connection was served which asked at `asked_ns` (`now_ns`), after it had been served until
        `last_ns`. Returns until when it was served now.
        """
        window_ns = self._window_ns
        if not window_ns:
            return 0
        now_ns = self._last_ns = self._work_ns()
        if asked_ns - last_ns < window_ns and now_ns >= self._rests_until_ns:
            self._until_ns = now_ns + window_ns
            if not self._is_polling:
                self._is_polling = True
                self._at_end_of_turn(self._poll)
        return now_ns

    def _poll(self) -> None:
        """Lets the loop look at its sockets once more, until nothing has come for long enough."""
        now_ns = self._work_ns()
        if now_ns - self._last_ns > INTERRUPTED_NS:
            is_again = now_ns - self._rests_until_ns < AGAIN_NS
            self._rest_ns = min(2 * self._rest_ns, REST_MAX_NS) if is_again else REST_MIN_NS
            self._rests_until_ns = now_ns + self._rest_ns
            self._is_polling = False
        elif now_ns >= self._until_ns:
            self._is_polling = False
        else:
            self._last_ns = now_ns
            self._at_end_of_turn(self._poll)


class Listening(Protocol[C_contra]):
    """What connections need of their server."""

    broker: Broker
    dispatcher: Dispatcher
    shared: SharedBuffer
    pipe: Pipe
    poll: IdlePoll

    def connected(self, connection: C_contra) -> bool: ...

    def gate(self, connection: C_contra) -> Dispatcher:
        """Returns what serves a new connection: the dispatcher, or first the exchange that its listener asks for."""

    def admit(self, connection: C_contra) -> None: ...

    def disconnected(self, connection: C_contra) -> None: ...

    def held(self, connection: C_contra, more: int) -> None:
        """A connection holds `more` bytes than before; closes the one that holds the most if that is too much."""

    def again(self, connection: C_contra) -> None:
        """Serves what was buffered, in a later turn of the loop."""


def complain_of_tls(broker: Broker, peer: Peer, beginning: bytes) -> None:
    """Says that a client speaks TLS to a listener without it, if the beginning of its frame looks so."""
    if beginning == TLS_HANDSHAKE and not peer.security_protocol.has_tls:
        broker.sparsely.warning(
            "tls", "%s speaks TLS to the listener %s, which has no TLS", peer.address, peer.listener
        )
