"""Which rules of the protocol clients kept in many traces, such as those of all CI runs: by client, version, rule and
day. Each client of each trace has the verdict that `ottla verdict` gives.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from .. import judging
from ..judging import Asked
from ..traces import Trace, dealt
from . import Plot, Report

BY: Final[dict[str, tuple[str, ...]]] = {
    "client": ("clientId",),
    "version": ("software", "softwareVersion"),
    "rule": ("rule", "examination", "severity"),
    "day": ("day",),
}
EACH: Final = tuple((name,) for name in BY)
TRACE: Final = (
    *("trace", "started", "broker", "clusterId", "nodeId", "files", "lines", "damagedLines", "droppedEvents"),
    *("unexaminedRequests", "refused"),
)
COUNTS: Final = ("passed", "failed", "warned", "notExercised")
EVERYTHING: Final = Asked()
MS_MAX: Final = 253_402_300_799_999  # the last of the year 9999


def judged(
    spark: SparkSession, traces: Sequence[Trace], asked: Asked = EVERYTHING, tasks: int | None = None
) -> DataFrame:
    """Returns the rows of `judging.SCHEMA`. `tasks`: how many run at a time, by default the number of cores."""
    bins = dealt(traces, tasks or os.cpu_count() or 1)
    numbers = spark.range(0, len(bins), 1, len(bins))
    return numbers.mapInArrow(partial(judging.judged, bins, asked), from_arrow_schema(judging.SCHEMA))


def traces(rows: DataFrame) -> DataFrame:
    """Returns a row per trace: what was read of it, and why it was refused, if it was."""
    heads = rows.where("rule IS NULL").withColumn("started", _time(f.col("startedMs")))
    each = [f.max(name).alias(name) for name in TRACE[1:]]  # the same in all shares of a trace, if it was read
    return heads.groupBy("trace").agg(*each).orderBy("started", "trace")


def verdicts(rows: DataFrame) -> DataFrame:
    """Returns a row per trace, client and rule, of the traces that were not refused. `day`: when the trace began."""
    of_trace = f.max("refused").over(Window.partitionBy("trace"))  # not a join, whose broadcast has five minutes
    alone, shared = rows.where("shares = 1"), rows.where("shares > 1")  # the window sorts its rows, and few are shared
    found = alone.unionByName(shared.withColumn("refused", of_trace).where("refused IS NULL")).where("rule IS NOT NULL")
    names = [name for name in rows.columns if name not in (*TRACE, "startedMs", "shares")]
    started = _time(f.col("startedMs"))
    return found.select("trace", started.alias("started"), f.to_date(started).alias("day"), *names)


def counted(verdicts: DataFrame) -> DataFrame:
    """Returns verdicts as what is counted of them, and the first failure of each."""
    is_failed = f.col("outcome") == "failed"
    counts = {
        "passed": f.col("outcome") == "passed",
        "failed": is_failed & (f.col("severity") == "error"),
        "warned": is_failed & (f.col("severity") == "warning"),
        "notExercised": f.col("outcome") == "not exercised",
    }
    columns = dict.fromkeys(column for names in BY.values() for column in names)
    each = [condition.cast("long").alias(name) for name, condition in counts.items()]
    return verdicts.select(*columns, "trace", "client", *each, _first_failure().alias("first"))


def by(counted: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Returns a row for each combination of values of columns: how many traces and clients there were, how many rules
    of all clients had which outcome, and the first failure with its first frame.
    """
    sums, first = [f.sum(name).alias(name) for name in COUNTS], f.min("first").alias("first")
    # by client and trace first: what is distinct is then a count, which takes half the time
    of_clients = counted.groupBy(*columns, "trace", "client").agg(*sums, first)
    of_traces = of_clients.groupBy(*columns, "trace").agg(f.count("*").alias("clients"), *sums, first)
    clients = f.sum("clients").alias("clients")
    grouped = of_traces.groupBy(*columns).agg(f.count("*").alias("traces"), clients, *sums, first)
    parts = ("at", "trace", "rule", "words", "frame")
    shown = [f.col(f"first.{part}").alias(f"first{part.capitalize()}") for part in parts]
    return grouped.select(*grouped.columns[:-1], *shown).orderBy(*columns)


def failures(counted: DataFrame, outcomes: Sequence[str]) -> DataFrame:
    """Returns a row for each software, its version and rule that a client failed, with the first failure. `outcomes`:
    `failed`, `warned` or both.
    """
    columns = ("software", "softwareVersion", "rule")
    found = by(counted.where(" + ".join(outcomes) + " > 0"), columns)
    return found.drop(*COUNTS, "firstRule").orderBy(*columns)


def report(
    rows: DataFrame, groups: Iterable[Sequence[str]] = EACH, strict: bool = False, every: bool = False
) -> Report:
    """Returns the tables. `groups`: names of BY. The findings are failures of rules that are errors, with `strict` also
    of those that are warnings. `every`: with all rules of all clients, and all traces.
    """
    found, read = verdicts(rows), traces(rows)
    each = counted(found).cache()
    tables = {"by " + ", ".join(names): by(each, [column for one in names for column in BY[one]]) for names in groups}
    tables["failures"] = failures(each, ("failed", "warned") if strict else ("failed",))
    if not strict:
        tables["warnings"] = failures(each, ("warned",))
    incomplete = "refused IS NOT NULL OR damagedLines + droppedEvents + unexaminedRequests > 0"
    columns = ("trace", "refused", "damagedLines", "droppedEvents", "unexaminedRequests")
    tables["set aside"] = read.where(incomplete).select(*columns)
    if every:
        order = ("started", "trace", "client", "examination", "rule")
        tables |= {"verdicts": found.orderBy(*order), "traces": read}
    plots = (Plot("Failed rules of all clients", "by day", "bar", "day", "failed"),) if "by day" in tables else ()
    return Report(tables, "failures", plots, (each,))


def _time(ms: Column) -> Column:
    return f.when(ms.between(1, MS_MAX), f.timestamp_millis(ms))


def _first_failure() -> Column:
    """The first failure of a row and its first frame; by time, and by place where that is equal."""
    failure = f.get(f.col("failures"), f.lit(0))
    frame = f.get(failure["evidence"], f.lit(0))
    where = f.concat_ws(
        ", ",
        f.concat(f.lit("connection "), frame["connection"]),
        f.concat(f.lit("exchange "), frame["exchange"]),
    )
    text = f.concat(where, f.lit(": "), frame["what"], f.lit(" "), frame["message"])
    at = f.coalesce(_time(frame["at_ms"]), f.col("started"))
    parts = (at.alias("at"), f.col("trace"), f.col("client"), f.col("rule"), failure["words"].alias("words"))
    return f.when(f.col("outcome") == "failed", f.struct(*parts, f.rtrim(text).alias("frame")))
