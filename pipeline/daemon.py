"""Spark's daemon of Python workers, out of the PySpark that is installed: `spark.python.daemon.module`.

Spark puts the archive of PySpark's sources first on the path of workers. Python keeps no compiled files of an archive,
so that each of the five daemons of a small job, and each of their workers, would compile them again.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def installed(path: list[str]) -> list[str]:
    """Returns a module path without the archives in `python/lib` of an installed PySpark, because the path contains the
    installed modules too.
    """
    return [
        one for one in path if not (one.endswith(".zip") and (Path(one).parent.parent.parent / "__init__.py").exists())
    ]


if __name__ == "__main__":
    sys.path[:] = installed(sys.path)
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
