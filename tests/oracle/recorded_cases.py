"""Cases that a program with Kafka's own classes answers, a line of JSON each, and the file that keeps the answers."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .kafka import program

Answer = dict[str, str]


def ask(name: str, cases: Sequence[object]) -> list[Answer]:
    """Returns the answers of the program `java/{name}.java`, in the order of the cases."""
    with tempfile.TemporaryDirectory() as folder:
        command = program("broker", name, Path(folder))
        lines = "".join(json.dumps(case) + "\n" for case in cases)
        done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=120)
    answers: list[Answer] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(answers) == len(cases), done.stderr[-2000:]
    return answers


def read(path: Path) -> list[Answer]:
    loaded: list[Answer] = json.loads(path.read_text())
    return loaded


def write(path: Path, answers: list[Answer]) -> None:
    path.write_text("[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in answers) + "\n]\n")
    print(f"{len(answers)} answers, {sum('error' in one for one in answers)} of them errors")
