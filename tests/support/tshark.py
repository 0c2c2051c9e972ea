"""Wireshark's tshark: Debian's package."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from .debian import Missing, libraries, unpacked

__all__ = ["Missing", "install", "tshark"]


def install() -> Path:
    """Returns the folder with the unpacked packages. Raises Missing."""
    return unpacked("tshark", "tshark")


def tshark(*arguments: str) -> str:
    """Runs tshark; returns what it prints. Raises Missing."""
    folder = install()
    found = folder / "root/usr/bin/tshark"
    program = str(found) if found.exists() else shutil.which("tshark")  # the system may have it
    if program is None:
        raise Missing("Debian's package of tshark has no program")
    environment = {
        **libraries(folder),
        "WIRESHARK_DATA_DIR": str(folder / "root/usr/share/wireshark"),
        "HOME": str(folder),
    }
    command = [program, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
