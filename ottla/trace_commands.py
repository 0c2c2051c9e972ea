"""`ottla trace`: shows traces, and writes them as captures for Wireshark."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import chain
from typing import Final

import click

from . import api_names
from .lab_output import errors_as_exit_codes
from .protocol.text import printable
from .traces import packets, reading
from .traces.filters import Chosen, Filter
from .traces.lines import detailed, line
from .traces.walking import Topics
from .verdict.trace_lines import Event, TraceError

FORMS: Final = "`2026-01-31T12:00:00`, `12:00:00` of today, or milliseconds since 1970"


@click.group()
def trace() -> None:
    """Traces of requests and replies (ottla.trace, or `ottla lab call start_trace`)."""


class Time(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """A time in one of the forms of FORMS; its value is in milliseconds since 1970."""

    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        given = str(value)
        if given.isdecimal():
            return int(given)
        try:
            whole = given if "T" in given or " " in given else f"{datetime.now():%Y-%m-%d}T{given}"
            return int(datetime.fromisoformat(whole).timestamp() * 1000)
        except ValueError:
            self.fail(f"{given!r} is no time: give {FORMS}", param, ctx)


def apis_of(ctx: click.Context, param: click.Parameter, given: str | None) -> frozenset[str]:
    return api_names.known([one.strip() for one in (given or "").split(",") if one.strip()])


@trace.command()
@click.option("-a", "--api", "apis", callback=apis_of, help="Only these APIs: `Produce,Fetch`.")
@click.option("-c", "--client", "client_id", help="Only client ids like this: `shop-*`.")
@click.option("-n", "--connection", type=int, help="Only the connection with this number.")
@click.option("--node", type=int, help="Only connections to the node with this id.")
@click.option("-t", "--topic", help="Only requests that name such a topic, and their replies.")
@click.option("-g", "--group", help="Only requests that name such a group, and their replies.")
@click.option("-i", "--correlation", "correlation_id", type=int, help="Only this correlation id.")
@click.option("-e", "--errors", "errors_only", is_flag=True, help="Only replies with errors, and refused frames.")
@click.option("--since", "since_ms", type=Time(), help="Only from this time on.")
@click.option("--until", "until_ms", type=Time(), help="Only up to this time.")
@click.option("-f", "--follow", "following", is_flag=True, help="Wait for more, until Ctrl-C.")
@click.option("-v", "--verbose", is_flag=True, help="Show all fields of the messages.")
@click.option("--json", "as_json", is_flag=True, help="Print the lines of the trace as they are.")
@click.argument("source", metavar="FILE|URL")
def show(source: str, apis: frozenset[str], following: bool, verbose: bool, as_json: bool, **chosen: object) -> None:
    """Show the events of a trace: of FILE, after the files that were full before it, or the last ones of the broker
    whose lab has URL.
    """
    topics = Topics()
    takes = Filter(Chosen(apis, **chosen), topics).takes  # type: ignore[arg-type]  # click has made them
    with errors_as_exit_codes(), suppress(KeyboardInterrupt):
        for event in _failing(reading.events_of(source, following)):
            if takes(event):
                if as_json:
                    click.echo(json.dumps(event, separators=(",", ":")))
                else:
                    click.echo("\n".join(detailed(event, topics)) if verbose else line(event, topics))


def _failing(events: Iterable[Event]) -> Iterator[Event]:
    """Ends the program where a trace cannot be read."""
    try:
        yield from events
    except (TraceError, FileNotFoundError, IsADirectoryError, PermissionError) as error:
        click.echo(printable(f"ottla: {reading.problem(error)}"), err=True)
        sys.exit(1)


@trace.command()
@click.option("--port", default=packets.PORT, show_default=True, help="The broker's port in the capture.")
@click.argument("source", metavar="FILE|URL")
@click.argument("out", type=click.File("wb", lazy=True))
def pcap(source: str, out: object, port: int) -> None:
    """Write a trace with raw frames (ottla.trace.raw=frames) as a capture (pcapng) that Wireshark reads; `-` is
    standard output.
    """
    frames = packets.Frames()
    with errors_as_exit_codes():
        events = _failing(reading.events_of(source, False))
        first = next(events, None)  # where the trace cannot be read, a file OUT that there is stays as it is
        for block in packets.capture(chain([first] if first else [], events), port, frames):
            out.write(block)  # type: ignore[attr-defined]
    if frames.left_out:
        words = f"{frames.left_out:,} frames, whose bytes the trace does not have (ottla.trace.raw)"
        click.echo(f"ottla: the capture lacks {words}; {frames.written:,} are in it", err=True)
        sys.exit(0 if frames.written else 1)
