"""Records that are converted in runs become what each becomes by itself, and so do messages that become records."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable

import pytest
from ottla.broker.steps import all_at_once
from ottla.protocol import conversion, legacy, records, runs
from ottla.protocol.compression import GZIP, NONE
from ottla.protocol.conversion import newer
from ottla.protocol.errors import ApiError, Errors, MalformedMessage
from ottla.protocol.legacy import READING, Message
from ottla.protocol.records import Record, Template

from ..support.converted import converted, down
from ..support.seeds import in_turn, seeds

T = 1_700_000_000_000
Made = Callable[[random.Random], list[Record]]


def in_runs(chance: random.Random) -> list[Record]:
    """Records of producers that send many that are alike, with some others between."""
    found: list[Record] = []
    offset, time = 0, T
    while len(found) < 150:
        key_size, value_size = chance.choice((-1, 0, 5, 70)), chance.choice((-1, 0, 9, 100, 300))
        headers = (("h", b"v"),) if chance.random() < 0.2 else ()
        for _ in range(chance.choice((1, 2, 5, 80))):
            key, value = (None if size < 0 else chance.randbytes(size) for size in (key_size, value_size))
            found.append(Record(key, value, time, offset, headers))
            offset += chance.choice((1, 1, 1, 1, 40, 9000)) if chance.random() < 0.1 else 1
            time += chance.random() < 0.05
        time += chance.randrange(-3, 200)
    return found


def of_all_lengths(chance: random.Random) -> list[Record]:
    """Records of one producer whose values have all lengths; now and then something else differs."""
    found: list[Record] = []
    offset, time, key_size = 0, T, chance.choice((-1, 0, 5, 70))
    while len(found) < 400:
        size = chance.choice((-1, 0, 9, 40, 100, 9000) if chance.random() < 0.1 else (chance.randrange(200),))
        key, value = (None if n < 0 else chance.randbytes(n) for n in (key_size, size))
        headers = (("h", b"v"),) if chance.random() < 0.02 else ()
        found.append(Record(key, value, time, offset, headers))
        offset += 1 if chance.random() < 0.98 else chance.choice((2, 300))
        time += chance.choice((0, 0, 1, 3, -1))
        key_size = key_size if chance.random() < 0.98 else chance.choice((-1, 0, 5, 70))
    return found


def with_all_keys(chance: random.Random) -> list[Record]:
    """Records whose keys have all lengths, too: of one byte, and of two with the same first byte."""
    sizes = [0, 5, 6, 7, 63, *((64, 128, 192) if chance.random() < 0.5 else ())]
    return [
        Record(chance.randbytes(chance.choice(sizes)), chance.randbytes(chance.randrange(120)), T, offset)
        for offset in range(400)
    ]


def test_keys_of_all_lengths_are_one_run() -> None:
    made = [Record(b"k" * (n % 9), b"v" * (70 + n % 31), T, n) for n in range(60)]
    out: list[bytes] = []
    stored = bytes(records.encode(made, Template()))
    run = runs.convert(out, stored[records.HEADER_SIZE :], 0, 60, runs.Target(1, 0, 0, 0, 0, T, None))
    assert (run.number, run.last, run.largest) == (60, 59, T)
    assert b"".join(out) == legacy.encode([Message(r.offset, r.key, r.value, 1, T) for r in made])


@pytest.mark.long
@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("seed", in_turn(seeds(20, quick=4)))
@pytest.mark.parametrize("kind", [of_all_lengths, with_all_keys])
def test_records_of_all_lengths(kind: Made, seed: int, codec: int) -> None:
    made = kind(random.Random(seed))
    first = made[100].offset if codec == NONE else 0
    for magic in (0, 1):
        found, _ = down(bytes(records.encode(made, Template(codec=codec))), magic, first)
        expected = [r for r in made if r.offset >= first]
        assert [(m.offset, m.key, m.value) for m in found] == [(r.offset, r.key, r.value) for r in expected]
        assert [m.timestamp for m in found] == [r.timestamp if magic else -1 for r in expected]


def test_lengths_that_are_known_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "KNOWN_MAX", 20)
    monkeypatch.setattr(runs, "_FAMILIES", runs._Families())
    made = of_all_lengths(random.Random(1))
    found, _ = down(bytes(records.encode(made, Template())), 1)
    assert [m.value for m in found] == [r.value for r in made]
    assert sum(1 + len(family.known) for family in runs._FAMILIES.all.values()) <= 20


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("seed", in_turn(seeds(20, quick=4)))
def test_runs_of_records_that_are_alike(seed: int, codec: int) -> None:
    made = in_runs(random.Random(seed))
    for magic in (0, 1):
        found, _ = down(bytes(records.encode(made, Template(codec=codec))), magic)
        assert [(m.offset, m.key, m.value) for m in found] == [(r.offset, r.key, r.value) for r in made]
        assert [m.timestamp for m in found] == [r.timestamp if magic else -1 for r in made]


def test_lengths_that_are_divided_in_another_way_are_learned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_FAMILIES", runs._Families())
    with_header = [Record(None, b"v" * 30, T, n, (("h", b"v"),)) for n in range(20)]
    without = [Record(None, b"v" * 34, T, n) for n in range(20)]
    written: list[int] = []

    def noted(*arguments: object) -> runs.Run:
        run = convert(*arguments)  # type: ignore[arg-type]
        written.append(run.number)
        return run

    convert = runs.convert
    monkeypatch.setattr(runs, "convert", noted)
    for made in (with_header, without, without):
        found, _ = down(bytes(records.encode(made, Template())), 1)
        assert [m.value for m in found] == [r.value for r in made]
    first, *second, third = written
    assert (first, third) == (20, 20)
    assert max(second) < 20


def none_known(out: list[bytes], data: bytes, position: int, number_max: int, target: runs.Target) -> runs.Run:
    return runs.Run(0, position, 0, -1)


@pytest.mark.long
@pytest.mark.parametrize("seed", in_turn(seeds(40, quick=4)))
@pytest.mark.parametrize("made", [in_runs, of_all_lengths, with_all_keys])
def test_damaged_runs_get_what_each_record_gets(made: Made, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    whole = bytes(records.encode(made(chance), Template()))
    damaged = []
    for _ in range(25):
        buf = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3))):
            buf[chance.randrange(records.HEADER_SIZE, len(buf))] = chance.choice((0, 1, 2, 127, 128, 255))
        damaged.append(bytes(buf))

    def outcomes() -> list[object]:
        found: list[object] = []
        for buf in damaged:
            try:
                found.append(converted(buf, 1, 3, 1 << 30))
            except MalformedMessage as error:
                found.append(str(error))
        return found

    fast = outcomes()
    monkeypatch.setattr(runs, "convert", none_known)
    assert fast == outcomes()


def test_timestamps_beyond_their_range_are_the_same_in_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = bytearray(records.encode([Record(b"k", b"v", T + 9 * offset, offset) for offset in range(50)]))
    struct.pack_into(">q", stored, 27, 2**63 - 100)
    fast = down(bytes(stored), 1)
    assert fast[0][-1].timestamp == 9 * 49 - 100 - 2**63
    monkeypatch.setattr(runs, "convert", none_known)
    assert fast == down(bytes(stored), 1)


def of_an_old_producer(chance: random.Random) -> list[Message]:
    found, time, magic = [], T, chance.choice((0, 1))
    for offset in range(chance.choice((1, 40))):
        size = chance.choice((-1, 0, 9, 40, 100, 3000) if chance.random() < 0.3 else (chance.randrange(200),))
        key_size = chance.choice((-1, -1, 0, 5, 70))
        key, value = (None if n < 0 else chance.randbytes(n) for n in (key_size, size))
        found.append(Message(offset, key, value, magic, time if magic else -1))
        time += chance.choice((0, 0, 0, 1, 300, -1))
        magic = magic if chance.random() < 0.98 else 1 - magic
    return found


def righted(damaged: bytearray) -> bytes:
    """Returns messages with the checksums of what is in them."""
    for entry in legacy.entries(bytes(damaged)):
        crc = zlib.crc32(damaged[entry.position + 16 : entry.position + entry.size])
        struct.pack_into(">I", damaged, entry.position + 12, crc)
    return bytes(damaged)


def damaged_sets(chance: random.Random) -> list[bytes]:
    whole = legacy.encode(of_an_old_producer(chance))
    found = [whole, whole[: -chance.randrange(1, 30)]]
    for _ in range(25):
        buf = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3))):
            at = chance.choice([e.position for e in legacy.entries(whole)]) + chance.randrange(8, 40)
            if at < len(buf):
                buf[at] = chance.choice((0, 1, 2, 127, 128, 255))
        found += [bytes(buf), righted(buf)]
    return found


@pytest.mark.parametrize("seed", in_turn(seeds(40, quick=4)))
def test_messages_become_records_as_each_does_by_itself(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sets = damaged_sets(random.Random(seed))

    def outcomes() -> list[object]:
        found: list[object] = []
        for buf in sets:
            try:
                found.append(bytes(all_at_once(newer(buf, 2900, READING))))
            except ApiError as error:
                found.append(error.code)
        return found

    fast = outcomes()
    monkeypatch.setattr(conversion, "put_plain", lambda *_: None)
    assert fast == outcomes()


def test_messages_that_are_not_compressed_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    buf = legacy.encode([Message(n, b"k", b"v" * n, 1, T + n) for n in range(100)])
    monkeypatch.setattr(legacy, "contents", None)
    found = bytes(all_at_once(newer(buf, 1 << 20, READING)))
    (at,) = records.batches(found)
    assert [(r.key, r.value, r.timestamp) for r in records.decode(found, at)] == [
        (b"k", b"v" * n, T + n) for n in range(100)
    ]


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_message_that_is_too_short_after_others_is_refused(cut: int) -> None:
    whole = bytearray(legacy.encode([Message(n, None, b"", 1, T) for n in range(2)]))
    struct.pack_into(">i", whole, len(whole) // 2 + 8, 22 - cut)
    buf = righted(whole[:-cut])
    with pytest.raises(ApiError) as refused:
        all_at_once(newer(buf, 1 << 20, READING))
    assert refused.value.code == Errors.CORRUPT_MESSAGE
