"""Writes a report as text, CSV, JSON, Parquet or an HTML page. Rows are streamed; a page and a screen show the first
rows and the total.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING

import click

from ..protocol.text import printable
from .plain import plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .jobs import Report

FORMATS = ("table", "csv", "json", "parquet", "html")
SHOWN_ROWS = 40
CELL_WIDTH = 60
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def write(report: Report, title: str, kind: str, out: str | None) -> str | None:
    """Writes a report as one of FORMATS to `out`, a file for html and a directory otherwise; to stdout if it is None.

    Returns where it was written. Raises OSError; ValueError for a format that needs a file.
    """
    if kind == "html":
        from .page import write_page

        path = out or f"ottla-{title.split(maxsplit=1)[0]}.html"
        write_page(report, title, path)
        return path
    if kind == "parquet":
        if out is None:
            raise ValueError("--format parquet needs --out")
        for name, frame in report.tables.items():
            frame.write.mode("overwrite").parquet(os.path.join(out, name))
        return out
    if out is None:
        for name, frame in report.tables.items():
            _PRINTERS[kind](name, frame, sys.stdout)
        return None
    os.makedirs(out, exist_ok=True)
    for name, frame in report.tables.items():
        suffix, writer = _FILES[kind]
        with open(os.path.join(out, f"{name}.{suffix}"), "w", encoding="utf-8", newline="") as file:
            writer(name, frame, file)
    return out


def _rows(frame: DataFrame) -> Iterator[dict[str, object]]:
    return ({name: plain(value) for name, value in row.asDict().items()} for row in frame.toLocalIterator())


def _print_table(name: str, frame: DataFrame, file: IO[str]) -> None:
    rows = [[plain(value) for value in row] for row in frame.limit(SHOWN_ROWS + 1).collect()]
    click.echo(f"\n{name}", file=file)
    if not rows:
        click.echo("  none", file=file)
        return
    for line in aligned(frame.columns, rows[:SHOWN_ROWS]):
        click.echo(f"  {line}", file=file)
    if len(rows) > SHOWN_ROWS:
        click.echo(
            f"  … {frame.count() - SHOWN_ROWS:,} more rows; --format csv, json or parquet writes all of them", file=file
        )


def aligned(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Yields lines with aligned columns."""
    cells = [list(columns), *([_cell(one) for one in row] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _cell(value: object) -> str:
    text = "-" if value is None else printable(str(value))
    return text if len(text) <= CELL_WIDTH else text[: CELL_WIDTH - 1] + "…"


def _write_csv(name: str, frame: DataFrame, file: IO[str]) -> None:
    writer = csv.writer(file)
    writer.writerow(frame.columns)
    for row in _rows(frame):
        writer.writerow([json.dumps(one) if isinstance(one, list | dict) else _harmless(one) for one in row.values()])


def _harmless(value: object) -> object:
    """Puts an apostrophe before a text that a spreadsheet would take for a formula; spreadsheets do not show it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value


def _write_lines(name: str, frame: DataFrame, file: IO[str]) -> None:
    for row in _rows(frame):
        file.write(json.dumps(row) + "\n")


def _print_csv(name: str, frame: DataFrame, file: IO[str]) -> None:
    click.echo(f"# {name}", file=file)
    _write_csv(name, frame, file)


def _print_json(name: str, frame: DataFrame, file: IO[str]) -> None:
    for row in _rows(frame):
        click.echo(json.dumps({"table": name, **row}), file=file)


_FILES = {"table": ("txt", _print_table), "csv": ("csv", _write_csv), "json": ("jsonl", _write_lines)}
_PRINTERS = {"table": _print_table, "csv": _print_csv, "json": _print_json}
