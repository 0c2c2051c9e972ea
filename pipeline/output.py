"""Writes a report as text, CSV, JSON, Parquet or an HTML page. Rows are streamed; a page and a screen show the first
rows and the total. Each table is computed once, and counted while it is written; several are at the same time, except
for CSV and JSON.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING, NamedTuple

import click

from ..protocol.text import printable
from .plain import plain
from .threads import at_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .jobs import Report

FORMATS = ("table", "csv", "json", "parquet", "html")
SHOWN_ROWS = 40
CELL_WIDTH = 60
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


_Writer = Callable[[str, "DataFrame", IO[str]], int]


class Written(NamedTuple):
    """Where a report was written, None for stdout, and how many findings it has."""

    where: str | None
    findings: int


def write(report: Report, title: str, kind: str, out: str | None) -> Written:
    """Writes a report as one of FORMATS to `out`, a file for html and a directory otherwise; to stdout if it is None.
    Raises OSError; ValueError for a format that needs a file.
    """
    where = out or f"ottla-{title.split(maxsplit=1)[0]}.html" if kind == "html" else out
    rows = _written(report, title, kind, where)
    return Written(where, rows[report.findings] if report.findings is not None else 0)


def _written(report: Report, title: str, kind: str, out: str | None) -> dict[str, int]:
    """Returns how many rows the tables have; of those in Parquet only the findings are counted."""
    if kind == "html":
        from .page import write_page

        assert out is not None
        return write_page(report, title, out)
    if kind == "parquet":
        if out is None:
            raise ValueError("--format parquet needs --out")
        at_once(
            [
                partial(frame.write.mode("overwrite").parquet, os.path.join(out, name))
                for name, frame in report.tables.items()
            ]
        )
        found = report.findings
        return {} if found is None else {found: _in_parquet(report.tables[found], os.path.join(out, found))}
    if kind == "table":
        first = at_once([partial(_first, frame) for frame in report.tables.values()])
        write: _Writer = partial(_print_table, dict(zip(report.tables, first, strict=True)))
    else:
        write = (_PRINTERS if out is None else _FILES)[kind]
    rows = {}
    for name, frame in report.tables.items():
        with _file(out, name, kind) as file:
            rows[name] = write(name, frame, file)
    return rows


@contextmanager
def _file(out: str | None, name: str, kind: str) -> Iterator[IO[str]]:
    """Opens the file of a table in the directory `out`; stdout if that is None."""
    if out is None:
        yield sys.stdout
        return
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, f"{name}.{_SUFFIXES[kind]}"), "w", encoding="utf-8", newline="") as file:
        yield file


def _in_parquet(frame: DataFrame, path: str) -> int:
    return frame.sparkSession.read.schema(frame.schema).parquet(path).count()  # reads the ends of the files alone


def _rows(frame: DataFrame) -> Iterator[dict[str, object]]:
    return ({name: plain(value) for name, value in row.asDict().items()} for row in frame.toLocalIterator())


def _first(frame: DataFrame) -> list[list[object]]:
    """Returns the rows of a table that are shown, and one more."""
    return [[plain(value) for value in row] for row in frame.limit(SHOWN_ROWS + 1).collect()]


def _print_table(first: Mapping[str, list[list[object]]], name: str, frame: DataFrame, file: IO[str]) -> int:
    rows = first[name]
    click.echo(f"\n{name}", file=file)
    if not rows:
        click.echo("  none", file=file)
        return 0
    for line in aligned(frame.columns, rows[:SHOWN_ROWS]):
        click.echo(f"  {line}", file=file)
    if len(rows) <= SHOWN_ROWS:
        return len(rows)
    total = frame.count()
    click.echo(f"  … {total - SHOWN_ROWS:,} more rows; --format csv, json or parquet writes all of them", file=file)
    return total


def aligned(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Yields lines with aligned columns."""
    cells = [list(columns), *([_cell(one) for one in row] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _cell(value: object) -> str:
    text = "-" if value is None else printable(str(value))
    return text if len(text) <= CELL_WIDTH else text[: CELL_WIDTH - 1] + "…"


def _write_csv(name: str, frame: DataFrame, file: IO[str]) -> int:
    writer = csv.writer(file)
    writer.writerow(frame.columns)
    count = 0
    for row in _rows(frame):
        count += 1
        writer.writerow([json.dumps(one) if isinstance(one, list | dict) else _harmless(one) for one in row.values()])
    return count


def _harmless(value: object) -> object:
    """Puts an apostrophe before a text that a spreadsheet would take for a formula; spreadsheets do not show it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value


def _write_lines(name: str, frame: DataFrame, file: IO[str]) -> int:
    return _put((json.dumps(row) for row in _rows(frame)), file)


def _print_csv(name: str, frame: DataFrame, file: IO[str]) -> int:
    click.echo(f"# {name}", file=file)
    return _write_csv(name, frame, file)


def _print_json(name: str, frame: DataFrame, file: IO[str]) -> int:
    return _put((json.dumps({"table": name, **row}) for row in _rows(frame)), file)


def _put(lines: Iterable[str], file: IO[str]) -> int:
    """Writes lines; returns how many."""
    count = 0
    for line in lines:
        count += 1
        click.echo(line, file=file)
    return count


_SUFFIXES = {"table": "txt", "csv": "csv", "json": "jsonl"}
_FILES = {"csv": _write_csv, "json": _write_lines}
_PRINTERS = {"csv": _print_csv, "json": _print_json}
