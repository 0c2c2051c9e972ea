"""`ottla verdict`: examines clients, by the traces of what they did or on a running broker."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, cast, get_args

import click

from . import verdict_addresses, verdict_connections, verdict_fatal, verdict_login, verdict_truncation
from .lab_client import Lab, LabUnreachable
from .lab_output import errors_as_exit_codes
from .protocol.text import printable
from .traces import reading
from .verdict.badge import badge
from .verdict.from_trace import FilteredTrace, examine
from .verdict.html_report import html
from .verdict.report import ClientReport, has_failed, junit, lines
from .verdict.rule import Examination
from .verdict.trace_lines import TraceError

LISTEN: Final = "127.0.0.1:9092"
OWN_BROKER: Final = (
    verdict_truncation.NAME,
    verdict_login.NAME,
    verdict_connections.NAME,
    verdict_addresses.NAME,
    verdict_fatal.NAME,
)
"""Examinations that take more than faults by a schedule: they need a broker of their own."""
EXIT_FAILED, EXIT_NO_TRACE, EXIT_NO_CLIENT = 1, 2, 4


@click.command()
@click.option("--live", metavar="URL", help="Show the verdict of the running broker whose lab has URL.")
@click.option(
    "--examination",
    type=click.Choice((*get_args(Examination), *OWN_BROKER)),
    help="Only the rules of this examination; without traces and --live, faults provoke what they need, and "
    "`truncation` loses records that a consumer of the topic `truncation` has read, in `login` clients log in as "
    f"`{verdict_login.USER}` with `{verdict_login.PASSWORD}`, and in `connections` idle connections are closed, and "
    "the broker that clients know is lost for a while, in `addresses` the HOST of --listen is a name with two "
    "addresses, of which only one is served, and the program is run again for the other, and in `fatal` errors end "
    "clients, and the program is run again for the next. [default: all]",
)
@click.option("--run", "program", metavar="COMMAND", help="Examine a program; its broker is OTTLA_BOOTSTRAP_SERVERS.")
@click.option("--listen", default=LISTEN, metavar="HOST:PORT", help=f"Where clients connect. [default: {LISTEN}]")
@click.option("--seed", default=0, help="Move the occasions of faults by a few requests. [default: 0]")
@click.option("--client", "client_id", help="Only the client with this client id.")
@click.option("--all", "every", is_flag=True, help="Show the rules that are passed or not exercised, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--junit", "junit_file", type=click.Path(dir_okay=False), help="Write the report as JUnit XML, too.")
@click.option("--html", "html_file", type=click.Path(dir_okay=False), help="Write the report as a page of HTML, too.")
@click.option(
    "--badge", "badge_file", type=click.Path(dir_okay=False), help="Write a badge (SVG) for all of these clients, too."
)
@click.option("--strict", is_flag=True, help="Let failed warnings fail the command, too.")
@click.argument("traces", nargs=-1, metavar="[FILE|URL]...")
def verdict(
    traces: tuple[str, ...],
    live: str | None,
    examination: str | None,
    program: str | None,
    listen: str,
    seed: int,
    client_id: str | None,
    every: bool,
    as_json: bool,
    junit_file: str | None,
    html_file: str | None,
    badge_file: str | None,
    strict: bool,
) -> None:
    """Say which rules of the protocol clients kept: the clients of a broker that the command starts, until Ctrl-C or
    until the program of --run ends; or with --live those of a running broker, where `ottla lab call start_verdict` has
    begun it; or those of traces (ottla.trace).

    Exit codes: 0 no rule failed, 1 a rule failed, 2 there is no trace or verdict that can be read, or the broker did
    not start, 3 no broker answers, 4 there was no client.
    """
    if traces and live is not None:
        raise click.UsageError("give traces, or --live with the URL of a lab, and not both")
    if program is not None and (traces or live is not None):
        raise click.UsageError("--run is for a broker that the command starts: leave out traces and --live")
    if examination in OWN_BROKER and (traces or live is not None):
        raise click.UsageError(f"{examination} is for a broker that the command starts: leave out traces and --live")
    of = cast("Examination | None", examination)
    with errors_as_exit_codes(EXIT_NO_TRACE):
        if live is not None:
            found: Iterable[ClientReport] = _of_broker(live, of)
        elif traces:
            found = _of_traces(traces, of)
        else:
            found = _of_visitors(examination, seed, listen, program)
        clients = [one for one in found if client_id in (None, one["client_id"])]
    _write({junit_file: [junit(clients)], html_file: html(clients), badge_file: badge(clients)})
    click.echo(json.dumps(clients, indent=2) if as_json else "\n".join(lines(clients, every)))
    if not clients:
        which = "" if client_id is None else f" with the client id {client_id}"
        click.echo(printable(f"ottla: no client{which} was examined"), err=True)
        sys.exit(EXIT_NO_CLIENT)
    sys.exit(EXIT_FAILED if has_failed(clients, strict) else 0)


def _write(reports: dict[str | None, Iterable[str]]) -> None:
    """Writes reports into the files that are asked for. Ends the command if one cannot be written."""
    for file, pieces in reports.items():
        if file is not None:
            try:
                Path(file).write_text("".join(pieces), encoding="utf-8")
            except OSError as error:
                raise click.UsageError(f"cannot write {file}: {error.strerror}") from None


def _of_visitors(examination: str | None, seed: int, listen: str, program: str | None) -> Iterable[ClientReport]:
    """Examines who comes to a broker, which ends with it."""
    from .testing import BrokerFailed
    from .verdict_examination import OF_THEIR_OWN, serve

    def say(words: str) -> None:
        click.echo(f"ottla: {words}", err=True)

    try:
        if examination is not None and examination in OF_THEIR_OWN:
            return OF_THEIR_OWN[examination](listen, program, say)
        view = serve(cast("Examination | None", examination), seed, listen, program, say)
    except BrokerFailed as error:
        say(str(error))
        sys.exit(EXIT_NO_TRACE)
    for one in view["provoked"]:
        when = f"request {one['nth']} of {one['api']}: {one['does']}"
        say(f"{'provoked' if one['applied'] else 'not come to'}: {one['what']} ({when})")
    return view["clients"]


def _of_broker(url: str, examination: Examination | None) -> list[ClientReport]:
    clients: list[ClientReport] = Lab(url).get("verdict")["clients"]
    for client in clients:
        client["rules"] = [one for one in client["rules"] if examination in (None, one["examination"])]
    return clients


def _of_traces(traces: tuple[str, ...], examination: Examination | None) -> Iterator[ClientReport]:
    """Yields the clients of each trace: those of one do not go on in another."""
    try:
        for source in traces:
            try:
                yield from examine(reading.events_of(source), examination).report()
            except FilteredTrace as error:
                raise TraceError(f"{source}: {error}") from None
    except LabUnreachable:
        raise
    except (TraceError, OSError) as error:
        click.echo(printable(f"ottla: {reading.problem(error)}"), err=True)
        sys.exit(EXIT_NO_TRACE)
