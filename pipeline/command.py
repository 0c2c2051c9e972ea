"""`ottla pipeline`: jobs over data directories. Exit codes: 0 clean, 1 findings, 2 the job failed."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import click

from ..protocol.text import printable
from .output import FORMATS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .jobs import Input, Report

FOUND, FAILED = 1, 2
PROJECT = Path(__file__).with_name("project")
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

SINCE = click.option(
    "--since",
    metavar="WHEN",
    help="Start of the time range: an age (90s, 15m, 2h, 7d), an ISO time in UTC, or ms since 1970.",
)
OUT = click.option("--out", type=click.Path(), help="Where to write: a file for html, a directory for other formats.")
FORMAT = click.option("--format", "kind", type=click.Choice(FORMATS), default="table", show_default=True)
PROPERTIES = click.option(
    "--properties",
    type=click.Path(exists=True, dir_okay=False),
    help="A server.properties file of the broker, for settings that the data directory does not record.",
)
SETTING = click.option(
    "--conf", "settings", multiple=True, metavar="KEY=VALUE", help="A Spark setting; can be repeated."
)


@click.group()
def pipeline() -> None:
    """Analyse the data directory of a broker, of ottla or of Apache Kafka, or traces, with Spark. Needs
    `pip install ottla[spark]` and Java 17.
    """


def since_ms(text: str | None, now_ms: int) -> int | None:
    """Parses `--since`. Raises click.BadParameter."""
    if text is None:
        return None
    span = re.fullmatch(r"(\d+)([smhd])", text)
    if span is not None:
        return now_ms - int(span[1]) * _UNITS_MS[span[2]]
    if text.isdecimal():
        return int(text)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a time; use 2h, 2026-01-31T12:00 or ms since 1970", param_hint="--since"
        ) from None
    return int((when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp() * 1000)


def started(settings: tuple[str, ...], small: bool = False, near: bool = False) -> SparkSession:
    """Returns a Spark session without log output except a progress bar. `small`: a job with little work for Java, whose
    code need not be compiled well. `near`: a job that registers the sources when it needs them.
    """
    from . import JAVA_OPTIONS, REMOTE, SMALL, session, without_sources

    given = of_conf(settings)
    chosen = {**progress(), **(SMALL if small else {}), **given}
    start = without_sources if near else session
    remote = chosen.get(REMOTE, os.environ.get("SPARK_REMOTE", ""))
    if remote:
        return _in_server(start, remote, chosen)
    if JAVA_OPTIONS not in given:
        chosen[JAVA_OPTIONS] = f"{chosen.get(JAVA_OPTIONS, '')} {java_options('spark')}".lstrip()
    return start(**chosen)


def _in_server(start: Callable[..., SparkSession], remote: str, settings: Mapping[str, str]) -> SparkSession:
    """Returns the session of a server that jobs share; one of its own if a server has closed that for good."""
    from . import CLOSED, REMOTE, shared

    try:
        return start(**{**settings, REMOTE: shared(remote, settings)})
    except Exception as error:
        if CLOSED not in str(error):
            raise
    from pyspark.sql.connect.session import SparkSession

    closed = SparkSession.active()
    closed.release_session_on_close = False
    closed.stop()
    return start(**{**settings, REMOTE: remote})


def of_conf(settings: tuple[str, ...]) -> dict[str, str]:
    """Returns the Spark settings that `--conf` names."""
    return dict(one.partition("=")[::2] for one in settings)


def progress() -> dict[str, str]:
    """Returns Spark's setting for a progress bar if the output is a terminal."""
    return {"spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()}


def java_options(name: str) -> str:
    """Returns options for a Java that logs only errors, and loads the classes of `name` from an archive."""
    from . import spark_home
    from .java import cache_directory, class_archive

    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    archive = class_archive(cache_directory(), Path(spark_home(), "jars"), name)
    return f"-Dlog4j2.configurationFile={quiet} {archive}".rstrip()


def done(work: Callable[[], int]) -> None:
    """Ends the process with the exit code that `work` returns, or prints why it failed."""
    try:
        code = work()
    except (RuntimeError, ValueError, OSError, ImportError) as error:
        click.echo(f"ottla: {printable(str(error))}", err=True)
        code = FAILED
    except Exception as error:
        if not type(error).__module__.startswith("pyspark"):
            raise
        click.echo(f"ottla: {printable(_said(error))}", err=True)
        code = FAILED
    sys.exit(code)


def _said(error: Exception) -> str:
    """Returns the last line of a Python error in Spark's worker, or the first line of Spark's own error."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]+(Error|BrokenLog|Exception): ", line)]
    return errors[-1] if errors else lines[0] if lines else type(error).__name__


def tell(report: Report, title: str, kind: str, out: str | None) -> int:
    """Writes a report; returns the exit code."""
    from .output import write

    written = write(report, title, kind, out)
    for frame in report.kept:
        frame.unpersist()
    if written.where is not None:
        click.echo(f"written to {placed(written.where)}", err=True)
    if report.findings is not None:
        click.echo(f"{written.findings:,} findings" if written.findings else "clean", err=True)
    return FOUND if written.findings else 0


def _job(name: str, help_: str, title: str) -> None:
    @pipeline.command(name, help=help_)
    @click.argument("directory")
    @SINCE
    @OUT
    @FORMAT
    @PROPERTIES
    @SETTING
    def run(
        directory: str, since: str | None, out: str | None, kind: str, properties: str | None, settings: tuple[str, ...]
    ) -> None:
        begin = since_ms(since, int(time.time() * 1000))

        def work() -> int:
            source = opened(directory, begin, settings, small=name != "compaction")
            source.settings = broker_settings(properties)
            from .jobs import report_of

            code = tell(report_of(name)(source), f"{title} of {directory}", kind, out)
            source.close()  # a Spark that stays would keep it
            return code

        done(work)


def opened(
    directory: str, begin: int | None, settings: tuple[str, ...], small: bool = True, near: bool = True
) -> Input:
    """Opens a data directory as a job's input. Raises FileNotFoundError or ValueError before Spark is started;
    RuntimeError without Spark or Java. What is in a little directory is shuffled to one task: each further one takes
    longer than its rows. `near`: whether a job reads what is little itself.
    """
    try:
        from .directory import Directory
    except ImportError as error:
        raise RuntimeError(f"{error.name} is not installed: pip install ottla[spark]") from None
    directory = placed(directory)
    found = Directory(directory)
    _ = found.partitions
    is_local = "://" not in directory
    near = near and is_local
    one_task = ("spark.sql.shuffle.partitions=1",) if is_local and found.is_little() else ()
    Thread(target=_prepare).start()
    spark = started((*one_task, *settings), small, near)
    from .jobs import Input

    return Input(spark, directory, begin, near=near)


def _prepare() -> None:
    """Imports what a report needs, while Java starts; what is not installed is said where it is used."""
    with suppress(ImportError):
        for module in ("pandas", f"{__package__}.near", f"{__package__}.jobs"):
            importlib.import_module(module)


def placed(path: str) -> str:
    """Returns a path that means the same in another process; a URL as it is."""
    return path if "://" in path else os.path.abspath(path)


def broker_settings(path: str | None) -> dict[str, str]:
    """Reads a broker's properties. Raises OSError or ValueError."""
    if path is None:
        return {}
    import javaproperties

    with open(path, encoding="utf-8") as file:
        return dict(javaproperties.load(file))


_ABOUT = {
    "audit": "Check every batch, checksum, sequence, transaction, index and file of a data directory.",
    "lag": "Report the lag of consumer groups, now and at each of their commits.",
    "rebalances": "Report which members owned which partitions, and how long rebalances took.",
    "shares": "Report how the records of share groups were delivered, acknowledged, archived and dead-lettered.",
    "transactions": (
        "Report how long transactions took, how they ended, and which of them held back last stable offsets."
    ),
    "compaction": "Report which records the log cleaner would keep.",
}
for _name, _help in _ABOUT.items():
    _job(_name, _help, _name)
_job(
    "all",
    "Write audit, lag, rebalances, shares and transactions into one report; leave out jobs whose topics do not exist.",
    "report",
)


@pipeline.command()
@click.argument("directory")
@click.option("--topic", required=True, help="Topics, with commas.")
@click.option(
    "--out", type=click.Path(), required=True, help="The directory for Parquet files, partitioned by topic and date."
)
@click.option(
    "--offsets-per-batch",
    default=5_000_000,
    show_default=True,
    help="Offsets per partition that are written at a time.",
)
@click.option(
    "--fail-on-data-loss/--go-on",
    default=True,
    show_default=True,
    help="Whether to fail if a topic was deleted or made again since the last export, or retention deleted what comes "
    "next; else go on from the beginning that there is.",
)
@click.option("--format", "kind", type=click.Choice(["parquet"]), default="parquet", show_default=True)
@SETTING
def export(
    directory: str,
    topic: str,
    out: str,
    offsets_per_batch: int,
    fail_on_data_loss: bool,
    kind: str,
    settings: tuple[str, ...],
) -> None:
    """Write topics to Parquet, each committed record once; a repeated export continues where the last one stopped, even
    if it was killed.
    """

    def work() -> int:
        source = opened(directory, None, settings, small=False, near=False)
        from .jobs import export as job

        count = job.export(source.spark, source.path, topic, placed(out), offsets_per_batch, fail_on_data_loss)
        click.echo(f"{count:,} records written to {placed(out)}", err=True)
        return 0

    done(work)


@pipeline.command()
@click.argument("left")
@click.argument("right")
@click.option("--ignore", default="", help="Fields that may differ, separated by commas.")
@click.option("--topic", help="Topics to compare, separated by commas; default: all.")
@OUT
@FORMAT
@SETTING
def diff(
    left: str, right: str, ignore: str, topic: str | None, out: str | None, kind: str, settings: tuple[str, ...]
) -> None:
    """Compare two request logs (`ottla.request.log`), or the records of two data directories, field by field."""

    def work() -> int:
        from .files import is_directory

        if len({is_directory(path) for path in (left, right)}) > 1:
            raise ValueError("cannot compare a request log with a data directory")
        for path in (left, right):
            if "://" not in path and not os.path.exists(path):
                raise FileNotFoundError(f"{path} does not exist")
        spark = started(settings)
        from .jobs import diff as job

        ignored = [one.strip() for one in ignore.split(",") if one.strip()]
        return tell(
            job.report(spark, placed(left), placed(right), ignored, topic), f"diff of {left} and {right}", kind, out
        )

    done(work)


@pipeline.command()
@click.argument("specification", type=click.Path(exists=True, dir_okay=False))
@click.option("-b", "--bootstrap-server", default="127.0.0.1:9092", show_default=True)
@click.option("--rate", type=int, help="Records per second of all topics together; default: as fast as possible.")
@SETTING
def load(specification: str, bootstrap_server: str, rate: int | None, settings: tuple[str, ...]) -> None:
    """Produce the records that a YAML specification describes."""

    def work() -> int:
        from .jobs.specification import parse

        with open(specification, encoding="utf-8") as file:
            wanted = parse(file.read())
        spark = started(settings)
        from .jobs import load as job

        began = time.monotonic()
        count = job.load(spark, wanted, bootstrap_server, rate)
        click.echo(f"{count:,} records in {time.monotonic() - began:.1f} s", err=True)
        return 0

    done(work)


@pipeline.command()
@click.argument("project", type=click.Path())
@click.argument("directory")
def new(project: str, directory: str) -> None:
    """Create a declarative pipeline over a data directory: a project to change and to run with `ottla pipeline run`."""
    if os.path.exists(project):
        click.echo(f"ottla: {project} already exists", err=True)
        sys.exit(FAILED)
    directory = placed(directory)
    root = os.path.abspath(project)
    for source in sorted(PROJECT.rglob("*")):
        if source.suffix in (".py", ".yml"):
            target = Path(root) / source.relative_to(PROJECT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(source.read_text().replace("@PROJECT@", root).replace("@DIRECTORY@", directory))
    click.echo(f"created {root}; run it with: ottla pipeline run {project}")


@pipeline.command()
@click.argument("project", type=click.Path(exists=True, file_okay=False), default=".")
@click.option("--dry", is_flag=True, help="Check the graph of tables without running it.")
@click.option("--refresh", help="Tables to update, separated by commas; default: all.")
@click.option("--full-refresh", help="Tables to recompute from the beginning, separated by commas, or all.")
def run(project: str, dry: bool, refresh: str | None, full_refresh: str | None) -> None:
    """Run a declarative pipeline. Needs `pip install ottla[spark,pipelines]`. Exit code 2 if the run fails."""

    def work() -> int:
        from . import spark_home
        from .java import check_java

        check_java()
        for module in ("pyspark", "grpc", "google.rpc"):
            if importlib.util.find_spec(module.partition(".")[0]) is None:
                raise RuntimeError(f"{module} is not installed: pip install ottla[spark,pipelines]")
        command = [sys.executable, str(Path(__file__).with_name("declarative.py")), "dry-run" if dry else "run"]
        if refresh is not None:
            command += ["--refresh", refresh]
        if full_refresh is not None:
            command += ["--full-refresh-all"] if full_refresh == "all" else ["--full-refresh", full_refresh]
        environment = {**_connected(spark_home()), **os.environ}
        return FAILED if subprocess.run(command, cwd=project, env=environment, check=False).returncode else 0

    done(work)


def _connected(home: str) -> dict[str, str]:
    """Returns the environment of a program that starts its own Spark Connect server."""
    from . import WORKERS

    settings = {"spark.ui.enabled": "false", **WORKERS, **progress()}
    submitted = ["--driver-java-options", java_options("connect")]
    for setting in settings.items():
        submitted += ["--conf", "=".join(setting)]
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": shlex.join([*submitted, "pyspark-shell"]),
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_REMOTE": "local[*]",
    }
