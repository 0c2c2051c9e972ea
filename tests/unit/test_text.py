"""Names that peers chose cannot steer a terminal, forge a line of a log, be a formula, or stop a tool with a file of
another kind.
"""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ottla.pipeline.committed import committed
from ottla.pipeline.directory import Directory
from ottla.pipeline.output import _harmless, aligned
from ottla.protocol.text import printable

from ottla.dump import dump_file
from ottla.lab_output import anything, table
from ottla.serving import LogLines

EVIL = "g\x1b]0;owned\x07\x1b[2J\u202e\u009b31m\n2026 ERROR forged"


def is_harmless(text: str) -> bool:
    return text.replace("\n", "").isprintable()


def test_what_cannot_be_printed_is_an_escape() -> None:
    assert printable("a\x1b[1mß漢\u202e\ud800") == "a\\x1b[1mß漢\\u202e\\ud800"
    assert printable("a\n\tb\x00", keep="\n\t") == "a\n\tb\\x00"


def test_tables_of_the_command_and_the_pipeline() -> None:
    shown = list(table(("group", "state"), [{"group": EVIL, "state": None}]))
    assert len(shown) == 2
    assert all(is_harmless(line) for line in shown)
    assert all(is_harmless(line) for line in anything({EVIL: EVIL, "a": {EVIL: [EVIL]}, "b": [{EVIL: EVIL}]}))
    assert all(is_harmless(line) for line in aligned(("group",), [(EVIL,)]))


def test_lines_of_the_log() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogLines("%(levelname)s %(message)s"))
    log = logging.Logger("t")
    log.addHandler(handler)
    try:
        raise ValueError(EVIL)
    except ValueError:
        log.exception("group %s failed", EVIL)
    lines = stream.getvalue().splitlines()
    assert is_harmless(stream.getvalue())
    assert lines[0].endswith("forged failed")
    assert lines[1].startswith("Traceback")


@pytest.mark.parametrize(
    ("cell", "written"), [("=1+1", "'=1+1"), ("+1", "'+1"), ("-x", "'-x"), ("@SUM(A1)", "'@SUM(A1)"), ("\t=1", "'\t=1")]
)
def test_a_cell_of_csv_is_no_formula(cell: str, written: str) -> None:
    assert _harmless(cell) == written


@pytest.mark.parametrize("cell", ["a=1", -5, 1.5, None, True, ""])
def test_a_cell_that_is_no_formula_stays(cell: Any) -> None:
    assert _harmless(cell) is cell


def test_a_dump_of_a_pipe_says_so_and_does_not_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "00000000000000000000.log")
    assert [entry["error"] for entry in dump_file(str(tmp_path / "00000000000000000000.log"))] == ["not a regular file"]


def test_stray_files_of_every_kind_do_not_stop_a_job(tmp_path: Path) -> None:
    inside = tmp_path / "t-0"
    inside.mkdir()
    (inside / "00000000000000000000.log").write_bytes(b"")
    os.mkfifo(inside / "00000000000000000005.log")
    os.mkfifo(inside / "00000000000000000005.snapshot")
    (inside / "00000000000000000006.snapshot").mkdir()
    (inside / "00000000000000000007.log").symlink_to("nowhere")
    (inside / "notes.log").write_text("x")
    (inside / "notes.snapshot").write_text("x")
    (tmp_path / "u-0").write_text("a file with the name of a partition")
    os.mkfifo(tmp_path / "v-0")
    directory = Directory(str(tmp_path))
    assert directory.partitions == [("t", 0)]
    assert [segment.base_offset for segment in directory.segments("t", 0)] == [0]
    assert directory.end_offset("t", 0) == 0
    assert committed(directory, "t", 0).last_stable_offset == 0


def test_a_directory_in_place_of_a_segment_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "t-0" / "00000000000000000006.log").mkdir(parents=True)
    assert [segment.base_offset for segment in Directory(str(tmp_path)).segments("t", 0)] == [6]


@pytest.mark.slow
def test_an_export_names_its_format_as_the_other_jobs_do(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "ottla",
        "pipeline",
        "export",
        str(tmp_path),
        "--topic",
        "t",
        "--out",
        str(tmp_path / "o"),
        "--format",
    ]
    taken = subprocess.run([*command, "parquet"], capture_output=True, text=True, timeout=60, check=False)
    assert "is not the data directory" in taken.stderr
    refused = subprocess.run([*command, "csv"], capture_output=True, text=True, timeout=60, check=False)
    assert (refused.returncode, "'csv' is not 'parquet'" in refused.stderr) == (2, True)
    assert taken.returncode == 2
