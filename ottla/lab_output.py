"""What the commands for a running broker share: options, tables, JSON, refreshing, errors as exit codes.

    @lab_command(watch=True)
    @click.argument("names", nargs=-1)
    def topics(lab: Lab, names: tuple[str, ...]) -> Shown:
        \"""Show topics and their partitions.\"""
        found = [one for one in lab.every("topics", "topics") if not names or one["topic"] in names]
        return Shown(found, lambda: table(("topic", "topic_id"), found))

Such a command has --lab, --json and, with `watch`, --watch.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import click

from .lab_client import Lab, LabRefused, LabUnreachable
from .protocol.text import printable

EXIT_REFUSED, EXIT_UNREACHABLE = 1, 3
UNAUTHORIZED = 401
REFRESH_S = 1.0
NESTED_MAX = 400  # characters of a list in the cell of a table

LAB = click.option(
    "--lab",
    "url",
    default="http://127.0.0.1:9644",
    envvar="OTTLA_LAB",
    show_default=True,
    metavar="URL",
    help="The broker's lab port, also in the variable OTTLA_LAB. OTTLA_LAB_TOKEN holds its ottla.lab.token.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
WATCH = click.option("-w", "--watch", is_flag=True, help="Refresh every second until Ctrl-C; with --json a line each.")


class Shown(NamedTuple):
    """What a command prints: the value with --json, otherwise the lines. `exit_code`: of the command."""

    value: object
    lines: Callable[[], Iterable[str]]
    exit_code: int = 0


Command = Callable[..., Shown]


def lab_command(name: str | None = None, *, watch: bool = False) -> Callable[[Command], click.Command]:
    """Makes a command of a function that takes a Lab and its options."""

    def decorate(function: Command) -> click.Command:
        @functools.wraps(function)
        def run(url: str, as_json: bool, **options: object) -> None:
            watching = bool(options.pop("watch")) if watch else False
            with errors_as_exit_codes():
                show(lambda: function(Lab(url), **options), as_json, watching)

        made: Callable[..., None] = run
        for option in (WATCH, JSON, LAB) if watch else (JSON, LAB):
            made = option(made)
        return click.command(name)(made)

    return decorate


class errors_as_exit_codes:  # a context manager is named like a function
    """Ends the program where a broker refuses a request (`refused`) or none answers (3), and says so."""

    def __init__(self, refused: int = EXIT_REFUSED) -> None:
        self._refused = refused

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, LabRefused | LabUnreachable):
            lacks_token = isinstance(error, LabRefused) and error.status == UNAUTHORIZED
            hint = "; the variable OTTLA_LAB_TOKEN gives it" if lacks_token else ""
            click.echo(printable(f"ottla: {error}{hint}"), err=True)
            sys.exit(self._refused if isinstance(error, LabRefused) else EXIT_UNREACHABLE)


def show(ask: Callable[[], Shown], as_json: bool, watching: bool = False) -> None:
    """Prints what a function returns, once or every second until Ctrl-C."""
    import time

    while True:
        found = ask()
        if as_json:
            click.echo(json.dumps(found.value, indent=None if watching else 2))
        else:
            text = "\n".join(found.lines())
            if watching:
                click.clear()
            if text:
                click.echo(text)
        if not watching:
            break
        try:
            time.sleep(REFRESH_S)
        except KeyboardInterrupt:
            break
    if found.exit_code:
        sys.exit(found.exit_code)


def table(columns: Sequence[str], rows: Iterable[Mapping[str, object]], indent: str = "") -> Iterator[str]:
    """Yields the lines of a table: the columns' names, and a line for each row; `-` stands for None."""
    lines = [tuple(map(printable, columns)), *(tuple(_cell(row.get(one)) for one in columns) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        yield indent + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _cell(value: object) -> str:
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value) if _is_nested(value) else str(value)
    if isinstance(value, list) and len(text) > NESTED_MAX:
        text = f"{len(value)} values, which --json shows"
    return printable(text)


def _is_nested(value: object) -> bool:
    return isinstance(value, Mapping | list | bool)


def anything(value: object, indent: str = "") -> Iterator[str]:
    """Yields lines for any JSON: lists of objects as tables, objects as a line for each key."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            if (isinstance(one, list) and one and isinstance(one[0], Mapping)) or (isinstance(one, Mapping) and one):
                yield f"{indent}{printable(str(key))}:"
                yield from anything(one, f"{indent}  ")
            else:
                yield f"{indent}{printable(str(key))}: {_cell(one)}"
    elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        columns = list(dict.fromkeys(str(key) for one in value for key in one))
        yield from table(columns, value, indent)
    elif isinstance(value, list):
        yield from (f"{indent}{_cell(one)}" for one in value)
    else:
        yield f"{indent}{_cell(value)}"
