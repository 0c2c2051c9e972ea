"""`ottla pipeline verdict`: the rules of the protocol on the clients of many traces."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, get_args

import click

from ..verdict.rule import Examination
from .command import FAILED, FORMAT, FOUND, OUT, SETTING, SINCE, done, since_ms, started, tell
from .traces import GROUPS, found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from .traces import Trace


class Grouping(click.ParamType[tuple[str, ...]]):
    """One of GROUPS, or several with commas."""

    name = "|".join(GROUPS)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        names = tuple(one.strip() for one in str(value).split(","))
        wrong = [one for one in names if one not in GROUPS]
        if wrong:
            self.fail(f"{wrong[0]!r} is not one of {', '.join(GROUPS)}", param, ctx)
        return tuple(dict.fromkeys(names))


@click.command()
@click.argument("traces", nargs=-1, required=True, metavar="TRACES...")
@click.option(
    "--by", "groups", multiple=True, type=Grouping(), help="A table by this, or by several with commas, such as "
    "version,rule; can be repeated. [default: a table by each]",
)  # fmt: skip
@click.option(
    "--examination", type=click.Choice(get_args(Examination)), help="Only the rules of this examination. [default: all]"
)
@click.option("--strict", is_flag=True, help="Let failed warnings be findings, too.")
@click.option("--all", "every", is_flag=True, help="Add all rules of all clients, and what was read of all traces.")
@SINCE
@OUT
@FORMAT
@click.option("--json", "as_json", is_flag=True, help="Like --format json.")
@SETTING
def verdict(
    traces: tuple[str, ...],
    groups: tuple[tuple[str, ...], ...],
    examination: Examination | None,
    strict: bool,
    every: bool,
    since: str | None,
    out: str | None,
    kind: str,
    as_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Say which rules of the protocol the clients in traces kept: those of CI runs, in directories and the ones below
    them. Each trace has the verdict of `ottla verdict`; tables are by client, version, rule and day, with the first
    frame that shows a failure. --since chooses traces by when they began.

    Exit codes: 0 no rule failed, 1 a rule failed or a trace was set aside, 2 no trace could be examined.
    """
    begin = since_ms(since, int(time.time() * 1000)) or 0

    def work() -> int:
        rows = _judged(found(traces), examination, begin, settings)
        from .jobs import verdict as job

        report = job.report(rows, groups or job.EACH, strict, every)
        code = tell(report, f"verdict of {', '.join(traces)}", "json" if as_json else kind, out)
        code = max(code, _complete(job.traces(rows)))
        rows.unpersist()
        return code

    done(work)


def _judged(
    traces: Sequence[Trace], examination: Examination | None, begin: int, settings: tuple[str, ...]
) -> DataFrame:
    """Raises RuntimeError without Spark or Java."""
    try:
        from .judging import Asked
    except ImportError as error:
        raise RuntimeError(f"{error.name} is not installed: pip install ottla[spark]") from None
    spark = started(settings, small=True)
    from .jobs import verdict as job

    return job.judged(spark, traces, Asked(examination, begin)).cache()


def _complete(traces: DataFrame) -> int:
    """Says which traces were set aside; returns the exit code for that."""
    read = traces.count()
    refused = traces.where("refused IS NOT NULL").select("refused").collect()
    if refused:
        click.echo(f"{len(refused):,} of {read:,} traces were set aside: {refused[0].refused}", err=True)
    if len(refused) == read:
        click.echo("ottla: no trace was examined", err=True)
        return FAILED
    return FOUND if refused else 0
