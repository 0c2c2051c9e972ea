"""The options of `kafka-log`, by the names of Spark's Kafka connector where it has them.

path                 a data directory, or a URL that fsspec knows
topic, partition     names and numbers with commas; all otherwise
view                 records; batches; index: what the indexes say; partitions: their ends and checkpoints; files: what lies in the directory;
                     internal: the records of Kafka's own topics, as JSON
isolation            read_uncommitted; or read_committed: neither markers, nor what was aborted, nor what is beyond the last stable offset
startingOffsets      earliest, latest (streams only), a number, or {"topic": {"0": 23}} (-2 earliest, -1 latest)
endingOffsets        latest, a number, or JSON as above; behind the last record wanted; not of streams
startingTimestamp    in ms; the first one wanted. Not of streams
endingTimestamp      in ms; behind the last one wanted. Not of streams
maxOffsetsPerTrigger of streams
verifyCrc            whether a wrong CRC is an error
verifyRecords        none, compressed or all: which batches the view `batches` opens, to tell in `error` what is wrong with them
verifyIndex          whether the view `index` compares its entries with the log, to tell in `error` what the log has not
mode                 failfast, or dropmalformed: what cannot be read is left out
minPartitions        about how many tasks read; as many as this machine has cores otherwise
pushdown             true: filters on topic, partition, offset and timestamp choose files and batches. Spark up to 4.3.0 keeps the filters of
                     one query for the next one over the same DataFrame, whose rows then are wrong: for a DataFrame that is used once
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from ..coordinator.described import INTERNAL_TOPICS
from . import columns, reading
from .directory import FIRST, LAST

VIEWS = {
    "records": columns.RECORDS,
    "batches": columns.BATCHES,
    "index": columns.INDEX,
    "partitions": columns.PARTITIONS,
    "files": columns.FILES,
    "internal": columns.INTERNAL,
}
STREAMED = ("records", "batches", "internal")
EARLIEST, LATEST = -2, -1
ISOLATIONS = ("read_uncommitted", "read_committed")
MODES = ("failfast", "dropmalformed")


@dataclass(frozen=True)
class Source:
    """The options, understood. ValueError for one that is not."""

    path: str
    topics: tuple[str, ...] | None
    view: str
    committed: bool
    reading: reading.Options
    tasks: int
    numbers: tuple[int, ...] | None
    starting_offsets: Any
    ending_offsets: Any
    timestamps: tuple[int, int]
    offsets_per_trigger: int
    pushdown: bool

    @classmethod
    def of(cls, options: Any) -> Source:
        if not options.get("path"):
            raise ValueError("kafka-log needs the option `path`: a broker's data directory")
        topics = tuple(name.strip() for name in options["topic"].split(",")) if options.get("topic") else None
        view = one_of(options, "view", tuple(VIEWS))
        if view == "internal" and not set(topics or ()) <= set(INTERNAL_TOPICS):
            raise ValueError(f"kafka-log: the view internal is of {', '.join(INTERNAL_TOPICS)}")
        return cls(
            options["path"],
            topics,
            view,
            one_of(options, "isolation", ISOLATIONS) == "read_committed",
            reading.Options(
                verify_crc=one_of(options, "verifyCrc", ("false", "true")) == "true",
                skip_broken=one_of(options, "mode", MODES) == "dropmalformed",
                opens=one_of(options, "verifyRecords", reading.OPENS),
                against_log=one_of(options, "verifyIndex", ("false", "true")) == "true",
            ),
            number_of(options, "minPartitions") or os.cpu_count() or 1,
            tuple(_whole("partition", one.strip()) for one in options["partition"].split(",")) if options.get("partition") else None,
            offsets_of(options, "startingOffsets", "earliest"),
            offsets_of(options, "endingOffsets", "latest"),
            (number_of(options, "startingTimestamp", FIRST), number_of(options, "endingTimestamp", LAST + 1) - 1),
            number_of(options, "maxOffsetsPerTrigger"),
            one_of(options, "pushdown", ("false", "true")) == "true",
        )

    def starting_offset(self, topic: str, partition: int) -> int:
        """The first offset that is wanted of a partition, EARLIEST or LATEST."""
        return offset_of(self.starting_offsets, topic, partition, EARLIEST)

    def ending_offset(self, topic: str, partition: int) -> int:
        """The offset behind the last one wanted, EARLIEST or LATEST."""
        return offset_of(self.ending_offsets, topic, partition, LATEST)


def offset_of(offsets: Any, topic: str, partition: int, default: int) -> int:
    """What an option with offsets says of a partition."""
    return offsets if isinstance(offsets, int) else int(offsets.get(topic, {}).get(str(partition), default))


def one_of(options: Any, name: str, allowed: tuple[str, ...]) -> str:
    """One of the values that are allowed, of which the first is the default. ValueError."""
    value: str = options.get(name, allowed[0]).lower()
    if value not in allowed:
        raise ValueError(f"{name} is one of {', '.join(allowed)}, not {value!r}")
    return value


def _whole(name: str, value: str) -> int:
    if not value.isdecimal():
        raise ValueError(f"{name} is a number, not {value!r}")
    return int(value)


def number_of(options: Any, name: str, default: int = 0) -> int:
    """A whole number. ValueError."""
    return _whole(name, options[name]) if options.get(name) else default


def offsets_of(options: Any, name: str, default: str) -> Any:
    """A number for all partitions, or a dict of topics with dicts of partitions."""
    value = options.get(name) or default
    named = {"earliest": EARLIEST, "latest": LATEST}.get(value.lower())
    if named is not None:
        return named
    if not value.startswith("{"):
        return _whole(name, value)
    try:
        found = json.loads(value)
        return {str(topic): {str(int(number)): int(offset) for number, offset in of.items()} for topic, of in found.items()}
    except (ValueError, AttributeError, TypeError):
        raise ValueError(f'{name} is a number or like {{"topic": {{"0": 23}}}}, not {value!r}') from None
