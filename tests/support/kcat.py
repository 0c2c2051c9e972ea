"""kcat: the system's, or that of Debian's package, unpacked in a cache folder."""

from __future__ import annotations

import os
import shlex
import shutil

from .debian import Missing, libraries, unpacked

__all__ = ["Missing", "put_on_path"]


def put_on_path() -> None:
    """Makes the command `kcat` one of this process and of those that it starts. Raises Missing."""
    if shutil.which("kcat") is not None:
        return
    folder = unpacked("kcat", "kcat")
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    found = shlex.quote(libraries(folder)["LD_LIBRARY_PATH"])
    script = programs / f".kcat.{os.getpid()}"  # tests that run beside each other write the same
    script.write_text(
        f"#!/bin/sh\nexport LD_LIBRARY_PATH={found}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\n"
        f'exec {shlex.quote(str(folder / "root" / "usr" / "bin" / "kcat"))} "$@"\n'
    )
    script.chmod(0o755)
    script.replace(programs / "kcat")
    os.environ["PATH"] += f"{os.pathsep}{programs}"
