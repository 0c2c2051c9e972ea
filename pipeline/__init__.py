"""A broker's data directory as tables in Spark: `register(spark)`,
then `spark.read.format("kafka-log").option("path", DIR).load()`.

Needs `pip install ottla[spark]`, and Java 17 or newer.
"""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Registers the formats `kafka-log` and `kafka-wire` in a session. Filters are then pushed down if the option
    `pushdown` is set.
    """
    from .source import KafkaLog
    from .wire import KafkaWire

    # a declarative pipeline sets it in its specification, and must not set it here
    if spark.conf.get(PUSHDOWN, "false") != "true":
        spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(KafkaLog)
    spark.dataSource.register(KafkaWire)


def spark_home() -> str:
    """Returns the folder of Spark's programs and jars: SPARK_HOME, or one that links to the PySpark that is installed
    (`home.py`). Raises RuntimeError if there is none.
    """
    try:
        import pyspark
    except ImportError:
        raise RuntimeError("PySpark is not installed: pip install ottla[spark]") from None
    given = os.environ.get("SPARK_HOME")
    if given:
        return given
    from pathlib import Path

    from .home import lean_home
    from .java import cache_directory

    return str(lean_home(Path(pyspark.__file__).parent, cache_directory()))


def session(**settings: str) -> SparkSession:
    """Returns a session with `kafka-log`: a local one on all cores, or, with `spark.remote` or the environment's
    SPARK_REMOTE, one of a server of Spark Connect. Raises RuntimeError if Java or PySpark is missing or too old.
    """
    spark = without_sources(**settings)
    register(spark)
    return spark


def without_sources(**settings: str) -> SparkSession:
    """Returns a session as `session` does, in which nothing is registered: that starts Python for Spark."""
    import sys

    home = spark_home()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("ottla")
    remote = settings.pop(REMOTE, os.environ.get("SPARK_REMOTE", ""))
    if remote:
        _check_listens(remote)
        builder = builder.remote(remote)
        chosen = {name: value for name, value in {**SESSION_SETTINGS, **settings}.items() if name.startswith(SQL)}
    else:
        from .java import check_java

        check_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # otherwise the workers use the system's Python
        os.environ.setdefault("SPARK_HOME", home)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        chosen = {**SESSION_SETTINGS, **settings}
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def shared(remote: str, settings: Mapping[str, str]) -> str:
    """Returns the address of the session of a server of Spark Connect that all have who want the same settings, unless
    the address names a session. To be used by who changes nothing in it, and does not stop it: each session has Python
    processes of its own, which take longer to start than a small job.
    """
    if "session_id=" in remote:
        return remote
    chosen = sorted((name, value) for name, value in settings.items() if name.startswith(SQL))
    number = uuid.uuid5(uuid.NAMESPACE_OID, f"ottla {chosen}")
    return f"{remote.rstrip(';')}{'' if '/' in remote.removeprefix('sc://') else '/'};session_id={number}"


def _check_listens(remote: str) -> None:
    """Raises RuntimeError if nothing listens at the address: Spark would try again for ten minutes."""
    import socket
    from urllib.parse import urlsplit

    url = urlsplit(remote)
    remote = remote.partition(";")[0].rstrip("/")  # without parameters, of which one may be a token
    if url.scheme != "sc":
        raise RuntimeError(f"{remote} is no address of Spark Connect, such as sc://127.0.0.1:{CONNECT_PORT}")
    try:
        socket.create_connection((url.hostname or "", url.port or CONNECT_PORT), CONNECT_SECONDS).close()
    except OSError as error:
        raise RuntimeError(f"there is no Spark at {remote}: {error.strerror or error}") from None


def parallelism(spark: SparkSession) -> int:
    """Returns how many tasks run at a time; of a server of Spark Connect, which does not say it, as many as here."""
    if "connect" in type(spark).__module__:
        return os.cpu_count() or 1
    return spark.sparkContext.defaultParallelism


CONNECT_PORT, CONNECT_SECONDS = 15002, 10.0
REMOTE = "spark.remote"
CLOSED = "INVALID_HANDLE.SESSION_CLOSED"
SQL = "spark.sql."  # settings of a session; all others are of the server
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# For jobs with little work in Spark: compiling it well would take longer than it saves.
SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # of memory that each sort and join takes at least; by default 16 MB of a heap of 1 GB
    "spark.buffer.pageSize": "1m",
    # The 48 MB for one compiler fill up, and Java sweeps them again and again. The 21 MB for classes after which Java
    # first collects all garbage are less than any job needs.
    JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=128m",
}
# How Spark starts Python and talks to it: over TCP each task waits 40 ms for a delayed acknowledgement. On a busy
# machine a Python may take longer to start than the 15 seconds for which Spark waits.
WORKERS = {
    "spark.python.daemon.module": "ottla.pipeline.daemon",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.authenticate.socketTimeout": "120s",
}
SESSION_SETTINGS = {
    "spark.master": "local[*]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    **WORKERS,
}
