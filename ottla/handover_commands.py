"""`ottla handover` and `ottla takeover`: from ottla to Apache Kafka, and back."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from .handover import EXIT_UNUSABLE, EXIT_USAGE, HandoverRefused
from .handover.layout import Wanted
from .handover.report import Report
from .handover.work import Order, hand_over, take_over
from .protocol.text import printable

DIRECTORIES = click.argument("directories", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False))
TO = click.option("--to", "target", required=True, type=click.Path(), help="A directory that is empty, or not there.")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Show the plan, and make nothing.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
REPLICAS = click.option(
    "--replication-factor",
    "replicas",
    type=click.IntRange(1),
    help="How many replicas each partition gets [default: as many as it has; those of coordinators 3].",
)


@click.command()
@TO
@click.option("--nodes", type=click.IntRange(1, 100), help="How many nodes [default: as many as there were].")
@REPLICAS
@click.option("--host", "hosts", multiple=True, help="The host of a node, once for each [default: where ottla was].")
@click.option(
    "--controller-port", type=click.IntRange(1, 65535), help="Where the controllers listen [default: from 9093 on]."
)
@click.option("-c", "--config", "file", type=click.Path(), help="ottla's configuration file, whose keys Kafka gets.")
@DRY_RUN
@JSON
@DIRECTORIES
def handover(
    directories: tuple[str, ...],
    target: str,
    nodes: int | None,
    replicas: int | None,
    hosts: tuple[str, ...],
    controller_port: int | None,
    file: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make directories on which Apache Kafka 4.4 starts, one for each node, from those of a stopped ottla.

    Each node has its server.properties in OUT/node-ID, with the bootstrap address that ottla had. DIRECTORIES are not
    changed. What Kafka finds, and what it does not, is printed.

    Exit codes: 0 done, 1 something is lost, 2 wrong usage, 4 a directory is in use, 5 a directory cannot be used.
    """
    wanted = Wanted(nodes, replicas, hosts, controller_port)
    _run(
        "Kafka",
        as_json,
        lambda: hand_over(Order(directories, target, wanted, keys_of_file(file) if file else None, dry_run)),
    )


@click.command()
@TO
@click.option("--nodes", type=click.IntRange(1, 100), help="How many nodes ottla will serve [default: 1].")
@REPLICAS
@DRY_RUN
@JSON
@DIRECTORIES
def takeover(
    directories: tuple[str, ...], target: str, nodes: int | None, replicas: int | None, dry_run: bool, as_json: bool
) -> None:
    """Make a directory that ottla serves, from those of a stopped Apache Kafka: of all nodes, or of some.

    Of a partition with replicas in several DIRECTORIES, one in sync is taken, the leader's first. What is on nodes that
    are not named is printed, and is offline in ottla.

    Exit codes: 0 done, 1 something is lost, 2 wrong usage, 4 a directory is in use, 5 a directory cannot be used.
    """
    wanted = Wanted(nodes, replicas)
    _run("ottla", as_json, lambda: take_over(Order(directories, target, wanted, None, dry_run)))


def keys_of_file(file: str) -> dict[str, str]:
    """Returns the keys of a configuration file. Raises HandoverRefused."""
    from .broker.config import sources
    from .broker.config.config import ConfigError

    try:
        return {key: value for key, value, _ in sources.from_file(file)}
    except ConfigError as error:
        raise HandoverRefused(str(error), EXIT_USAGE) from None


@contextmanager
def refusals() -> Iterator[None]:
    """Ends the process with what is wrong, and its exit code. What is written meanwhile is for its user only."""
    os.umask(0o077)
    try:
        yield
    except HandoverRefused as error:
        click.echo(printable(f"ottla: {error}"), err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        click.echo(printable(f"ottla: {error}"), err=True)
        sys.exit(EXIT_UNUSABLE)


def _run(receiver: str, as_json: bool, work: Callable[[], Report]) -> None:
    with refusals():
        found = work()
    if as_json:
        click.echo(json.dumps(found.view))
    else:
        for line in found.lines(receiver):
            click.echo(printable(line))
    sys.exit(found.exit_code)
