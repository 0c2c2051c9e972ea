"""Requests that grow: every array of every API that is served, with n, 2n and 4n elements, and the work that each
takes.

Requests are made from the schemas, so that a new API is among them by itself; `linear_world` has what they find there.
Elements are named in three ways: all the same, each another that is not there, each another that is there.

    python -m tests.support.linear [n=1000] [NAME_PART]      # by hand: processor time, with more elements
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, TypeVar

from ottla.broker.apis import apis
from ottla.broker.net.api import Api
from ottla.protocol import schema, schema_files
from ottla.protocol.messages import struct_class
from ottla.protocol.schema import FieldSchema, StructSchema

from .ask import batch
from .linear_world import EXISTING, GROUP, LEFT_OUT, PREPARED, SAME, UNKNOWN, VALUES, WIDE, id_of, made_world
from .world import World

GROWTH_MAX = 2.5
ANSWERED_WITHIN_MS = 20  # or parked, which is an answer too; long enough for what follows from a request
Path = tuple[str, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class Case:
    """An array of a request in one version, and how its elements are named."""

    api: Api
    version: int
    path: Path
    naming: str = SAME

    def __str__(self) -> str:
        return f"{self.api.name}-v{self.version}-{'.'.join(self.path)}"


def cases() -> list[Case]:
    """Every array of every API, in the newest version that has it."""
    found = []
    for api in apis().values():
        paths: dict[tuple[str, ...], int] = {}
        for version in range(api.low, api.high + 1):
            paths |= dict.fromkeys(_arrays(schema.load(api.request).root, version), version)
        found += [Case(api, version, path) for path, version in paths.items()]
    return found


def _arrays(struct: StructSchema, version: int, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for f in struct.fields:
        if version in f.versions:
            path = (*before, f.name)
            if f.is_array:
                yield path
            if f.struct is not None:
                yield from _arrays(f.struct, version, path)


@cache
def _entities(request: str) -> dict[tuple[str, ...], str]:
    """What kind of thing the fields of a request name."""
    found: dict[tuple[str, ...], str] = {}
    source = json.loads(schema_files.read(f"messages/{request}.json"))
    common = {struct["name"]: struct["fields"] for struct in source.get("commonStructs", ())}

    def walk(fields: list[dict[str, Any]], before: tuple[str, ...]) -> None:
        for f in fields:
            path = (*before, schema.snake_case(f["name"]))
            if "entityType" in f:
                found[path] = f["entityType"]
            walk(f.get("fields") or common.get(f["type"].removeprefix("[]"), []), path)

    walk(source.get("fields", []), ())
    return found


@dataclass
class Requests:
    """Makes a request to a world."""

    world: World
    case: Case
    first: int  # the number of the first element
    same: int  # that of all elements where they are the same
    count: int

    def __post_init__(self) -> None:
        self.entities = _entities(self.case.api.request)
        self.schema = schema.load(self.case.api.request)

    def make(self) -> Any:
        prepare = PREPARED.get(self.case.api.name)
        return self.unprepared(**(prepare(self) if prepare is not None else {}))

    def unprepared(self, **fields: Any) -> Any:
        """A request with these values."""
        request = self._struct(self.schema.root, (), 0)
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    def _struct(self, struct: StructSchema, path: tuple[str, ...], number: int) -> Any:
        made = struct_class(self.schema, struct)()
        for f in struct.fields:
            if self.case.version in f.versions:
                at = (*path, f.name)
                setattr(made, f.name, self._field(f, at, number, getattr(made, f.name)))
        return made

    def _field(self, f: FieldSchema, path: tuple[str, ...], number: int, default: Any) -> Any:
        target = self.case.path
        if not f.is_array:
            return self._one(f, path, number, default)
        if self.case.api.name in LEFT_OUT.get(f.name, ()) and path != target[: len(path)]:
            return None if self.case.version in f.nullable else []
        if path == target:
            return [self._one(f, path, self.first + n, None) for n in range(self.count)]
        related = target[: len(path)] == path or path[: len(target)] == target
        return (
            [self._one(f, path, number, None)]
            if related
            else []
            if default is None or isinstance(default, list)
            else default
        )

    def _one(self, f: FieldSchema, path: tuple[str, ...], number: int, default: Any) -> Any:
        if f.struct is not None:
            if not f.is_array and default is None:
                return None
            return self._struct(f.struct, path, number)
        special = VALUES.get((self.case.api.name, path))
        if special is not None:
            return special(self, number)
        inside = path[: len(self.case.path)] == self.case.path
        naming = self.case.naming if inside else EXISTING
        number = (self.same if naming == SAME else number) if inside else 0
        if f.element_type == "records":
            return batch(b"x")
        if f.element_type == "string":
            return self._text(path, naming, number, default)
        if f.element_type == "uuid":
            return self._topic_id(path, naming, number) if f.name == "topic_id" else default
        if f.element_type.startswith("int"):
            return self._number(f, path, naming, number, default)
        return default if default is not None else b"" if f.element_type == "bytes" else False

    def _text(self, path: tuple[str, ...], naming: str, number: int, default: str | None) -> str | None:
        entity = {"resource_name": "topicName", "group_id": "groupId"}.get(path[-1], self.entities.get(path))
        if entity == "topicName":
            return f"nope{number}" if naming == UNKNOWN else f"t{number}" if self._names_topics(path) else WIDE
        if entity == "groupId" and len(path) == 1 and self.case.path != path:
            return GROUP
        if entity is None and len(path) == 1 and self.case.path != path:
            return default
        known = {"groupId": "g", "transactionalId": "x"}.get(entity or "", "a")
        return f"{'nope' if naming == UNKNOWN else known}{number}"

    def _topic_id(self, path: tuple[str, ...], naming: str, number: int) -> bytes:
        if naming == UNKNOWN:
            return number.to_bytes(4, "big") * 4
        return id_of(self.world, f"t{number}" if self._names_topics(path) else WIDE)

    def partitions_of_wide(self) -> int:
        return int(self.world.broker.image.partition_counts[id_of(self.world, WIDE)])

    def _names_topics(self, path: tuple[str, ...]) -> bool:
        """Whether the elements that grow are what a name in `path` is of; else there is one topic, with many
        partitions.
        """
        return path[:-1] == self.case.path or path == self.case.path

    def _number(self, f: FieldSchema, path: tuple[str, ...], naming: str, number: int, default: Any) -> int:
        if "partition" in f.name or f.name in ("index", "partitions"):
            of_target = path == self.case.path or (path[:-1] == self.case.path and not f.is_array)
            return (number if of_target else 0) if naming != UNKNOWN or not of_target else 100_000 + number
        if f.name == "replica_id":
            return -1
        if self.entities.get(path) == "brokerId":
            return 1 if naming != UNKNOWN else number
        if default is None:
            return number % 100 if f.element_type == "int8" else number
        return int(default)


def in_fork(call: Callable[[], T]) -> T:
    """What `call` returns in a process that has this one's state, which stays as it is."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, pickle.dumps(call()))
        except BaseException as error:
            os.write(writing, pickle.dumps(RuntimeError(repr(error))))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found: Any = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    if isinstance(found, RuntimeError):
        raise found
    result: T = found
    return result


