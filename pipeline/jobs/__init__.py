"""The jobs on a data directory: each is a set of functions from DataFrames to DataFrames,
and a `report` that combines them.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import RLock
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from .. import register
from ..directory import Directory
from ..threads import at_once


class Plot(NamedTuple):
    """A plot of a table: `kind` is line, bar, scatter or timeline (with the ends `x` and `until`)."""

    title: str
    table: str
    kind: str
    x: str
    y: str
    color: str | None = None
    until: str | None = None


@dataclass(frozen=True)
class Report:
    """Tables by name, the name of the table whose rows are findings, the plots, and cached frames of its own."""

    tables: dict[str, DataFrame]
    findings: str | None = None
    plots: tuple[Plot, ...] = ()
    kept: tuple[DataFrame, ...] = ()


_Key = tuple[str, tuple[tuple[str, str], ...]]  # a view and its options


@dataclass
class Input:
    """A data directory, the start of the time range and the current time, both in ms since 1970. Tables are read once
    and cached, also if several threads ask for them.

    `settings`: the broker's properties, which are not in its directory; jobs use only the ones that they name.
    `near`: what is little is read in this process, and the sources are registered in the session when something is not.
    """

    spark: SparkSession
    path: str
    since_ms: int | None = None
    now_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    settings: Mapping[str, str] = field(default_factory=dict)
    near: bool = False
    _registered: bool = False
    _lock: RLock = field(default_factory=RLock)
    _tables: dict[_Key, DataFrame] = field(default_factory=dict)
    _little: dict[_Key, pa.Table | None] = field(default_factory=dict)
    _kept: list[DataFrame] = field(default_factory=list)

    def table(self, view: str, **options: str) -> DataFrame:
        """Returns a view of the directory with options of `kafka-log`, read once."""
        key = view, tuple(sorted(options.items()))
        with self._lock:
            if key not in self._tables:
                little = self.little(view, **options)
                self._tables[key] = self.kept(self._far(view, **options)) if little is None else self.here(little)
            return self._tables[key]

    def kept(self, frame: DataFrame) -> DataFrame:
        """Returns a frame that is computed once, and cached until `close`."""
        self._kept.append(frame.cache())
        return self._kept[-1]

    def read(self, view: str, **options: str) -> DataFrame:
        """Like `table`, but what is not little is read again each time."""
        return self._far(view, **options) if self.little(view, **options) is None else self.table(view, **options)

    def little(self, view: str, **options: str) -> pa.Table | None:
        """Returns a view of the directory if it is `near`, and little; read once."""
        if not self.near:
            return None
        from .. import near

        key = view, tuple(sorted(options.items()))
        with self._lock:
            if key not in self._little:
                self._little[key] = near.table({"path": self.path, "view": view, **options})
            return self._little[key]

    def computed(self, frame: DataFrame, *views: tuple[str, Mapping[str, str]]) -> DataFrame:
        """Like `kept`, for a frame that is made of `views`, each with its options. If these are little, it is computed
        now, so that what is made of its rows has a short plan.
        """
        if all(self.little(view, **options) is not None for view, options in views):
            return self.here(frame.toArrow())
        return self.kept(frame)

    def here(self, table: pa.Table) -> DataFrame:
        """Returns the rows of a table, in one partition: nothing that is made of them alone needs to be shuffled."""
        return self.spark.createDataFrame(table).coalesce(1)

    def _far(self, view: str, **options: str) -> DataFrame:
        with self._lock:
            if self.near and not self._registered:
                register(self.spark)
                self._registered = True
        return self.spark.read.format("kafka-log").options(path=self.path, view=view, **options).load()

    def has(self, topic: str) -> bool:
        return any(name == topic for name, _ in Directory(self.path).partitions)

    def internal(self, topic: str, committed: bool = True) -> DataFrame | None:
        """Returns the records of an internal topic; None if the directory does not contain it."""
        if not self.has(topic):
            return None
        return self.table("internal", **self.of_internal(topic, committed))

    @staticmethod
    def of_internal(topic: str, committed: bool = True) -> dict[str, str]:
        """Returns the options of `internal`."""
        isolation = "read_committed" if committed else "read_uncommitted"
        return {"topic": topic, "isolation": isolation, "mode": "dropmalformed"}

    def setting_ms(self, name: str, otherwise: int) -> int:
        """Returns a number of milliseconds from the broker's properties. Raises ValueError if it is not a number."""
        text = self.settings.get(name, str(otherwise)).strip()
        if not text.isdecimal():
            raise ValueError(f"{name} must be a number of milliseconds, found {text!r}")
        return int(text)

    def lately(self, frame: DataFrame, column: str) -> DataFrame:
        """Returns the rows whose time is null or not before `since_ms`."""
        if self.since_ms is None:
            return frame
        return frame.where(f.col(column).isNull() | (f.unix_millis(column) >= self.since_ms))

    def close(self) -> None:
        for frame in self._kept:
            frame.unpersist()
        self._kept.clear()
        self._tables.clear()
        self._little.clear()


def topic_ids(partitions: DataFrame) -> DataFrame:
    """Returns `topicId`, as Kafka writes it, and `topic`, from the view `partitions`."""
    return partitions.where("topicId IS NOT NULL").select("topicId", "topic").distinct()


def uuid_text(column: str) -> Column:
    """Returns the uuid that a column contains as hex, in the form that Kafka writes."""
    return f.rtrim(f.translate(f.base64(f.unhex(column)), "+/", "-_"), f.lit("="))


def configurations(metadata: DataFrame) -> DataFrame:
    """Returns the configuration changes in `__cluster_metadata`: offset, resource_type, resource_name, name, value."""
    rows = metadata.where("type = 'ConfigRecord'").select("offset", f.from_json("value", _CONFIGURATION).alias("v"))
    return rows.select("offset", "v.*")


_CONFIGURATION = "resource_type int, resource_name string, name string, value string"


ALL = ("audit", "lag", "rebalances", "shares", "transactions")


def report_of(name: str) -> Callable[[Input], Report]:
    """Returns the function `report` of a job; for `all` one that combines the jobs in ALL."""
    if name == "all":
        return lambda source: together(source, ALL)
    made: Callable[[Input], Report] = importlib.import_module(f".{name}", __name__).report
    return made


class NotThere(ValueError):
    """The directory does not contain what the job analyses."""


def together(source: Input, names: tuple[str, ...]) -> Report:
    """Combines the reports of several jobs. The findings are those of the first job that looks for any.
    Jobs whose topics the directory does not contain are left out.
    """
    made = at_once([partial(_report_or_none, source, name) for name in names])
    tables: dict[str, DataFrame] = {}
    plots: list[Plot] = []
    findings = None
    for name, one in zip(names, made, strict=True):
        if one is None:
            continue
        tables |= {f"{name}: {table}": frame for table, frame in one.tables.items()}
        plots += [plot._replace(table=f"{name}: {plot.table}") for plot in one.plots]
        if findings is None and one.findings is not None:
            findings = f"{name}: {one.findings}"
    return Report(tables, findings, tuple(plots))


def _report_or_none(source: Input, name: str) -> Report | None:
    try:
        return report_of(name)(source)
    except NotThere:
        return None
