"""A session with ZooKeeper, in a thread of its own: what waits for ZooKeeper takes neither the loop nor the threads of
files.

kazoo keeps the connection, and makes a new session when one has expired. What is asked while ZooKeeper cannot be
reached waits until it can, as with Kafka's own client.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from ..config.config import ZooKeeperError
from ..later import Later
from ..turn import Turn

logger = logging.getLogger("ottla.kafka.zookeeper.ZooKeeperClient")
T = TypeVar("T")
Done = Callable[[T | None, BaseException | None], None]

FAILURES = (KazooException, KazooTimeoutError)
"""What work fails with when ZooKeeper refuses it or is lost; it may be done again later."""


class Thread(Protocol):
    """A thread for work that may wait for long."""

    def run(self, work: Callable[[], T], done: Done[T]) -> None:
        """Runs `work` in the thread after what it was given before, and then `done` on the loop."""

    def post(self, call: Callable[[], None]) -> None:
        """Calls on the loop; may be used in any thread."""

    def close(self) -> None: ...


class Session:
    """`connected`: called on the loop when there is a connection, again or for the first time. `session_ms`: after this
    time without a connection the session is over.
    """

    def __init__(
        self,
        turn: Turn,
        thread: Thread,
        client: KazooClient,
        timeout_ms: int,
        session_ms: int,
        connected: Callable[[], None],
    ) -> None:
        self._turn = turn
        self._thread = thread
        self._client = client
        self._timeout_ms = timeout_ms
        self._session_ms = session_ms
        self._connected = connected
        self.is_closing = False
        client.add_listener(self._state)

    @property
    def id(self) -> int | None:
        """The id of the session; None while there is none."""
        found = self._client.client_id
        return None if found is None else int(found[0])

    def connect(self) -> Later[None]:
        """Connects, and makes the chroot if it is missing. Fails with ZooKeeperError: not within
        `zookeeper.connection.timeout.ms`.
        """
        return self.run(lambda _: self._connect())

    def _connect(self) -> None:
        client = self._client
        try:
            client.start_async().wait(self._timeout_ms / 1000)
            if not client.connected:
                self.is_closing = True
                client.stop()
                words = f"Unable to connect to zookeeper server within timeout: {self._timeout_ms}"
                raise ZooKeeperError(f"{words} (zookeeper.connect, zookeeper.connection.timeout.ms)")
            make_chroot(client)
        except FAILURES as error:
            raise ZooKeeperError(f"zookeeper.connect: {error!r}") from None

    def run(self, work: Callable[[KazooClient], T]) -> Later[T]:
        """Runs work in the session's thread, after what it was given before; completes as an input event. Fails with
        what the work raises (`FAILURES`).
        """
        later: Later[T] = Later()

        def done(result: T | None, error: BaseException | None) -> None:
            self._turn.event(lambda: later.settle(result, error))

        self._thread.run(lambda: work(self._client), done)
        return later

    def close(self) -> None:
        """Ends the session: what is ephemeral goes. It may wait for seconds, and does not use the loop."""
        self.is_closing = True
        try:
            self._client.stop()
            self._client.close()
        except FAILURES as error:
            logger.info("the session with ZooKeeper did not end cleanly: %r", error)
        self._thread.close()

    def post(self, call: Callable[[], None]) -> None:
        self._thread.post(call)

    def _state(self, state: str) -> None:
        """A thread of kazoo says that the connection has come or gone."""
        if state == KazooState.CONNECTED:
            self._thread.post(self._connected)
        elif self.is_closing:
            return
        elif state == KazooState.LOST:
            logger.warning("the session with ZooKeeper has expired; the broker is registered again in a new one")
        else:
            logger.warning("ZooKeeper cannot be reached; the broker goes on")
            self._thread.post(self._forget_later)

    def _forget_later(self) -> None:
        self._turn.later(self._session_ms, self._forget)

    def _forget(self) -> None:
        """Forgets what this client has seen last, now that its session is over. A ZooKeeper that has lost its data
        refuses clients that have seen more than it has.
        """
        if not self._client.connected:
            self._client.last_zxid = 0


def make_chroot(client: KazooClient) -> None:
    """Makes the node under which all others are, if it is missing."""
    chroot, client.chroot = client.chroot, ""
    try:
        client.ensure_path(chroot or "/")
    finally:
        client.chroot = chroot
