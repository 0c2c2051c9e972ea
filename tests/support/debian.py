"""Debian's packages, with those that they need and that this machine does not have, unpacked in a cache folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path


class Missing(RuntimeError):
    """The packages cannot be had here; the message says why."""


def unpacked(name: str, *packages: str) -> Path:
    """Returns the folder with the unpacked packages, in `root`: that of the variable OTTLA_NAME_HOME, or one in the
    user's cache. What this machine has already is not in it. Raises Missing.
    """
    folder = Path(os.environ.get(f"OTTLA_{name.upper()}_HOME") or Path.home() / ".cache" / f"ottla-{name}")
    absent = [one for one in ("apt-get", "dpkg-deb") if shutil.which(one) is None]
    if absent and not (folder / ".complete").exists():
        raise Missing(f"{name} needs {' and '.join(absent)} on the PATH")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that run beside each other fetch once
        if not (folder / ".complete").exists():
            _unpack(folder, name, packages)
            (folder / ".complete").touch()
    return folder


def libraries(folder: Path) -> dict[str, str]:
    """The environment in which unpacked programs find their libraries."""
    root = folder / "root"
    # also in folders below, such as pulseaudio: a library names those by their absolute paths, which are elsewhere here
    paths = (path for lib in (root / "usr" / "lib", root / "lib") for path in lib.glob("*-linux-gnu*/**/*.so*"))
    found = sorted({path.parent for path in paths})
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(map(str, found))}


def _run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)


def _unpack(folder: Path, name: str, packages: tuple[str, ...]) -> None:
    debs = folder / "debs"
    debs.mkdir(exist_ok=True)
    simulate = ("apt-get", "--simulate", "install", "--no-install-recommends", *packages)
    wanted = _run(*simulate)
    if wanted.returncode:  # without lists of packages
        _run("apt-get", "update")
        wanted = _run(*simulate)
    names = [line.split()[1] for line in wanted.stdout.splitlines() if line.startswith("Inst ")] or list(packages)
    done = _run("apt-get", "download", *names, cwd=debs)
    if done.returncode:  # with old lists
        _run("apt-get", "update")
        done = _run("apt-get", "download", *names, cwd=debs)
    if done.returncode:
        raise Missing(f"Debian's packages of {name} cannot be had: {done.stderr[-500:]}")
    for deb in sorted(debs.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", str(deb), str(folder / "root")], check=True, timeout=120)
        deb.unlink()
