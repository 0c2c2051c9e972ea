"""What can be asked of a data directory: each job is functions from DataFrames to DataFrames, and a `report` that joins them."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from ..directory import Directory


class Plot(NamedTuple):
    """A picture of a table: `kind` is line, bar, scatter or timeline (`x` and `until` are its ends)."""

    title: str
    table: str
    kind: str
    x: str
    y: str
    color: str | None = None
    until: str | None = None


@dataclass(frozen=True)
class Report:
    """Tables by name, the name of the one whose rows are findings, and what to draw."""

    tables: dict[str, DataFrame]
    findings: str | None = None
    plots: tuple[Plot, ...] = ()


@dataclass
class Input:
    """A data directory, from when on it is looked at, and when that is: ms since the epoch. Tables are read once and kept.

    `settings`: the broker's properties, which are not in its directory; only those that jobs name matter.
    """

    spark: SparkSession
    path: str
    since_ms: int | None = None
    now_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    settings: Mapping[str, str] = field(default_factory=dict)
    _tables: dict[Any, DataFrame] = field(default_factory=dict)
    _kept: list[DataFrame] = field(default_factory=list)

    def table(self, view: str, **options: str) -> DataFrame:
        """A view of the directory with options of `kafka-log`, read once."""
        key = view, tuple(sorted(options.items()))
        if key not in self._tables:
            self._tables[key] = self.kept(self.read(view, **options))
        return self._tables[key]

    def kept(self, frame: DataFrame) -> DataFrame:
        """A frame that is computed once, and kept until `close`."""
        self._kept.append(frame.cache())
        return self._kept[-1]

    def read(self, view: str, **options: str) -> DataFrame:
        """As `table`, read anew each time."""
        return self.spark.read.format("kafka-log").options(path=self.path, view=view, **options).load()

    def has(self, topic: str) -> bool:
        return any(name == topic for name, _ in Directory(self.path).partitions)

    def internal(self, topic: str, committed: bool = True) -> DataFrame | None:
        """The records of one of Kafka's own topics; None where the directory has it not."""
        if not self.has(topic):
            return None
        return self.table("internal", topic=topic, isolation="read_committed" if committed else "read_uncommitted", mode="dropmalformed")

    def setting_ms(self, name: str, otherwise: int) -> int:
        """A number of milliseconds among the broker's properties. ValueError where it is none."""
        text = self.settings.get(name, str(otherwise)).strip()
        if not text.isdecimal():
            raise ValueError(f"{name} is a number of milliseconds, not {text!r}")
        return int(text)

    def lately(self, frame: DataFrame, column: str) -> DataFrame:
        """The rows whose time, or its absence, is not before `since_ms`."""
        if self.since_ms is None:
            return frame
        return frame.where(f.col(column).isNull() | (f.unix_millis(column) >= self.since_ms))

    def close(self) -> None:
        for frame in self._kept:
            frame.unpersist()
        self._kept.clear()
        self._tables.clear()


def topic_ids(partitions: DataFrame) -> DataFrame:
    """`topicId`, as Kafka writes it, and `topic`, of the view `partitions`."""
    return partitions.where("topicId IS NOT NULL").select("topicId", "topic").distinct()


def uuid_text(column: str) -> Column:
    """A uuid that a column has as hex, as Kafka writes it."""
    return f.rtrim(f.translate(f.base64(f.unhex(column)), "+/", "-_"), f.lit("="))


def configurations(metadata: DataFrame) -> DataFrame:
    """What was configured, step by step, by the records of `__cluster_metadata`: offset, resource_type, resource_name, name, value."""
    rows = metadata.where("type = 'ConfigRecord'").select("offset", f.from_json("value", _CONFIGURATION).alias("v"))
    return rows.select("offset", "v.*")


_CONFIGURATION = "resource_type int, resource_name string, name string, value string"


ALL = ("audit", "lag", "rebalances", "shares", "transactions")


def report_of(name: str) -> Callable[[Input], Report]:
    """The `report` of a job; of ALL together for `all`."""
    if name == "all":
        return lambda source: together(source, ALL)
    made: Callable[[Input], Report] = importlib.import_module(f".{name}", __name__).report
    return made


class NotThere(ValueError):
    """A directory has not what a job is about."""


def together(source: Input, names: tuple[str, ...]) -> Report:
    """Several jobs as one; of those that find something, the first one's findings count. What the directory has nothing of is left out."""
    tables: dict[str, DataFrame] = {}
    plots: list[Plot] = []
    findings = None
    for name in names:
        try:
            one = report_of(name)(source)
        except NotThere:
            continue
        tables |= {f"{name}: {table}": frame for table, frame in one.tables.items()}
        plots += [plot._replace(table=f"{name}: {plot.table}") for plot in one.plots]
        if findings is None and one.findings is not None:
            findings = f"{name}: {one.findings}"
    return Report(tables, findings, tuple(plots))