def steps(world: World, case: Case, n: int, measure: Callable[[Callable[[], Any]], float]) -> list[float]:
    """What n, 2n and 4n elements take, after each other."""
    taken, first = [], 0
    for step, count in enumerate((1, n, 2 * n, 4 * n)):
        request = Requests(world, case, first, 7 * n + 1 + step, count).make()
        first += count

        def ask(request: Any = request) -> None:
            answer = world.send(case.api.name, case.version, request)
            for _ in range(ANSWERED_WITHIN_MS):
                if answer.done:
                    return
                world.pass_ms(1)

        if step == 0:
            ask()  # imports, and functions that are compiled when they are first used
        else:
            taken.append(measure(ask))
    return taken


def named(world: World, case: Case, n: int, measure: Callable[[Callable[[], Any]], float]) -> dict[str, list[float]]:
    """`steps` for each way to name the elements."""
    return {naming: steps(world, replace(case, naming=naming), n, measure) for naming in (SAME, UNKNOWN, EXISTING)}


def size_for(n: int) -> int:
    """How many things of each kind a world must have for `steps`."""
    return 7 * n + 5


def is_linear(taken: list[float], n: int) -> bool:
    """Whether the second doubling took about twice as much more as the first, and not four times: up to 120 bytecodes
    an element are noise. Where n elements took more than 2n, something was done for the first time among them; then 4n
    are compared with 2n.
    """
    first, second = taken[1] - taken[0], taken[2] - taken[1]
    if first < 0:
        return taken[2] <= GROWTH_MAX * taken[1]
    return second <= GROWTH_MAX * first + 240 * n


def processor_ms(call: Callable[[], Any]) -> float:
    began = time.process_time_ns()
    call()
    return (time.process_time_ns() - began) / 1e6


def main(arguments: list[str]) -> int:
    options = dict(a.split("=", 1) for a in arguments if "=" in a)
    words = [a for a in arguments if "=" not in a]
    n = int(options.get("n", 1000))
    world = made_world(size_for(n))
    gc.disable()  # a collection is as long as the world is large
    for case in cases():
        if not words or any(word in str(case) for word in words):
            for naming, times in in_fork(partial(named, world, case, n, processor_ms)).items():
                print(f"{' '.join(f'{t:9.1f}' for t in times)} ms  {case} {naming}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
