"""What is measured side by side: ottla, its compiled form (`make compiled`, or a wheel), Apache Kafka, and kfake, the
broker in memory of franz-go.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from ottla.testing import Broker

from ..oracle import jars
from ..oracle.kafka import Kafka

SIDES: Final = ("ottla", "compiled", "kafka", "kfake")
COMPILED: Final = "OTTLA_COMPILED_PYTHON"  # the Python of an environment with the compiled form
KFAKE: Final = Path(__file__).parent / "kfake"


class Compiled(Broker):
    """The compiled form."""

    def _command(self) -> list[str]:
        _, *arguments = super()._command()
        return [os.environ[COMPILED], "-P", *arguments]  # not the sources of the current directory


class Kfake(Broker):
    """A kfake cluster of one broker, which creates topics that are asked for. It takes no settings and has no files."""

    def _command(self) -> list[str]:
        return [_built()]


Server = Broker | Kafka


@cache
def _built() -> str:
    program = Path(tempfile.mkdtemp(prefix="bench-kfake-")) / "kfake"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=KFAKE, check=True, timeout=600)
    return str(program)


def missing(side: str) -> str | None:
    """Why a side cannot be measured here; None if it can."""
    if side == "kafka":
        return jars.missing()
    if side == "kfake" and shutil.which("go") is None:
        return "needs Go"
    if side == "compiled" and COMPILED not in os.environ:
        return f"needs {COMPILED}"
    return None


def fresh(side: str, **settings: object) -> Server:
    """A server with a new directory that is not started. A Ctrl-C or an error disposes of it, too."""
    directory = Path(tempfile.mkdtemp(prefix=f"bench-{side}-"))
    named = {k.replace("_", "."): v for k, v in settings.items()}
    server: Server
    if side == "kafka":
        server = Kafka(named, directory, quick=False)
    else:
        server = {"compiled": Compiled, "kfake": Kfake}.get(side, Broker)(named, directory=directory, lab=False)
    atexit.register(dispose, server)
    return server


def dispose(server: Server) -> None:
    server.close() if isinstance(server, Broker) else server.stop()
    shutil.rmtree(server.directory, ignore_errors=True)


def dispose_at_exit(server: Server) -> None:
    """Stops a server of `fresh` with very many files, which are removed when all is measured.

    An ext4 without a journal passes over each inode that was removed in the last minutes when it makes another one, so
    that whoever is measured after the removal would pay a multiple for each new file.
    """
    server.stop()
