"""A folder with Spark's programs and jars that has no archive of PySpark's sources.

Spark puts that archive of its folder before what is installed, on the module path of each Python that it starts. Python
keeps no compiled files of an archive, so that the three that plan a query over a data source of a new session would
each spend 0.7 s of the processor on compiling it again.
"""

from __future__ import annotations

import hashlib
import os
import site
import sys
import sysconfig
from pathlib import Path

LINKED = ("bin", "conf", "jars", "sbin")


def lean_home(installed: Path, directory: Path) -> Path:
    """Returns a folder in `directory` that links to an installed PySpark; `installed` itself if that cannot be made, or
    if the Python that Spark would start has another PySpark, or none.
    """
    if not _is_imported(installed):
        return installed
    home = directory / f"spark-{hashlib.sha256(str(installed).encode()).hexdigest()[:16]}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        for name in LINKED:
            if (installed / name).is_dir() and not (home / name).is_symlink():
                _link(installed / name, home / name)
    except OSError:  # the home directory does not exist or is not writable
        return installed
    return home


def _is_imported(installed: Path) -> bool:
    """Whether a Python that Spark starts finds an installed PySpark without Spark's help."""
    if os.environ.get("PYSPARK_PYTHON", sys.executable) != sys.executable:
        return False
    everywhere = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages())
    named = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return str(installed.parent) in (*everywhere, *named)


def _link(there: Path, here: Path) -> None:
    """Makes a link, unless another process has made it."""
    try:
        here.symlink_to(there, target_is_directory=True)
    except FileExistsError:
        if here.readlink() != there:
            raise
