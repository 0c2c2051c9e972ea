"""Cases that a program with Kafka's own classes answers, a line of JSON each, and the file that keeps the answers."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .kafka import program

Answer = dict[str, str]
ANSWER = "answer "


def lines(name: str, cases: Sequence[object], begin: str) -> list[str]:
    """Returns the lines with which the program `java/{name}.java` answers the cases in turn; each begins so."""
    with tempfile.TemporaryDirectory() as folder:
        command = program("broker", name, Path(folder))
        asked = "".join(json.dumps(case) + "\n" for case in cases)
        done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, timeout=600)
    found = [line for line in done.stdout.splitlines() if line.startswith(begin)]
    assert len(found) == len(cases), done.stderr[-2000:]
    return found


def words(name: str, cases: Sequence[object]) -> list[str]:
    """Returns what a program whose `main` calls `Answers.print` says of each case."""
    return [line.removeprefix(ANSWER).strip() for line in lines(name, cases, ANSWER)]


def ask(name: str, cases: Sequence[object]) -> list[Answer]:
    """Returns the objects with which a program answers."""
    return [json.loads(line) for line in lines(name, cases, "{")]


def read(path: Path) -> list[Answer]:
    loaded: list[Answer] = json.loads(path.read_text())
    return loaded


def write(path: Path, answers: list[Answer]) -> None:
    path.write_text("[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in answers) + "\n]\n")
    print(f"{len(answers)} answers, {sum('error' in one for one in answers)} of them errors")
