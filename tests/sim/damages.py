"""Damage to the files of a data directory."""

from __future__ import annotations

import random
from collections.abc import Callable

from ottla.protocol import records
from ottla.storage import checkpoints

from ..support.memory_files import MemFiles

METADATA = "__cluster_metadata-0"


# damage


def flip(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 3) if data else 0):
        changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def zero(data: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(data))
    size = chance.randint(0, len(data) - at)
    return data[:at] + bytes(size) + data[at + size :]


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randint(0, len(data))]


def extend(data: bytes, chance: random.Random) -> bytes:
    return data + chance.choice(
        (chance.randbytes(chance.randint(1, 200)), bytes(chance.randint(1, 5000)), data[-chance.randint(1, 200) :])
    )


def nonsense(data: bytes, chance: random.Random) -> bytes:
    return chance.choice((b"", b"hello\n", b"\xff\xfe\x00", chance.randbytes(chance.randint(1, 300)), bytes(len(data))))


CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (flip, flip, flip, zero, cut, extend, nonsense)


def kind_of(path: str) -> str:
    name = path.rpartition("/")[2]
    if name[:20].isdigit() and name.endswith((".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")):
        place = "metadata" if METADATA in path else "partition"
        return f"{place} {name.rpartition('.')[2]}"
    return name


def damage(files: MemFiles, clean: bool, chance: random.Random) -> str:
    """Damages one file; returns its path."""
    by_kind: dict[str, list[str]] = {}
    for path in files.paths():
        if not path.endswith(".lock") and "-delete" not in path:
            by_kind.setdefault(kind_of(path), []).append(path)
    while True:
        path = chance.choice(by_kind[chance.choice(sorted(by_kind))])
        whole = files.read(path)
        fate = chance.random()
        if fate < 0.1:
            gone = removed_with(files, path, chance)
            if not clean and leaves_no_trace(files, path, gone):
                continue
            for one in gone:
                files.remove(one)
        elif fate < 0.15:
            files.replace(f"{path.rpartition('/')[0]}/{chance.choice(('x.log', '7.log', 'x.snapshot', 'copy'))}", whole)
        elif fate < 0.2:
            other = chance.choice(by_kind[kind_of(path)])
            if other.rpartition("/")[0] != path.rpartition("/")[0] or not path.endswith(".log"):
                continue  # a well-formed file in another's place
            files.replace(path, files.read(other))
            files.replace(other, whole)
        else:
            changed = chance.choice(CHANGES)(whole, chance)
            if not is_seen(path, whole, changed, clean):
                continue
            files.replace(path, changed)
        return path


def is_seen(path: str, whole: bytes, changed: bytes, clean: bool) -> bool:
    """Whether a start, or who reads, can tell that the file is another one."""
    if changed == whole:
        return False
    kind = kind_of(path)
    if kind.endswith(("index", "ottla.json", "meta.properties", "quorum-state")):
        return not kind.endswith("index") or len(changed) < len(whole)
    if kind.endswith("-checkpoint"):
        try:
            if kind == "leader-epoch-checkpoint":
                checkpoints.decode_epochs(changed)
            else:
                checkpoints.decode_offsets(changed)
        except checkpoints.CorruptCheckpoint:
            return True
        return changed == b"" and kind == "leader-epoch-checkpoint"
    if kind == "partition log":
        ends = {0, *(at.position + at.header.size for at in records.batches(whole))}
        is_shorter = whole.startswith(changed) and len(changed) in ends
        return bodies(whole) != bodies(changed) and (clean or not is_shorter)
    return True


def removed_with(files: MemFiles, path: str, chance: random.Random) -> list[str]:
    """The files that are removed with a file: mostly the indexes of a segment too."""
    if kind_of(path) != "partition log" or chance.random() < 0.2:
        return [path]
    return [one for one in files.paths() if one == path or (one.endswith("index") and one.startswith(path[:-3]))]


def leaves_no_trace(files: MemFiles, path: str, gone: list[str]) -> bool:
    """Whether the last of several segments is removed, with its indexes: nothing tells that it has reached the disk."""
    directory, _, name = path.rpartition("/")
    others = [one for one in files.names(directory) if f"{directory}/{one}" not in gone]
    logs = [one for one in others if one.endswith(".log")]
    return (
        kind_of(path) == "partition log"
        and bool(logs)
        and max(logs) < name
        and not any(one.endswith("index") and one[:20] == name[:20] for one in others)
    )


def bodies(data: bytes) -> list[bytes]:
    """The batches without the two fields that no CRC covers."""
    return [
        data[at.position + 8 : at.position + 12] + data[at.position + 16 : at.position + at.header.size]
        for at in records.batches(data)
    ]
