"""The Java that Spark starts: whether it is there and new enough, and how it starts sooner."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

OLDEST = 17
ARCHIVES_MAX = 2


def check_java() -> None:
    """RuntimeError, with what to do, when there is no Java, or one older than 17."""
    java, version = _java()
    found = re.search(r'version "(?:1\.)?(\d+)', version)
    if found is not None and int(found[1]) < OLDEST:
        raise RuntimeError(f"Spark needs Java {OLDEST} or newer, and {java} is {found[1]}")


def _java() -> tuple[str, str]:
    """The program, and what it says of itself. RuntimeError."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        where = f"JAVA_HOME is {home}, where there is none" if home else "there is none on the PATH, and JAVA_HOME is not set"
        raise RuntimeError(f"Spark needs Java {OLDEST} or newer: {where}")
    return java, _version(java)


@lru_cache
def _version(java: str) -> str:
    return subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr


def cache_directory() -> Path:
    """Where what can be made again is kept, by the XDG base directory specification."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "ottla")


def class_archive(directory: Path, jars: Path, name: str = "spark") -> str:
    """Options for a Java that takes the classes of Spark out of an archive, or makes it when it ends where there is none yet.

    Loading and checking them is a third of what a small job takes. An archive is of one Java and one directory of `jars`; Java passes over
    one that does not fit or is not whole. `name`: of programs that need the same classes; of its archives in `directory` the ARCHIVES_MAX
    that were used last stay. RuntimeError without Java.
    """
    java, version = _java()
    quiet = "-Xlog:disable -Xlog:all=error:stderr"
    try:
        what = repr((java, version, str(jars), jars.stat().st_mtime_ns))
        archive = directory / f"{name}-{hashlib.sha256(what.encode()).hexdigest()[:16]}.jsa"
        if archive.exists():
            archive.touch()
            return f'{quiet} -XX:SharedArchiveFile="{archive}"'
        directory.mkdir(parents=True, exist_ok=True)
        for old in sorted(directory.glob(f"{name}-*.jsa"), key=lambda one: one.stat().st_mtime, reverse=True)[ARCHIVES_MAX - 1 :]:
            old.unlink()
    except OSError:  # a home that is not there or not ours: Java starts as it would without
        return ""
    return f'{quiet} -XX:ArchiveClassesAtExit="{archive}"'
