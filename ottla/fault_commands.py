"""`ottla lab fault` and `ottla lab requests`: faults by rules, and requests that are held."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import click

from .lab_client import Lab
from .lab_faults import fault_body
from .lab_output import Command, Shown, lab_command, table

if TYPE_CHECKING:
    from .broker.lab.faults.routes import FaultView
    from .broker.lab.requests.routes import HeldView, HoldView

MATCH = (
    click.option("--api", help="Names or keys of APIs, with commas between them."),
    click.option("--versions", help="Versions: 7, 4-9, 12+."),
    click.option("--client-id", help="A client id; a pattern such as app-*."),
    click.option("--principal", help="A principal, such as User:alice; a pattern."),
    click.option("--listener", help="The name of a listener; a pattern."),
    click.option(
        "--node", type=int, help="The id of the node that was asked; within the broker, of the node that leads."
    ),
    click.option("--topic", help="A topic that the request names; a pattern."),
    click.option("--partition", type=int, help="A partition that the request names."),
    click.option("--group", help="A group that the request names; a pattern."),
    click.option("--member", help="A member id that the request names; a pattern."),
    click.option("--transactional-id", help="A transactional id that the request names; a pattern."),
    click.option("--nth", type=int, help="Only the n-th of these requests."),
    click.option("--every", type=int, help="Only every n-th of these requests."),
    click.option("--share", type=float, help="Only a share of these requests, from 0 to 1."),
    click.option("--seed", type=int, help="Decides what is left to chance.  [default: 0]"),
    click.option("--times", type=int, help="How often at most."),
)


def with_match(function: Command) -> Command:
    """Adds the options that say which requests."""
    for option in reversed(MATCH):
        function = option(function)
    return function


@click.group()
def fault() -> None:
    """Rules that say what goes wrong, for which requests, how often and until when."""


@lab_command("add")
@with_match
@click.option("--duration", help="How long the rule lasts: 250ms, 30s, 5m.")
@click.argument("kind")
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
def add(lab: Lab, kind: str, values: tuple[str, ...], **match: object) -> Shown:
    """Add a rule: KIND is what happens, with its values, such as

    \b
        ottla lab fault add error error=NOT_LEADER_OR_FOLLOWER --api Produce --times 1
        ottla lab fault add delay ms=2s at=reply --api Fetch --topic 'orders-*'
        ottla lab fault add close at=middle --client-id app-1 --every 10

    The kinds: error, delay, no-reply, close, throttle, truncate, flip, twice, correlation-id, trickle, records, vanish,
    stale-leader, append-fails, slow-sync, loading.
    """
    found = lab.post("faults", fault_body(kind, {**match, **dict(_values(values))}))
    return Shown(found, lambda: _faults([found]))


def _values(values: Iterable[str]) -> Iterator[tuple[str, object]]:
    for one in values:
        key, sign, value = one.partition("=")
        if not sign:
            raise click.BadParameter(f"{one} is not KEY=VALUE", param_hint="KEY=VALUE")
        try:
            yield key, json.loads(value)
        except ValueError:
            yield key, value


@lab_command("list", watch=True)
def list_(lab: Lab) -> Shown:
    """List the rules, with how often each matched and was applied."""
    found = lab.get("faults")["faults"]
    return Shown(found, lambda: _faults(found))


@lab_command("show", watch=True)
@click.argument("number", type=int)
def show(lab: Lab, number: int) -> Shown:
    """Show the rule NUMBER with its latest applications."""
    found: FaultView = lab.get(f"faults/{number}")
    latest = [{**one} for one in found.get("latest", [])]
    return Shown(found, lambda: [*_faults([found]), *table(("at_ms", "match", "what"), latest, "  ")])


@lab_command("remove")
@click.option("-a", "--all", "everything", is_flag=True, help="Remove all rules.")
@click.argument("numbers", type=int, nargs=-1)
def remove(lab: Lab, numbers: tuple[int, ...], everything: bool) -> Shown:
    """Remove the rules with these NUMBERS; none of them if one does not exist."""
    if everything == bool(numbers):
        raise click.UsageError("name the rules to remove, or --all")
    if everything:
        found = lab.delete("faults")["faults"]
    else:
        paths = [f"faults/{one}" for one in dict.fromkeys(numbers)]
        for path in paths:
            lab.get(path)
        found = [lab.delete(path) for path in paths]
    return Shown(found, lambda: _faults(found))


def _faults(found: Iterable[FaultView]) -> Iterator[str]:
    columns = ("number", "what", "for", "matched", "applied", "left", "ends_in_ms")
    return table(columns, ({**one, "what": one["text"], "for": _words(one["fault"])} for one in found))


def _words(asked: Mapping[str, object]) -> str:
    """What a rule or a hold is for."""
    units = {"duration": "ms"}
    words = (f"{name}={value}{units.get(name, '')}" for name, value in asked.items() if name not in ("action", "at"))
    return " ".join(words) or "all"


@click.group("requests")
def requests() -> None:
    """Hold single requests and replies, look at them, and let them go on in any order."""


@lab_command("hold")
@with_match
@click.option("--at", type=click.Choice(["request", "reply"]), help="Before the handling, or before the reply is sent.")
def hold(lab: Lab, **asked: object) -> Shown:
    """Hold requests from now on."""
    found = lab.post("requests/holds", {name: value for name, value in asked.items() if value is not None})
    return Shown(found, lambda: _holds([found]))


@lab_command("holds")
def holds(lab: Lab) -> Shown:
    """List the holds."""
    found = lab.get("requests/holds")["holds"]
    return Shown(found, lambda: _holds(found))


@lab_command("end")
@click.argument("number", type=int)
def end(lab: Lab, number: int) -> Shown:
    """End the hold NUMBER; what it holds goes on."""
    found = lab.delete(f"requests/holds/{number}")
    return Shown(found, lambda: _holds([found]))


def _holds(found: Iterable[HoldView]) -> Iterator[str]:
    rows = ({**one, "at": one["asked"].get("at", "request"), "for": _words(one["asked"])} for one in found)
    return table(("number", "at", "for", "held", "waiting"), rows)


HOLD = click.option("--hold", "of_hold", type=int, help="Only those of this hold.")


@lab_command("list", watch=True)
@HOLD
@click.option("--at-least", type=int, help="Wait until so many are held.")
@click.option("--within", help="How long to wait.  [default: 10s]")
def list_requests(lab: Lab, of_hold: int | None, at_least: int | None, within: str | None) -> Shown:
    """List what is held, oldest first. --json shows the requests and replies with all their fields."""
    found: list[HeldView] = lab.get("requests", hold=of_hold, at_least=at_least, within=within)["requests"]
    columns = ("number", "hold", "at", "waiting_ms", "api", "version", "correlation_id", "client_id", "client")
    return Shown(found, lambda: table(columns, found))


@lab_command("release")
@HOLD
@click.option("-n", "--count", type=int, help="Only so many, the oldest first.")
@click.option("--close", is_flag=True, help="Close their connections instead.")
@click.argument("numbers", type=int, nargs=-1)
def release(lab: Lab, numbers: tuple[int, ...], of_hold: int | None, count: int | None, close: bool) -> Shown:
    """Let the requests with these NUMBERS go on, in this order; without NUMBERS all, or those of a hold."""
    given: dict[str, object | None] = {"requests": list(numbers) or None, "hold": of_hold, "count": count}
    body = {name: value for name, value in given.items() if value is not None}
    found = lab.post("requests/release", {**body, "then": "close" if close else "go-on"})["released"]
    return Shown(found, lambda: [" ".join(map(str, found))] if found else [])


for _one in (add, list_, show, remove):
    fault.add_command(_one)
for _one in (hold, holds, list_requests, release, end):
    requests.add_command(_one)
