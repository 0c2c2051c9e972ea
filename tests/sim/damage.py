"""Damaged directories: a broker lives, one of its files is damaged in any way, and the next start must not lose
anything in silence.

    python -m tests.sim damage [seeds=20000] [seed=N]

A start is right when it is one of these:

- everything is as before: topics with their ids, every acknowledged record, every committed offset, the next offset;
- it is refused with a reason that names a file or directory in the data directory, and the second time with the same
  one; with `ottla.recovery=salvage` it goes on, or is refused with a reason again;
- a partition is offline, or has fewer records, and an error or a warning in the log names its directory; or a consumer
  meets a batch whose CRC is wrong, as with Kafka, which does not read closed segments either when it starts.

No partition directory is ever deleted: it is where it was, or set aside as `-stray`.

What a start cannot see, and the damage therefore leaves out: another number in a text file that stays a well-formed
file (an offset checkpoint has no CRC), the fields of a user's batch that its CRC does not cover, entries of an index
that are well-formed and wrong, and after a crash a user's log that ends with an earlier batch, as the later ones may
never have reached the disk. Nor are well-formed snapshots or small files put in the place of others.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ottla.broker.controller import metadata_log, metadata_opening
from ottla.broker.replica import log_opener, replica_manager, strays
from ottla.broker.replica.directories import DirectoryError
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.storage.layout import parse_partition_directory

from ..support.ask import batch, fetch_message, produce_message
from ..support.bugs import Bug
from ..support.memory_files import MemFiles
from ..support.transaction_world import SMALL, Writer
from ..support.world import World, told_with
from .damages import (
    damage,
)

WORLDS = 40  # directories that are damaged again and again, each in other ways


SETTINGS = {**SMALL, "offsets_topic_num_partitions": "2"}


GROUPS = ("g0", "g1", "g2")


@dataclass
class Before:
    """What was acknowledged, and the files."""

    files: MemFiles
    clean: bool
    topics: dict[str, bytes] = field(default_factory=dict)
    rows: dict[str, list[tuple[int, bytes]]] = field(
        default_factory=dict
    )  # offset and value of records that are not control records
    ends: dict[str, int] = field(default_factory=dict)
    offsets: dict[tuple[str, str], int] = field(default_factory=dict)  # by group and topic


@cache
def lived(seed: int) -> Before:
    """The directory that some lives leave."""
    chance = random.Random(seed)
    files: MemFiles | None = None
    before = Before(MemFiles(), False)
    lives = chance.randint(1, 3)
    for life in range(lives):
        snapshot_every = chance.choice(("600", "3000", "20971520"))
        world = World(
            files, seed * 10 + life, metadata_log_max_record_bytes_between_snapshots=snapshot_every, **SETTINGS
        )
        world.pass_ms(20)
        _live(world, chance, life, before)
        before.clean = chance.random() < (0.4 if life == lives - 1 else 0.7)
        if before.clean:
            assert world.broker.stop() is None
        elif chance.random() < 0.5:
            world.broker.replicas.save_checkpoints()
        files = world.files
    assert files is not None
    before.files = files
    _note_rows(before, seed)
    return before


def _live(world: World, chance: random.Random, life: int, before: Before) -> None:
    for n in range(chance.randint(1, 3)):
        name = f"t{life}.{n}"
        r = m.CreateTopicsRequest
        wanted = r.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        configs = {
            "segment.bytes": "1048576",
            "index.interval.bytes": "10",
            "flush.messages": chance.choice(("1", "10000")),
        }
        wanted.configs = [r.CreatableTopicConfig(name=k, value=v) for k, v in configs.items()]
        assert world.ask("CreateTopics", 5, r(topics=[wanted], timeout_ms=10_000)).topics[0].error_code == 0
        before.topics[name] = world.broker.image.topics[name].id
    if len(before.topics) > 2 and chance.random() < 0.3:
        gone = chance.choice(sorted(before.topics))
        d = m.DeleteTopicsRequest
        assert world.ask("DeleteTopics", 5, d(topic_names=[gone], timeout_ms=10_000)).responses[0].error_code == 0
        del before.topics[gone]
        before.offsets = {key: value for key, value in before.offsets.items() if key[1] != gone}
        world.pass_ms(100_000)
    writer = None
    if chance.random() < 0.5:
        _find(world, 1, "x")
        writer = Writer(world, "x")
        assert writer.init() == 0
    for name in sorted(before.topics):
        for _ in range(chance.randint(0, 4)):
            data = batch(*(chance.randbytes(chance.choice((5, 40, 200))) for _ in range(chance.randint(1, 3))))
            answer = world.ask("Produce", 9, produce_message(name, data)).responses[0].partition_responses[0]
            assert answer.error_code == 0
        if chance.random() < 0.3:
            log = world.broker.partitions.get(name, 0).open_log()
            log.roll(world.schedule.now_ms())
        if writer is not None and chance.random() < 0.5:
            assert writer.write(b"in a transaction", name=name) == 0
            assert writer.end(chance.random() < 0.7) == 0
        if chance.random() < 0.6:
            _commit(world, chance.choice(GROUPS), name, chance.randint(0, 1000), before)
    world.pass_ms(chance.choice((10, 2000, 70_000)))


def _find(world: World, kind: int, key: str) -> None:
    """Has the coordinator's topic made and loaded."""
    for _ in range(100):
        (found,) = world.ask(
            "FindCoordinator", 4, m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        ).coordinators
        world.pass_ms(20)
        if found.error_code == 0:
            return
    raise AssertionError(f"no coordinator for {key}: {found.error_code}")


