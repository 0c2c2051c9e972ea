"""A model of a ZooKeeper, for the simulator of `ottla.classic`: ephemeral nodes, sessions, and watches that fire once
and are told of later.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.classic.balance.operations import Children, Create, Delete, Get, Node, Put


class Session:
    """The session of one client. It lives until it expires, whether or not the client knows."""

    def __init__(self) -> None:
        self.is_alive = True
        self.told_of = 0  # watches that fired and that the client has not heard of


@dataclass
class ZooKeeper:
    nodes: dict[str, tuple[bytes, Session | None]] = field(default_factory=dict)
    watches: dict[str, list[Session]] = field(default_factory=dict)

    def do(self, operation: object, session: Session) -> object:
        match operation:
            case Children(path, watch):
                self._watch(f"{path}/", session, watch)
                return self.children(path)
            case Get(path, watch):
                self._watch(path, session, watch)
                value, owner = self.nodes.get(path, (b"", None))
                return Node(value, owner is session) if path in self.nodes else None
            case Create(path, value):
                return self.create(path, value, session)
            case Put(path, value):
                if not self.create(path, value, None):
                    self.nodes[path] = value, None
                    self._fire(path)
            case Delete(path):
                if path in self.nodes:
                    self.remove(path)
            case _:
                raise TypeError(operation)
        return None

    def children(self, path: str) -> list[str]:
        head = f"{path}/"
        return [one.removeprefix(head) for one in self.nodes if one.startswith(head) and "/" not in one[len(head) :]]

    def create(self, path: str, value: bytes, session: Session | None) -> bool:
        if path in self.nodes:
            return False
        above = path.rpartition("/")[0]
        if above:
            self.create(above, b"", None)
        self.nodes[path] = value, session
        self._fire(path, f"{path}/", f"{above}/")
        return True

    def remove(self, path: str) -> None:
        del self.nodes[path]
        self._fire(path, f"{path}/", f"{path.rpartition('/')[0]}/")

    def expire(self, session: Session) -> None:
        session.is_alive = False
        for path in [path for path, (_, owner) in self.nodes.items() if owner is session]:
            self.remove(path)
        self.forget(session)

    def disconnect(self, session: Session) -> None:
        """The client takes all its watches for fired, and so it sets them again."""
        session.told_of += self.forget(session)

    def forget(self, session: Session) -> int:
        count = 0
        for watching in self.watches.values():
            count += watching.count(session)
            watching[:] = [one for one in watching if one is not session]
        return count

    def _watch(self, key: str, session: Session, watch: bool) -> None:
        if watch and session not in self.watches.setdefault(key, []):
            self.watches[key].append(session)

    def _fire(self, *keys: str) -> None:
        for key in keys:
            for session in self.watches.pop(key, ()):
                session.told_of += 1
