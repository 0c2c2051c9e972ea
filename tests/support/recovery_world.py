"""Files that a broker left, for tests that damage them."""

from __future__ import annotations

from ottla.protocol import messages as m

from .ask import batch, fetch_message, produce_message, values
from .memory_files import MemFiles
from .world import World


def create(world: World, *names: str) -> None:
    r = m.CreateTopicsRequest
    wanted = [r.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    assert [one.error_code for one in world.ask("CreateTopics", 5, r(topics=wanted, timeout_ms=10_000)).topics] == [
        0
    ] * len(names)


def produce(world: World, name: str, *rows: bytes) -> int:
    answer = world.ask("Produce", 9, produce_message(name, batch(*rows))).responses[0].partition_responses[0]
    code: int = answer.error_code
    return code


def read(world: World, name: str) -> list[bytes | None]:
    (answer,) = world.ask("Fetch", 11, fetch_message(name, 0)).responses[0].partitions
    assert answer.error_code == 0, answer
    return values(answer.records)


def lived(*names: str, clean: bool = False, **settings: str) -> MemFiles:
    """The files of a broker that had these topics, with three records each."""
    world = World(**settings)
    for name in names:
        create(world, name)
        assert produce(world, name, b"0", b"1", b"2") == 0
    world.pass_ms(10)
    if clean:
        assert world.broker.stop() is None
    return world.files


def write(files: MemFiles, path: str, data: bytes) -> None:
    files.make_directory(path.rpartition("/")[0])
    files.replace(path, data)


def flip(files: MemFiles, path: str, position: int) -> None:
    data = bytearray(files.read(path))
    data[position] ^= 0x10
    write(files, path, bytes(data))


def directories(files: MemFiles) -> list[str]:
    return [name for name in files.names("/data") if "-" in name and "checkpoint" not in name]


def started(files: MemFiles, **settings: str) -> World:
    world = World(files, 1, **settings)
    world.pass_ms(100)
    return world
