"""A ZooKeeper in memory, with the part of kazoo's client that the broker uses, and threads of a world's schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

from kazoo.exceptions import BadVersionError, ConnectionLoss, NodeExistsError, NoNodeError
from kazoo.protocol.states import KazooState
from ottla.broker.clock import Schedule

T = TypeVar("T")
SESSION = 1


@dataclass
class Node:
    value: bytes
    version: int = 0
    owner: int = 0
    created: int = 0
    created_ms: int = 2**62  # never old

    @property
    def stat(self) -> SimpleNamespace:
        return SimpleNamespace(
            version=self.version, ephemeralOwner=self.owner, ctime=self.created_ms, czxid=self.created
        )


class Waiting:
    """What an asynchronous request gives: it is done when it is waited for."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self.get = ask


class KazooDouble:
    """`before_write`: called before a node is set or deleted, as a tool that is faster. `loses_answer`: whether
    ZooKeeper does what is asked for at a path, and cannot be reached from then on. What tools do themselves is done in
    `tool`.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"": Node(b"")}
        self.before_write: Callable[[str], None] = lambda path: None
        self.loses_answer: Callable[[str], bool] = lambda path: False
        self.client_id = (SESSION, b"")
        self.connected, self.chroot, self.last_zxid = True, "", 0
        self._transactions = 0
        self._watches: dict[str, list[Callable[[Any], None]]] = {}
        self._listeners: list[Callable[[str], None]] = []

    # the session

    def add_listener(self, listener: Callable[[str], None]) -> None:
        self._listeners.append(listener)

    def start_async(self) -> SimpleNamespace:
        return SimpleNamespace(wait=lambda seconds: True)

    def lose(self) -> None:
        """ZooKeeper cannot be reached any more."""
        self.connected, self.loses_answer = False, lambda path: False
        self._tell(KazooState.SUSPENDED)

    def find(self, *, expired: bool) -> None:
        """ZooKeeper can be reached again. `expired`: in a new session."""
        self.connected = True
        if expired:
            self._expire()
        self._tell(KazooState.CONNECTED)

    def end(self) -> None:
        """The broker has ended, and its session after it. Another one may use this ZooKeeper."""
        self._listeners.clear()
        self._expire()
        self.connected = True

    def _expire(self) -> None:
        self._watches.clear()
        self.nodes = {path: node for path, node in self.nodes.items() if node.owner != self.client_id[0]}
        self.client_id = (self.client_id[0] + 1, b"")

    def _tell(self, state: str) -> None:
        for listener in self._listeners:
            listener(state)

    @contextmanager
    def tool(self) -> Iterator[None]:
        """A tool reaches ZooKeeper whether the broker does or not."""
        before, self.connected = self.connected, True
        yield
        self.connected = before

    def _done(self, path: str) -> None:
        if self.loses_answer(path):
            self.lose()
            raise ConnectionLoss

    # what is read

    def get(self, path: str, watch: Callable[[Any], None] | None = None) -> tuple[bytes, SimpleNamespace]:
        self._watch(path, watch)
        node = self._node(path)
        return node.value, node.stat

    def get_async(self, path: str, watch: Callable[[Any], None] | None = None) -> Waiting:
        return Waiting(lambda: self.get(path, watch))

    def exists(self, path: str, watch: Callable[[Any], None] | None = None) -> SimpleNamespace | None:
        self._reach()
        self._watch(path, watch)
        return self.nodes[path].stat if path in self.nodes else None

    def exists_async(self, path: str) -> Waiting:
        return Waiting(lambda: self.exists(path))

    def get_children(self, path: str, watch: Callable[[Any], None] | None = None) -> list[str]:
        self._node(path)
        self._watch(path, watch)
        head = f"{path}/"
        return [one.removeprefix(head) for one in self.nodes if one.startswith(head) and "/" not in one[len(head) :]]

    # what is written

    def ensure_path(self, path: str) -> None:
        self._reach()
        if path not in self.nodes and path != "/":
            self.ensure_path(path.rpartition("/")[0])
            self.create(path)

    def create(
        self, path: str, value: bytes = b"", *, ephemeral: bool = False, makepath: bool = False, sequence: bool = False
    ) -> None:
        above = path.rpartition("/")[0]
        if makepath:
            self.ensure_path(above)
        self._node(above)
        if sequence:
            path += f"{len(self.get_children(above)):010}"
        if path in self.nodes:
            raise NodeExistsError
        self._transactions += 1
        self.nodes[path] = Node(value, owner=self.client_id[0] if ephemeral else 0, created=self._transactions)
        self._fire(path, above)
        self._done(path)

    def create_async(self, path: str, value: bytes) -> Waiting:
        return Waiting(lambda: self.create(path, value))

    def set(self, path: str, value: bytes, version: int = -1) -> SimpleNamespace:
        self._overtake(path)
        node = self._node(path)
        if version not in (-1, node.version):
            raise BadVersionError
        node.value, node.version = value, node.version + 1
        self._fire(path)
        self._done(path)
        return node.stat

    def set_async(self, path: str, value: bytes, version: int = -1) -> Waiting:
        return Waiting(lambda: self.set(path, value, version))

    def delete(self, path: str, version: int = -1, *, recursive: bool = False) -> None:
        self._reach()
        self._overtake(path)
        if not recursive and version not in (-1, self._node(path).version):
            raise BadVersionError
        for one in [one for one in self.nodes if one == path or (recursive and one.startswith(f"{path}/"))]:
            del self.nodes[one]
        self._fire(path, path.rpartition("/")[0])

    def _overtake(self, path: str) -> None:
        tool, self.before_write = self.before_write, lambda path: None  # nothing comes before what a tool writes itself
        tool(path)
        self.before_write = tool

    def _reach(self) -> None:
        if not self.connected:
            raise ConnectionLoss

    def _node(self, path: str) -> Node:
        assert not {".", ".."} & set(path.split("/")), f"kazoo refuses {path}"
        self._reach()
        if path not in self.nodes:
            raise NoNodeError
        return self.nodes[path]

    def _watch(self, path: str, watch: Callable[[Any], None] | None) -> None:
        if watch is not None:
            self._watches.setdefault(path, []).append(watch)

    def _fire(self, *paths: str) -> None:
        for path in paths:
            for watch in self._watches.pop(path, ()):
                watch(SimpleNamespace(path=path))


class ScheduledThread:
    """The thread of a session, as the schedule of a world has it."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule

    def run(self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        self._schedule.in_thread(work, done)

    def post(self, call: Callable[[], None]) -> None:
        self._schedule.later(0, call)

    def close(self) -> None:
        """There is nothing to end."""
