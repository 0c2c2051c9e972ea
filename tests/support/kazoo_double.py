"""A ZooKeeper in memory behind what the broker uses of kazoo's client, and threads of a world's schedule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError
from ottla.broker.clock import Schedule

T = TypeVar("T")
SESSION = 1


@dataclass
class Node:
    value: bytes
    version: int = 0
    owner: int = 0

    @property
    def stat(self) -> SimpleNamespace:
        return SimpleNamespace(version=self.version, ephemeralOwner=self.owner, ctime=2**62)


class Waiting:
    """What an asynchronous request gives: it is done when it is waited for."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self.get = ask


class KazooDouble:
    """`before_set`: called before a value is set, as a tool that is faster."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"": Node(b"")}
        self.before_set: Callable[[str], None] = lambda path: None
        self.client_id = (SESSION, b"")
        self.connected, self.chroot, self.last_zxid = True, "", 0
        self._watches: dict[str, list[Callable[[Any], None]]] = {}

    # the session

    def add_listener(self, listener: Callable[[str], None]) -> None:
        """The connection is never lost."""

    def start_async(self) -> SimpleNamespace:
        return SimpleNamespace(wait=lambda seconds: True)

    # what is read

    def get(self, path: str, watch: Callable[[Any], None] | None = None) -> tuple[bytes, SimpleNamespace]:
        self._watch(path, watch)
        node = self._node(path)
        return node.value, node.stat

    def get_async(self, path: str, watch: Callable[[Any], None] | None = None) -> Waiting:
        return Waiting(lambda: self.get(path, watch))

    def exists(self, path: str, watch: Callable[[Any], None] | None = None) -> SimpleNamespace | None:
        self._watch(path, watch)
        return self.nodes[path].stat if path in self.nodes else None

    def get_children(self, path: str, watch: Callable[[Any], None] | None = None) -> list[str]:
        self._node(path)
        self._watch(path, watch)
        head = f"{path}/"
        return [one.removeprefix(head) for one in self.nodes if one.startswith(head) and "/" not in one[len(head) :]]

    # what is written

    def ensure_path(self, path: str) -> None:
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
        self.nodes[path] = Node(value, owner=SESSION if ephemeral else 0)
        self._fire(path, above)

    def create_async(self, path: str, value: bytes) -> Waiting:
        return Waiting(lambda: self.create(path, value))

    def set(self, path: str, value: bytes, version: int = -1) -> None:
        tool, self.before_set = self.before_set, lambda path: None  # nothing comes before what a tool sets itself
        tool(path)
        self.before_set = tool
        node = self._node(path)
        if version not in (-1, node.version):
            raise BadVersionError
        node.value, node.version = value, node.version + 1
        self._fire(path)

    def delete(self, path: str, *, recursive: bool = False) -> None:
        self._node(path)
        for one in [one for one in self.nodes if one == path or (recursive and one.startswith(f"{path}/"))]:
            del self.nodes[one]
        self._fire(path, path.rpartition("/")[0])

    def _node(self, path: str) -> Node:
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
