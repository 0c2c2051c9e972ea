"""Runs the commands of a documentation page, in order, as a reader would, and compares what they print.

In a page:

    ```{code-block} python        a file, where it has the caption of one
    :caption: produce.py
    ```
    ```{code-block} console       a command that runs beside the others until the page ends
    :caption: Terminal 1
    $ ottla serve --lab
    ```
    ```console                    commands, each with what it prints; `...` stands for anything, no lines for whatever
                                  it prints
    $ python produce.py
    offset 0
    ```

On pages that are shown without Sphinx, the line above a block names the file, and a `diff` changes a file:

    `broker/config/docs.py`:

    ```diff
     OWN_DOCS = {
    +    "ottla.my.key": "What it does.",
    ```

Ports and directories of a page are those that a reader has; here each run has its own, and pages know nothing of it.
"""

from __future__ import annotations

import doctest
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ottla import pipeline

BLOCK = re.compile(
    r"^```(?:\{code-block\} )?(?P<kind>\w+)\n(?P<options>(?::\w+:[^\n]*\n)*)\n?(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NAMED = re.compile(r"`(?P<file>[\w./-]+)`:")
SERVES = re.compile(r"^  stop ", re.MULTILINE)
START_SECONDS_MAX, COMMAND_SECONDS_MAX = 60.0, 800.0


@dataclass
class Step:
    """A file to write or to change, or a command with what it prints (None: anything)."""

    file: str = ""
    text: str = ""
    is_change: bool = False
    command: str = ""
    beside: bool = False
    expected: str | None = None


def steps(page: str) -> Iterator[Step]:
    """What a page asks its reader to do."""
    file = ""
    for block in BLOCK.finditer(page):
        caption = re.search(r"^:caption: (.+)$", block["options"], re.MULTILINE)
        named = NAMED.fullmatch(page[: block.start()].rstrip().rpartition("\n")[2])
        file = named["file"] if named is not None else file
        if block["kind"] == "console":
            yield from _commands(block["body"], beside=caption is not None)
        elif block["kind"] == "diff":
            yield Step(file=file, text=block["body"], is_change=True)
        elif caption is not None or named is not None:
            yield Step(file=caption[1] if caption is not None else file, text=block["body"])


def _commands(body: str, beside: bool) -> Iterator[Step]:
    parts = re.split(r"^\$ ", body, flags=re.MULTILINE)
    assert not parts[0].strip(), f"a console block begins with a command: {parts[0]!r}"
    for part in parts[1:]:
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = f"{command[:-1]}{more.removeprefix('>').strip()}"
        yield Step(command=command, beside=beside, expected=expected if expected.strip() else None)


def changed(text: str, change: str) -> str:
    """Returns `text` after a change: lines that begin with a space stay, `-` goes, `+` comes. AssertionError unless the
    text has the lines before the change exactly once.
    """
    lines = change.splitlines(keepends=True)
    before, after = ("".join(line[1:] or "\n" for line in lines if line[0] in kept) for kept in (" -\n", " +\n"))
    assert text.count(before) == 1, f"to be changed, and there {text.count(before)} times:\n{before}"
    return text.replace(before, after)


@dataclass
class Reader:
    """A reader who follows a page in `directory`; `ports` maps the page's ports to free ones."""

    directory: Path
    ports: dict[str, str]
    environment: dict[str, str] = field(default_factory=dict)
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def follow(self, page: str) -> None:
        """AssertionError where a command fails or prints something else than the page says."""
        try:
            for step in steps(page):
                self._take(step)
        finally:
            for process in self.running:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
                assert process.stdout is not None
                process.stdout.close()

    def _take(self, step: Step) -> None:
        if step.file:
            path = self.directory / step.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(changed(path.read_text(), step.text) if step.is_change else self._here(step.text))
        elif step.beside:
            self._begin(step.command)
        else:
            self._run(step)

    def _here(self, text: str) -> str:
        for page, here in self.ports.items():
            text = text.replace(page, here)
        return text

    def _as_page(self, text: str) -> str:
        for page, here in self.ports.items():
            text = text.replace(here, page)
        return text

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "OTTLA_LAB": f"http://127.0.0.1:{self.ports.get('9644', '')}",
            "COLUMNS": "140",
            "JDK_JAVA_OPTIONS": pipeline.SMALL[pipeline.JAVA_OPTIONS],  # the pages have little work for Spark
            **self.environment,
        }

    def _begin(self, command: str) -> None:
        words = self._here(command)
        if "ottla serve" in words:
            listener, lab = self.ports["9092"], self.ports["9644"]
            words = words.replace("--lab", f"ottla.lab.port={lab}")
            words += "" if "listeners=" in words else f" listeners=PLAINTEXT://127.0.0.1:{listener}"
        with tempfile.NamedTemporaryFile() as errors:
            process = subprocess.Popen(
                f"exec {words}",
                shell=True,
                cwd=self.directory,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self._environment(),
                start_new_session=True,
            )
            self.running.append(process)
            self._await_service(command, process, Path(errors.name))

    def _await_service(self, command: str, process: subprocess.Popen[str], errors: Path) -> None:
        assert process.stdout is not None
        printed = ""
        while not SERVES.search(printed):
            line = process.stdout.readline()
            assert line, f"{command} ended: {printed}{errors.read_text()}"
            printed += line

    def _run(self, step: Step) -> None:
        done = subprocess.run(
            self._here(step.command),
            shell=True,
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_SECONDS_MAX,
            env=self._environment(),
        )
        assert done.returncode == 0, f"$ {step.command}\nends with {done.returncode}:\n{done.stdout}{done.stderr}"
        if step.expected is None:
            return
        printed = "\n".join(line.rstrip() for line in self._as_page(done.stdout).strip().splitlines()) + "\n"
        wanted = "\n".join(line.rstrip() for line in step.expected.strip().splitlines()) + "\n"
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(wanted, printed, flags), (
            f"$ {step.command}\nprints\n{printed}\nand the page says\n{wanted}"
        )
