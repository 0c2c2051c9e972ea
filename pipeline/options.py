"""The options of `kafka-log`, with the names of Spark's Kafka connector if it has them.

path                 a data directory, or a URL that fsspec supports
topic, partition     comma-separated names and numbers; default: all
view                 records; batches; index: the entries of indexes; partitions: offsets and checkpoints;
                     files: the content of the directory; internal: the records of internal topics, as JSON;
                     evidence: what the job `audit` needs, packed
isolation            read_uncommitted; or read_committed: without markers, aborted records, and records above
                     the last stable offset
startingOffsets      earliest, latest (streams only), a number, or {"topic": {"0": 23}} (-2 earliest, -1 latest)
endingOffsets        latest, a number, or JSON as above; exclusive; not for streams
startingTimestamp    in ms; inclusive; not for streams
endingTimestamp      in ms; exclusive; not for streams
maxOffsetsPerTrigger for streams
failOnDataLoss       for streams; whether it is an error if a partition was deleted, or made again, or ends before what
                     was read of it, or if retention has deleted what comes next; if not, the stream goes on without
                     it, from its beginning, or with what there is
verifyCrc            whether a wrong CRC is an error
verifyRecords        none, compressed or all: which batches the view `batches` opens, to report errors in `error`
verifyIndex          whether the view `index` compares its entries with the log, to report errors in `error`
mode                 failfast, or dropmalformed: leave out what cannot be read
minPartitions        the approximate number of tasks; default: the number of cores, or fewer of at least 1 MiB each;
                     a task reads at most about 1 GiB
pushdown             true: filters on topic, partition, offset and timestamp choose files and batches. Spark up to
                     4.3.0 keeps the filters of a query for the next query over the same DataFrame, whose rows are
                     then wrong: use it only for a DataFrame that is used once
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ..coordinator.described import INTERNAL_TOPICS
from . import reading
from .directory import FIRST, LAST
from .views import VIEWS

STREAMED = ("records", "batches", "internal")
EARLIEST, LATEST = -2, -1
ISOLATIONS = ("read_uncommitted", "read_committed")
MODES = ("failfast", "dropmalformed")

Offsets = int | dict[str, dict[str, int]]  # one for all partitions, or by topic and partition


@dataclass(frozen=True)
class Source:
    """The parsed options. Raises ValueError for an invalid one."""

    path: str
    topics: tuple[str, ...] | None
    view: str
    committed: bool
    reading: reading.Options
    tasks: int  # 0: as many as the size of the logs needs
    numbers: tuple[int, ...] | None
    starting_offsets: Offsets
    ending_offsets: Offsets
    timestamps: tuple[int, int]
    offsets_per_trigger: int
    fail_on_data_loss: bool
    pushdown: bool

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Source:
        if not options.get("path"):
            raise ValueError("kafka-log needs the option `path`: a broker's data directory")
        topics = tuple(name.strip() for name in options["topic"].split(",")) if options.get("topic") else None
        view = one_of(options, "view", tuple(VIEWS))
        if view == "internal" and not set(topics or ()) <= set(INTERNAL_TOPICS):
            raise ValueError(f"kafka-log: the view internal reads only {', '.join(INTERNAL_TOPICS)}")
        return cls(
            options["path"],
            topics,
            view,
            one_of(options, "isolation", ISOLATIONS) == "read_committed",
            reading.Options(
                verify_crc=is_set(options, "verifyCrc"),
                skip_broken=one_of(options, "mode", MODES) == "dropmalformed",
                opens=one_of(options, "verifyRecords", reading.OPENS),
                against_log=is_set(options, "verifyIndex"),
            ),
            number_of(options, "minPartitions"),
            tuple(_whole("partition", one.strip()) for one in options["partition"].split(","))
            if options.get("partition")
            else None,
            offsets_of(options, "startingOffsets", "earliest"),
            offsets_of(options, "endingOffsets", "latest"),
            (number_of(options, "startingTimestamp", FIRST), number_of(options, "endingTimestamp", LAST + 1) - 1),
            number_of(options, "maxOffsetsPerTrigger"),
            is_set(options, "failOnDataLoss", default=True),
            is_set(options, "pushdown"),
        )

    def starting_offset(self, topic: str, partition: int) -> int:
        """Returns the first wanted offset of a partition, EARLIEST or LATEST."""
        return offset_of(self.starting_offsets, topic, partition, EARLIEST)

    def ending_offset(self, topic: str, partition: int) -> int:
        """Returns the offset after the last wanted one, EARLIEST or LATEST."""
        return offset_of(self.ending_offsets, topic, partition, LATEST)


def offset_of(offsets: Offsets, topic: str, partition: int, default: int) -> int:
    """Returns the offset of a partition in an offsets option."""
    return offsets if isinstance(offsets, int) else offsets.get(topic, {}).get(str(partition), default)


def one_of(options: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    """Returns one of the allowed values, of which the first is the default. Raises ValueError."""
    value = options.get(name, allowed[0]).lower()
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, found {value!r}")
    return value


def is_set(options: Mapping[str, str], name: str, default: bool = False) -> bool:
    """Parses true or false. Raises ValueError."""
    return one_of(options, name, ("true", "false") if default else ("false", "true")) == "true"


def _whole(name: str, value: str) -> int:
    if not value.isdecimal():
        raise ValueError(f"{name} must be a number, found {value!r}")
    return int(value)


def number_of(options: Mapping[str, str], name: str, default: int = 0) -> int:
    """Parses a whole number. Raises ValueError."""
    return _whole(name, options[name]) if options.get(name) else default


def offsets_of(options: Mapping[str, str], name: str, default: str) -> Offsets:
    """Returns a number for all partitions, or a dict of topics with dicts of partitions."""
    value = options.get(name) or default
    named = {"earliest": EARLIEST, "latest": LATEST}.get(value.lower())
    if named is not None:
        return named
    if not value.startswith("{"):
        return _whole(name, value)
    try:
        found = json.loads(value)
        return {
            str(topic): {str(int(number)): int(offset) for number, offset in of.items()} for topic, of in found.items()
        }
    except (ValueError, AttributeError, TypeError):
        raise ValueError(f'{name} must be a number or JSON like {{"topic": {{"0": 23}}}}, found {value!r}') from None
