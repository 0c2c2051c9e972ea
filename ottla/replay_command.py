"""`ottla replay`: sends what the clients of a trace sent to a broker, and reports what it answers differently."""

from __future__ import annotations

import json
import ssl
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import click

from .addresses import Address, AddressType
from .comparing import rules
from .comparing.login import MECHANISMS, Credentials
from .lab_client import LabRefused, LabUnreachable
from .protocol.codec import as_plain
from .protocol.text import printable
from .replay.exchanges import Exchange, steps
from .replay.player import Found, Player
from .replay.target import Target
from .traces import reading
from .traces.reading import filters
from .verdict.trace_lines import Event, TraceError

EXIT_DIFFERENT, EXIT_UNREACHABLE = 1, 3
SHOWN_MAX = 200  # characters of a value


def source(ctx: click.Context, param: click.Parameter, given: str) -> str:
    """Takes a URL, or the path of a file that there is."""
    if reading.is_url(given):
        return given
    return str(click.Path(exists=True, dir_okay=False).convert(given, param, ctx))


@click.command()
@click.option("--to", "address", type=AddressType(), required=True, help="The broker.")
@click.option("--ca", type=click.Path(dir_okay=False), help="It has TLS; its certificate is signed by this authority.")
@click.option("--user", envvar="OTTLA_REPLAY_USER", default="", help="Log in as this user on every connection.")
@click.option("--password", envvar="OTTLA_REPLAY_PASSWORD", default="", help="Give it in OTTLA_REPLAY_PASSWORD.")
@click.option("--mechanism", type=click.Choice(MECHANISMS), default="PLAIN", show_default=True, help="Of the log-in.")
@click.option("--rules", "rule_files", multiple=True, type=click.Path(path_type=Path), help="Rules of what may differ.")
@click.option("--time", "with_time", is_flag=True, help="Keep the times of the trace, not only its order.")
@click.option("--timeout", default=30.0, show_default=True, help="Seconds to wait for a reply.")
@click.option("-v", "--verbose", is_flag=True, help="Show differences too that the rules allow.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("trace", metavar="FILE|URL", callback=source)
def replay(
    trace: str,
    address: Address,
    ca: str | None,
    user: str,
    password: str,
    mechanism: str,
    rule_files: tuple[Path, ...],
    with_time: bool,
    timeout: float,
    verbose: bool,
    as_json: bool,
) -> None:
    """Send what the clients of a trace sent to another broker, in the same order and with one connection for each, and
    compare the replies. The trace is that of FILE, or the last events of the broker whose lab has URL. Ids that brokers
    choose are translated. Produce needs a trace with raw frames (ottla.trace.raw=frames).

    Exit codes: 0 nothing differs but what the rules allow, 1 something does, 2 wrong usage, 3 no broker answers.
    """
    try:
        found_rules = rules.read(*rule_files, rules.REPLAY)
        tls = ssl.create_default_context(cafile=ca) if ca else None
    except (OSError, rules.RulesError) as error:
        raise click.UsageError(str(error)) from None
    target = Target(*address, tls, Credentials(user, password, mechanism) if user else None)
    player = Player(target, found_rules, 1.0 if with_time else 0.0, timeout)
    try:
        events = _noting_filters(_events(trace), trace)
        found = player.play(steps(_noting_nodes(events, target, player, timeout)))
    except TraceError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        click.echo(printable(f"ottla: cannot reach {target}: {error}"), err=True)
        sys.exit(EXIT_UNREACHABLE)
    if as_json:
        click.echo(json.dumps(_value(found), indent=2))
    else:
        for line in _lines(found, verbose):
            click.echo(printable(line))
    sys.exit(0 if found.is_same else EXIT_DIFFERENT)


def _events(trace: str) -> Iterable[Event]:
    """Raises TraceError."""
    if not reading.is_url(trace):
        return _of_file(trace)
    try:
        return list(reading.events_of(trace))
    except LabRefused as error:
        raise click.UsageError(str(error)) from None
    except LabUnreachable as error:
        click.echo(printable(f"ottla: {error}"), err=True)
        sys.exit(EXIT_UNREACHABLE)


def _of_file(trace: str) -> Iterator[Event]:
    """Raises TraceError, also for what the system says: an OSError is of the broker."""
    try:
        yield from reading.events_of(trace)
    except OSError as error:
        raise TraceError(reading.problem(error)) from None


def _noting_nodes(events: Iterator[Event], target: Target, player: Player, timeout_s: float) -> Iterator[Event]:
    """Gives the player the nodes, and warns of connections whose node is not among them: they go to the broker.
    Raises OSError if the broker cannot be reached.
    """
    yield from islice(events, 1)
    nodes = target.nodes(timeout_s)
    is_noted = len(nodes) < 2
    player.nodes = {} if is_noted else nodes
    for event in events:
        if not is_noted and "connection" in event and event.get("node") not in nodes:
            is_noted = True
            whose = f"for node {event['node']}" if "node" in event else "of a trace of one node"
            words = f"it gets the requests {whose}, and refuses those for what the others lead or coordinate"
            click.echo(printable(f"ottla: {target} is one of {len(nodes)} nodes: {words}"), err=True)
        yield event


def _noting_filters(events: Iterable[Event], trace: str) -> Iterator[Event]:
    """Warns if a trace does not have all requests."""
    noted = ""
    for event in events:
        shown = filters(event)
        if shown and shown != noted:
            noted = shown
            words = "requests on which others depend may be missing, and replies may differ for that"
            click.echo(printable(f"ottla: {trace}: the trace was filtered ({shown}): {words}"), err=True)
        yield event


def _where(exchange: Exchange) -> dict[str, object]:
    names = ("connection", "exchange", "api", "version", "correlation_id", "client_id")
    return {name: exchange.event.get(name) for name in names}


def _value(found: Found) -> dict[str, object]:
    return {
        "requests": found.requests,
        "replies": found.replies,
        "sent_again": found.again,
        "same": found.is_same,
        "left_out": [{**_where(one), "why": why} for one, why in found.left_out],
        "problems": [{**_where(one), "problem": problem} for one, problem in found.problems],
        "differences": [
            {
                **_where(one),
                "path": each.difference.path,
                "trace": as_plain(each.difference.a),
                "now": as_plain(each.difference.b),
                "allowed": each.why or None,
            }
            for one, each in found.differences
        ],
    }


def _lines(found: Found, verbose: bool) -> Iterator[str]:
    for one, why in found.left_out:
        yield f"{_name(one)}: not sent: {why}"
    for one, problem in found.problems:
        yield f"{_name(one)}: {problem}"
    for one, each in found.differences:
        if verbose or not each.why:
            why = f"  ({each.why})" if each.why else ""
            said, now = _shown(each.difference.a), _shown(each.difference.b)
            yield f"{_name(one)}: {each.difference.path}: {said} in the trace, {now} now{why}"
    wrong = sum(1 for _, each in found.differences if not each.why)
    allowed = len(found.differences) - wrong
    yield (
        f"{found.requests} requests, {found.replies} replies: {wrong} differences, {allowed} that rules allow, "
        f"{len(found.problems)} problems, {len(found.left_out)} not sent"
    )


def _name(exchange: Exchange) -> str:
    return f"#{exchange.connection} {exchange.api} v{exchange.version} id={exchange.correlation_id}"


def _shown(value: object) -> str:
    text = json.dumps(as_plain(value))
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
