"""A real ZooKeeper, by kazoo (`ottla[zookeeper]`): does the operations of the algorithm, and reports watches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from ..protocol.zookeeper_paths import BROKER_IDS, broker_path
from ..protocol.zookeeper_values import (
    BrokerRegistration,
)
from .balance.operations import Children, Create, Delete, Get, Lost, Node, Operation, Put, SessionExpired
from .cluster import Address
from .errors import BrokerUnreachable

_log = logging.getLogger(__name__)
CONNECT_S = 6.0


def brokers_of(connect: str) -> list[Address]:
    """Returns where the registered brokers listen, by a session of its own. Raises BrokerUnreachable."""
    try:
        zookeeper = ZooKeeper(connect, CONNECT_S, CONNECT_S)
    except KazooTimeoutError:
        raise BrokerUnreachable(f"no ZooKeeper at {connect} answers") from None
    with zookeeper as found:
        return found.brokers()


class ZooKeeper:
    """One session, and its successors. `on_change` is called, in a thread of kazoo's, when a watch fires or the session
    is over.
    """

    def __init__(
        self,
        connect: str,
        session_timeout_s: float,
        connection_timeout_s: float,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = KazooClient(hosts=connect, timeout=session_timeout_s)
        self._answer_s = session_timeout_s + connection_timeout_s
        self._on_change = on_change
        self._is_expired = threading.Event()
        self._client.add_listener(self._state_changed)
        try:
            self._client.start(timeout=connection_timeout_s)
        except BaseException:
            self._client.close()
            raise

    def close(self) -> None:
        """Ends the session, and with it the ephemeral nodes."""
        self._client.remove_listener(self._state_changed)
        self._client.stop()
        self._client.close()

    def __enter__(self) -> ZooKeeper:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def take_expired(self) -> bool:
        """Returns whether the session has ended since this was asked last."""
        was = self._is_expired.is_set()
        self._is_expired.clear()
        return was

    def brokers(self) -> list[Address]:
        """Returns where the registered brokers listen, as far as clients of that time can. Raises BrokerUnreachable if
        ZooKeeper does not say.
        """
        try:
            return self._brokers()
        except (KazooException, self._client.handler.timeout_exception) as error:
            raise BrokerUnreachable(f"ZooKeeper does not name brokers: {type(error).__name__}") from None

    def _brokers(self) -> list[Address]:
        found = []
        for name in sorted(self._children(BROKER_IDS, None)):
            try:
                node = self._get(broker_path(int(name)), None)
                place = BrokerRegistration.decode(node.value).plaintext if node else None
            except ValueError:  # of what is no broker, or written by something else
                place = None
            if place is not None and place.host:
                found.append((place.host, place.port))
        return found

    def do(self, operation: Operation) -> object:
        """Raises Lost, also for what ZooKeeper refuses, such as without the right to do it; and SessionExpired, also if
        the session ended meanwhile: then it is not known in which one the operation was done.
        """
        if self.take_expired():
            raise SessionExpired
        try:
            answer = self._done(operation)
        except SessionExpiredError:
            self.take_expired()
            raise SessionExpired from None
        except (ConnectionLoss, ConnectionClosedError, OperationTimeoutError, self._client.handler.timeout_exception):
            raise Lost from None
        except KazooException as error:
            _log.error("ZooKeeper refuses %s: %s", operation, type(error).__name__)
            raise Lost from None
        if self.take_expired():
            raise SessionExpired
        return answer

    def _done(self, operation: Operation) -> object:
        match operation:
            case Children(path, watch):
                return self._children(path, self._fired if watch else None)
            case Get(path, watch):
                return self._get(path, self._fired if watch else None)
            case Create(path, value):
                return self._create(path, value, ephemeral=True)
            case Put(path, value):
                try:
                    self._answer(self._client.set_async(path, value))
                except NoNodeError:
                    if not self._create(path, value, ephemeral=False):
                        self._answer(self._client.set_async(path, value))
            case Delete(path):
                try:
                    self._answer(self._client.delete_async(path))
                except NoNodeError:
                    return None
            case _:
                raise TypeError(operation)
        return None

    def _answer(self, asked: Any) -> Any:
        return asked.get(timeout=self._answer_s)

    def _children(self, path: str, watch: Callable[[object], None] | None) -> list[str]:
        """Sets the watch also for a node that does not exist."""
        try:
            return list(self._answer(self._client.get_children_async(path, watch)))
        except NoNodeError:
            if self._answer(self._client.exists_async(path, watch)) is None:
                return []
            return self._children(path, watch)

    def _get(self, path: str, watch: Callable[[object], None] | None) -> Node | None:
        if watch is not None and self._answer(self._client.exists_async(path, watch)) is None:
            return None
        try:
            value, stat = self._answer(self._client.get_async(path))
        except NoNodeError:
            return None
        session = self._client.client_id
        return Node(value, session is not None and stat.ephemeralOwner == session[0] != 0)

    def _create(self, path: str, value: bytes, ephemeral: bool) -> bool:
        try:
            self._answer(self._client.create_async(path, value, ephemeral=ephemeral, makepath=True))
        except NodeExistsError:
            return False
        return True

    def _fired(self, event: object) -> None:
        self._on_change()

    def _state_changed(self, state: str) -> None:
        if state == KazooState.LOST:
            self._is_expired.set()
            self._on_change()
