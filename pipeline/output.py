"""A report as text, CSV, JSON, Parquet or a page. Rows go through one at a time; a page and a screen show the first ones, and how many there are."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .jobs import Report

FORMATS = ("table", "csv", "json", "parquet", "html")
SHOWN_ROWS = 40
CELL_WIDTH = 60


def write(report: Report, title: str, kind: str, out: str | None) -> str | None:
    """Writes a report as one of FORMATS to `out`, a file for html and else a directory; to stdout where it is None.

    Returns where it was written. OSError; ValueError for a format that has to go to a file.
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


def plain(value: Any) -> Any:
    """A value of a row as JSON has it: times in ISO 8601, bytes as text or hex."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return "0x" + value.hex()
    if hasattr(value, "asDict"):
        return {name: plain(one) for name, one in value.asDict().items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def _rows(frame: DataFrame) -> Iterator[dict[str, Any]]:
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
        click.echo(f"  … {frame.count() - SHOWN_ROWS:,} more; --format csv, json or parquet has all of them", file=file)


def aligned(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Lines with columns side by side."""
    cells = [list(columns), *([_cell(one) for one in row] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _cell(value: Any) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= CELL_WIDTH else text[: CELL_WIDTH - 1] + "…"


def _write_csv(name: str, frame: DataFrame, file: IO[str]) -> None:
    writer = csv.writer(file)
    writer.writerow(frame.columns)
    for row in _rows(frame):
        writer.writerow([json.dumps(one) if isinstance(one, list | dict) else one for one in row.values()])


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