def _commit(world: World, group: str, topic: str, offset: int, before: Before) -> None:
    _find(world, 0, group)
    r = m.OffsetCommitRequest
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = r(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[r.OffsetCommitRequestTopic(name=topic, partitions=[part])],
    )
    answer = world.ask("OffsetCommit", 7, request).topics[0].partitions[0]
    assert answer.error_code == 0, answer
    before.offsets[group, topic] = offset


def _note_rows(before: Before, seed: int) -> None:
    """What an undamaged start gives is what every other one is held against."""
    world = World(before.files.copy(), seed, **SETTINGS)
    world.pass_ms(50)
    assert set(before.topics) == set(world.broker.image.topics) - {"__consumer_offsets", "__transaction_state"}
    for name in before.topics:
        rows, wrong = read(world, name)
        assert not wrong
        before.rows[name] = rows
        before.ends[name] = world.broker.partitions.get(name, 0).open_log().end_offset
    assert offsets_of(world, before) == before.offsets


def read(world: World, name: str) -> tuple[list[tuple[int, bytes]], bool]:
    """Offsets and values as a consumer reads them that checks CRCs; and whether it met a wrong one."""
    rows: list[tuple[int, bytes]] = []
    offset = world.broker.partitions.get(name, 0).start_offset
    while True:
        answer = world.ask("Fetch", 11, fetch_message(name, offset)).responses[0].partitions[0]
        data = bytes(answer.records or b"")
        if answer.error_code or not data:
            return rows, answer.error_code != 0
        for at in records.batches(data):
            if records.computed_crc(data, at.position, at.header.size) != at.header.crc:
                return rows, True
            if not at.header.is_control:
                rows += [(r.offset, r.value or b"") for r in records.decode(data, at) if r.offset >= offset]
            if at.header.next_offset <= offset:
                return rows, True
            offset = at.header.next_offset


def offsets_of(world: World, before: Before) -> dict[tuple[str, str], int]:
    found = {}
    for group in sorted({group for group, _ in before.offsets}):
        f = m.OffsetFetchRequest
        wanted = [
            f.OffsetFetchRequestTopics(name=t, partition_indexes=[0]) for g, t in sorted(before.offsets) if g == group
        ]
        request = f(groups=[f.OffsetFetchRequestGroup(group_id=group, topics=wanted)])
        (answer,) = world.ask("OffsetFetch", 8, request).groups
        for topic in answer.topics:
            for partition in topic.partitions:
                if partition.error_code == 0 and partition.committed_offset >= 0:
                    found[group, topic.name] = partition.committed_offset
    return found


# the start after it


