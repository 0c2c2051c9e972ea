"""Small text files with Kafka's formats: offset checkpoints, leader epochs, `partition.metadata`, `meta.properties`."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping

from .files import Files

TopicPartition = tuple[str, int]


class CorruptCheckpoint(ValueError):
    """A checkpoint that is not of its format; who meets one goes on without it."""


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Version 0, the number of entries, an entry a line."""
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())]
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    found = {}
    for line in _entries(data):
        topic, partition, offset = line.split(" ")
        found[topic, int(partition)] = int(offset)
    return found


def encode_epochs(epochs: Iterable[tuple[int, int]]) -> bytes:
    lines = [f"{epoch} {start}" for epoch, start in epochs]
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()


def decode_epochs(data: bytes) -> list[tuple[int, int]]:
    return [(int(epoch), int(start)) for epoch, start in (line.split(" ") for line in _entries(data))]


def _entries(data: bytes) -> list[str]:
    if not data:
        return []
    try:
        lines = data.decode().split("\n")
        version, count = int(lines[0]), int(lines[1])
        entries = lines[2 : 2 + count]
        if version != 0 or len(entries) != count or not all(len(e.split(" ")) in (2, 3) for e in entries):
            raise ValueError
        [int(part) for e in entries for part in e.split(" ")[-1:]]
    except (ValueError, IndexError):
        raise CorruptCheckpoint(data[:80]) from None
    return entries


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """The offsets of a checkpoint; none where it is missing or damaged, as its readers can do without."""
    try:
        return decode_offsets(files.read(path))
    except (FileNotFoundError, CorruptCheckpoint, ValueError):
        return {}


def uuid_to_text(value: bytes) -> str:
    """A uuid as Kafka writes it: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def uuid_from_text(text: str) -> bytes:
    """The 16 bytes of a uuid; ValueError when the text is none."""
    value = base64.urlsafe_b64decode(text + "==")
    if len(value) != 16:
        raise ValueError(f"not a uuid: {text}")
    return value


def encode_partition_metadata(topic_id: bytes) -> bytes:
    return f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> bytes:
    fields = dict(line.split(": ", 1) for line in data.decode().split("\n") if ": " in line)
    try:
        if fields["version"] != "0":
            raise ValueError
        return uuid_from_text(fields["topic_id"])
    except (KeyError, ValueError):
        raise CorruptCheckpoint(data[:80]) from None


def encode_properties(values: Mapping[str, str]) -> bytes:
    return ("#\n" + "".join(f"{key}={value}\n" for key, value in values.items())).encode()


def decode_properties(data: bytes) -> dict[str, str]:
    """The simple subset of Java's properties that `meta.properties` is written in."""
    lines = (line.strip() for line in data.decode().splitlines())
    pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
    return {key.strip(): value.strip().replace("\\:", ":") for key, _, value in pairs}
