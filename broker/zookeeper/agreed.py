"""What ZooKeeper had when the broker and ZooKeeper agreed last, in a file of the first log directory.

After a time without a connection, and after a restart, one of the two has changed, or both have. What was agreed tells
which: a topic that was agreed on and is missing here was deleted here, and one that is in ZooKeeper only and was never
agreed on is a tool's. Values of configurations are merged with it (`merged`).

The file is a journal of lines in JSON, the last of which may be torn by a crash. What is about to be written to
ZooKeeper is noted before, and made durable, because the answer may be lost with the connection: until it is confirmed,
ZooKeeper may have it or not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...storage.files import Files
from .found import Entity, Values

FILE = "zookeeper-agreed"
LINES_SPARE = 1000  # how many lines of what is no more true may stand in the file, beside as many as are true


class KnownTopic(NamedTuple):
    """A topic as the broker wrote it or took it over. `created`: the transaction that made its node (czxid), which no
    later node has; None while it is not known whether the node was made.
    """

    id: bytes
    created: int | None


class Agreed:
    """`path`: of the file."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._tree: int | None = None  # the transaction that made the node of all topics
        self.topics: dict[str, KnownTopic] = {}
        self._configs: dict[Entity, tuple[Values, ...]] = {}
        self._lines: list[bytes] = []  # noted, and not in the file yet
        self._size, self._count = 0, 0  # of the file, in bytes and lines
        self._is_torn = False  # the file has to be written as a whole

    # what is agreed

    @property
    def is_empty(self) -> bool:
        """Whether nothing was agreed on with this ZooKeeper."""
        return self._tree is None

    def states(self, entity: Entity) -> tuple[Values, ...] | None:
        """Returns what a configuration was when both agreed, and after that what may have been written since. None if
        nothing was agreed on yet.
        """
        return None if self.is_empty else self._configs.get(entity, ({},))

    def entities(self) -> list[Entity]:
        """Returns what has a configuration, or may have one."""
        return list(self._configs)

    def begin(self, tree: int) -> None:
        """Forgets what was agreed on with another ZooKeeper, or before this one lost its data."""
        if self._tree not in (None, tree):
            self._tree = None
            self.topics.clear()
            self._configs.clear()
            self._is_torn = True

    def settle(self, tree: int) -> None:
        """Everything there was compared once."""
        if self._tree != tree:
            self._tree = tree
            self._note("tree", tree)

    def note_topic(self, name: str, known: KnownTopic | None) -> None:
        if self.topics.get(name) != known:
            if known is None:
                del self.topics[name]
            else:
                self.topics[name] = known
            self._note(*_topic_line(name, known))

    def note_config(self, entity: Entity, *states: Values) -> None:
        """Notes a configuration, as `states` returns it."""
        found = () if states == ({},) else states
        if self._configs.get(entity, ()) != found:
            if found:
                self._configs[entity] = found
            else:
                del self._configs[entity]
            self._note("config", *entity, *found)

    # the file

    def load(self) -> None:
        """Reads the file, if there is one."""
        try:
            data = self._files.read(self._path)
        except FileNotFoundError:
            self._is_torn = True
            return
        *lines, rest = data.split(b"\n")
        self._size, self._count, self._is_torn = len(data), len(lines), bool(rest)
        for line in lines:
            try:
                self._take(json.loads(line))
            except (ValueError, TypeError):
                self._is_torn = True
                return

    def _take(self, line: Sequence[object]) -> None:
        """Raises TypeError, ValueError."""
        match line:
            case ["tree", int(tree)]:
                self._tree = tree
            case ["topic", str(name)]:
                self.topics.pop(name, None)
            case ["topic", str(name), str(topic_id), int() | None as created]:
                self.topics[name] = KnownTopic(bytes.fromhex(topic_id), created)
            case ["config", str(kind), str(name)]:
                self._configs.pop((kind, name), None)
            case ["config", str(kind), str(name), *states]:
                self._configs[kind, name] = tuple(_values(one) for one in states)
            case _:
                raise ValueError(line)

    def _note(self, *line: object) -> None:
        self._lines.append(_encoded(line))

    def _all(self) -> Iterator[bytes]:
        if self._tree is not None:
            yield _encoded(("tree", self._tree))
        for name, known in self.topics.items():
            yield _encoded(_topic_line(name, known))
        for entity, states in self._configs.items():
            yield _encoded(("config", *entity, *states))

    def take(self) -> Callable[[], None] | None:
        """Returns what makes durable what was noted, for the session's thread; None if nothing was. It raises OSError;
        the next one writes everything then.
        """
        entries = len(self.topics) + len(self._configs)
        lines, self._lines = self._lines, []
        if self._is_torn or self._count + len(lines) > 2 * entries + LINES_SPARE:
            whole = b"".join(self._all())
            self._is_torn = True
            return lambda: self._replace(whole)
        if not lines:
            return None
        self._is_torn = True
        return lambda: self._append(b"".join(lines))

    def _replace(self, data: bytes) -> None:
        self._files.replace(self._path, data)
        self._written(data, 0, 0)

    def _append(self, data: bytes) -> None:
        handle = self._files.open(self._path)
        try:
            handle.write_at(self._size, data)
            handle.sync()
        finally:
            handle.close()
        self._written(data, self._size, self._count)

    def _written(self, data: bytes, size: int, count: int) -> None:
        self._size, self._count, self._is_torn = size + len(data), count + data.count(b"\n"), False


def _topic_line(name: str, known: KnownTopic | None) -> tuple[object, ...]:
    return ("topic", name) if known is None else ("topic", name, known.id.hex(), known.created)


def _values(found: object) -> Values:
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise TypeError(found)
    return found


def _encoded(line: Sequence[object]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def merged(states: Sequence[Values] | None, there: Mapping[str, str], here: Mapping[str, str]) -> Values:
    """Returns what a configuration is to be. `states`: as `Agreed.states` returns them.

    A key that has changed in ZooKeeper only has the value of ZooKeeper, and any other one that of the broker: what the
    broker has acknowledged stays, also where a tool has changed the same key meanwhile. If nothing was agreed on yet,
    what ZooKeeper has is taken over.
    """
    if states is None:
        return {**here, **there}
    found: Values = {}
    for key in {**here, **there}:
        is_theirs = here.get(key) == states[-1].get(key) and all(there.get(key) != one.get(key) for one in states)
        value = (there if is_theirs else here).get(key)
        if value is not None:
            found[key] = value
    return found