class Said(logging.Handler):
    """What the broker logs as a warning or an error."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def of(self, directory: str) -> bool:
        return any(f"/data/{directory}" in line for line in self.lines)


@contextmanager
def said() -> Iterator[Said]:
    heard, logger = Said(), logging.getLogger("ottla")
    propagates = logger.propagate
    logger.addHandler(heard)
    logger.propagate = False
    try:
        yield heard
    finally:
        logger.removeHandler(heard)
        logger.propagate = propagates


def partition_directories(files: MemFiles) -> set[str]:
    return {name for name in files.names("/data") if parse_partition_directory(name)}


def refusal(files: MemFiles, **settings: str) -> str | None:
    """Why a broker does not start; None where it does."""
    try:
        World(files, 1, **SETTINGS, **settings)
    except (DirectoryError, OSError) as error:
        return str(error)
    return None


def check_refused(files: MemFiles, held: set[str], reason: str) -> None:
    assert "/data/" in reason, f"a reason that names no file: {reason}"
    assert partition_directories(files) == held, "a refused start moved directories"
    again = refusal(files)
    assert again == reason, f"refused with {reason!r}, and then with {again!r}"
    salvaged = refusal(files, ottla_recovery="salvage")
    if salvaged is not None:
        assert "/data/" in salvaged, salvaged
        return
    check_kept(files, held)
    assert refusal(files) is None, "salvaged once, the directory is refused again"


def check_kept(files: MemFiles, held: set[str]) -> None:
    now = files.names("/data")
    for directory in sorted(held):
        is_there = directory in now or any(name.startswith(f"{directory}.") and name.endswith("-stray") for name in now)
        assert is_there, f"{directory} is gone"


def check_started(world: World, before: Before, heard: Said) -> None:
    topics = world.broker.image.topics
    missing = [name for name, topic_id in before.topics.items() if name not in topics or topics[name].id != topic_id]
    assert not missing, f"topics {missing} are gone, and the start said {heard.lines}"
    for name, rows in before.rows.items():
        partition = world.broker.partitions.get(name, 0)
        if partition.offline:
            assert heard.of(f"{name}-0"), f"{name} is offline without a reason: {heard.lines}"
            continue
        found, is_wrong = read(world, name)
        if found != rows and not is_wrong:
            assert heard.of(f"{name}-0"), (
                f"{name} has {len(found)} rows of {len(rows)}, and the start said {heard.lines}"
            )
        answer = world.ask("Produce", 9, produce_message(name, batch(b"one more"))).responses[0].partition_responses[0]
        assert answer.error_code == 0, f"{name}: {answer}"
        if (
            answer.base_offset != before.ends[name]
        ):  # more, where a transaction whose state is lost was aborted once more
            is_said = heard.of(f"{name}-0") or (
                answer.base_offset > before.ends[name] and any("__transaction_state-" in one for one in heard.lines)
            )
            assert is_said, (
                f"{name} goes on at {answer.base_offset}, not {before.ends[name]}, and the start said {heard.lines}"
            )
    if offsets_of(world, before) != before.offsets:
        assert any("__consumer_offsets-" in line for line in heard.lines), (
            f"offsets are gone, and the start said {heard.lines}"
        )


def run(seed: int) -> None:
    """One damaged directory. AssertionError with the seed."""
    with told_with(seed), said() as heard:
        chance = random.Random(seed)
        before = lived(seed % WORLDS)
        files: Any = before.files.copy()
        held = partition_directories(files)
        path = damage(files, before.clean, chance)
        try:
            try:
                world = World(files, 1, **SETTINGS)
            except (DirectoryError, OSError) as error:
                check_refused(files, held, str(error))
                return
            world.pass_ms(200)
            check_started(world, before, heard)
            world.pass_ms(100_000)
            check_kept(files, held)
            assert not world.fatal, world.fatal
        except Exception as error:
            raise AssertionError(
                f"{path}, {'clean' if before.clean else 'unclean'}: {type(error).__name__}: {error}"
            ) from error


BUGS: tuple[Bug, ...] = (
    (metadata_opening._Opening, "_lost", "if not self.salvage:", "if self.salvage is None:"),
    (metadata_log, "read_snapshot", "wrong = wrong or", "_ = wrong or"),
    (log_opener._Opening, "steps", "for gap in (yield from gaps(log)):", "for gap in ():"),
    (log_opener._Opening, "_check_is_there", "in names and not any(", "in names and all("),
    (replica_manager.ReplicaManager, "_open", "except Exception as error:", "except KeyError as error:"),
    (strays, "set_aside", "files.rename(path, stray)", "files.remove_tree(path)"),
)
