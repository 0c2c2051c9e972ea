"""Small text files with Kafka's formats: offset checkpoints, leader epochs, `partition.metadata`, `meta.properties`."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable, Mapping
from itertools import pairwise

from .files import Files

logger = logging.getLogger("ottla.org.apache.kafka.storage.internals.checkpoint.CheckpointFileWithFailureHandler")
TopicPartition = tuple[str, int]
_ID_AT = len(b"version: 0\ntopic_id: ")


class CorruptCheckpoint(ValueError):
    """A checkpoint file with an invalid format; its readers continue without it."""


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Format: version 0, the number of entries, one entry per line."""
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())]
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    """Raises CorruptCheckpoint if the file is invalid."""
    return {(topic, int(partition)): int(offset) for topic, partition, offset in _entries(data, 3)}


def encode_epochs(epochs: Iterable[tuple[int, int]]) -> bytes:
    lines = [f"{epoch} {start}" for epoch, start in epochs]
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()


def decode_epochs(data: bytes) -> list[tuple[int, int]]:
    """Returns pairs of epoch and start offset. Raises CorruptCheckpoint if the file is invalid, or if epochs or offsets
    do not ascend.
    """
    entries = [(int(epoch), int(start)) for epoch, start in _entries(data, 2)]
    if any(a[0] >= b[0] or a[1] > b[1] for a, b in pairwise(entries)):
        raise CorruptCheckpoint(f"epochs or offsets do not ascend: {entries[:5]}")
    return entries


def _entries(data: bytes, width: int) -> list[list[str]]:
    """Returns the words of each line; all words but the first of three are non-negative numbers."""
    if not data:
        return []
    try:
        lines = data.decode().split("\n")
        version, count = int(lines[0]), int(lines[1])
        entries = [line.split(" ") for line in lines[2 : 2 + count]]
        numbers = [word for words in entries for word in words[width - 2 :]]
        if version != 0 or len(entries) != count or any(len(words) != width for words in entries):
            raise ValueError
        if not all(word.isdecimal() for word in numbers) or any(lines[2 + count :]):
            raise ValueError
    except (ValueError, IndexError):
        raise CorruptCheckpoint(f"not a checkpoint of version 0: {data[:60]!r}") from None
    return entries


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """Returns the offsets of a checkpoint; none if the file is missing, or is damaged, which is logged: its readers can
    do without.
    """
    try:
        return decode_offsets(files.read(path))
    except FileNotFoundError:
        return {}
    except CorruptCheckpoint as error:
        logger.warning("%s: %s; the offsets are taken from the logs", path, error)
        return {}


def uuid_to_text(value: bytes) -> str:
    """Encodes a uuid as Kafka does: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def uuid_from_text(text: str) -> bytes:
    """Returns the 16 bytes of a uuid. Raises ValueError if the text is not a uuid."""
    value = base64.urlsafe_b64decode(text + "==")
    if len(value) != 16:
        raise ValueError(f"not a uuid: {text}")
    return value


def encode_partition_metadata(topic_id: bytes) -> bytes:
    return f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> bytes:
    """Returns the topic id. Raises CorruptCheckpoint if the file has none."""
    try:
        fields = dict(line.split(": ", 1) for line in data.decode().split("\n") if ": " in line)
        if fields["version"] != "0":
            raise ValueError
        return uuid_from_text(fields["topic_id"])
    except (KeyError, ValueError):
        raise CorruptCheckpoint(f"not a partition.metadata of version 0: {data[:60]!r}") from None


def is_torn_partition_metadata(data: bytes) -> bool:
    """Whether the file is a prefix of a valid file, or zeros: it was written,
    but not synced when the machine stopped.
    """
    begun, whole = data.rstrip(b"\0"), encode_partition_metadata(bytes(16))
    return len(begun) < len(whole) and begun[:_ID_AT] == whole[: min(len(begun), _ID_AT)]


def encode_properties(values: Mapping[str, str]) -> bytes:
    return ("#\n" + "".join(f"{key}={value}\n" for key, value in values.items())).encode()


def decode_properties(data: bytes) -> dict[str, str]:
    """Decodes the subset of Java's properties format that `meta.properties` uses. Raises CorruptCheckpoint if the file
    is not text.
    """
    try:
        lines = [line.strip() for line in data.decode().splitlines()]
    except UnicodeDecodeError:
        raise CorruptCheckpoint(f"not text: {data[:60]!r}") from None
    pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
    return {key.strip(): value.strip().replace("\\:", ":") for key, _, value in pairs}
