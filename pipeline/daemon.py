"""Spark's daemon of Python workers, out of the PySpark that is installed: `spark.python.daemon.module`.

A worker is a fork of the daemon, so it has the modules that the daemon has. PySpark's own daemon imports none of what
workers need, because some of it starts threads, which no fork has: each worker would spend half a second of processor
time on imports, and a query over a data source starts several. Here these libraries are told to start no thread.

Spark puts the archive of PySpark's sources first on the path of workers. Python keeps no compiled files of an archive,
so that each daemon would compile them again.
"""

from __future__ import annotations

import gc
import importlib
import os
import runpy
import sys
from pathlib import Path

# What starts no thread in the daemon then: the pools of OpenBLAS, and what purges the memory of Arrow's jemalloc.
WITHOUT_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
SOURCE = "ottla.pipeline.source"


def installed(path: list[str]) -> list[str]:
    """Returns a module path without the archives in `python/lib` of an installed PySpark, because the path contains the
    installed modules too.
    """
    return [
        one for one in path if not (one.endswith(".zip") and (Path(one).parent.parent.parent / "__init__.py").exists())
    ]


def preload(worker: str) -> None:
    """Imports the module of a daemon's workers, and the source that most of them read with. Workers collect garbage
    after each task: what is imported here is left out.
    """
    os.environ.update(WITHOUT_THREADS)
    for module in (worker, SOURCE):
        importlib.import_module(module)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    sys.path[:] = installed(sys.path)
    preload(sys.argv[1])
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
