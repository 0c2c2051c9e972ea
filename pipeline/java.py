"""Finds the Java that Spark uses, checks its version, and speeds up its start."""

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
    """Raises RuntimeError, with advice, if there is no Java, or one older than 17."""
    java, version = _java()
    found = re.search(r'version "(?:1\.)?(\d+)', version)
    if found is not None and int(found[1]) < OLDEST:
        raise RuntimeError(f"Spark needs Java {OLDEST} or newer, but {java} is version {found[1]}")


def _java() -> tuple[str, str]:
    """Returns the path of Java and its version output. Raises RuntimeError."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        where = (
            f"JAVA_HOME is {home}, which contains no java"
            if home
            else "there is no java on the PATH, and JAVA_HOME is not set"
        )
        raise RuntimeError(f"Spark needs Java {OLDEST} or newer: {where}")
    return java, _version(java)


@lru_cache
def _version(java: str) -> str:
    return subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr


def cache_directory() -> Path:
    """Returns the cache directory, by the XDG base directory specification."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "ottla")


def class_archive(directory: Path, jars: Path, name: str = "spark", create: bool = True) -> str:
    """Returns options for Java to load Spark's classes from an archive (class data sharing), or to create it at exit if
    there is none; without `create` none then.

    Loading and verifying classes takes a third of the time of a small job. An archive belongs to one Java and one
    directory of `jars`; Java ignores one that does not match or is incomplete. `name`: of programs that need the same
    classes; the ARCHIVES_MAX most recently used archives stay in `directory`. Raises RuntimeError without Java.
    """
    java, version = _java()
    quiet = "-Xlog:disable -Xlog:all=error:stderr"
    try:
        what = repr((java, version, str(jars), jars.stat().st_mtime_ns))
        archive = directory / f"{name}-{hashlib.sha256(what.encode()).hexdigest()[:16]}.jsa"
        if archive.exists():
            archive.touch()
            return f'{quiet} -XX:SharedArchiveFile="{archive}"'
        if not create:
            return ""
        directory.mkdir(parents=True, exist_ok=True)
        for old in sorted(directory.glob(f"{name}-*.jsa"), key=lambda one: one.stat().st_mtime, reverse=True)[
            ARCHIVES_MAX - 1 :
        ]:
            old.unlink()
    except OSError:  # the home directory does not exist or is not writable: Java starts without the archive
        return ""
    return f'{quiet} -XX:ArchiveClassesAtExit="{archive}"'
