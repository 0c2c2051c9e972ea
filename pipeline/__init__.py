"""A broker's data directory as tables in Spark: `register(spark)`,
then `spark.read.format("kafka-log").option("path", DIR).load()`.

Needs `pip install ottla[spark]`, and Java 17 or newer.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    """Returns where Spark is installed. Raises RuntimeError if it is not."""
    try:
        import pyspark
    except ImportError:
        raise RuntimeError("PySpark is not installed: pip install ottla[spark]") from None
    return os.environ.get("SPARK_HOME", os.path.dirname(pyspark.__file__))


def session(**settings: str) -> SparkSession:
    """Returns a local session with `kafka-log`, on all cores.
    Raises RuntimeError if Java or PySpark is missing or too old.
    """
    import sys

    spark_home()
    from pyspark.sql import SparkSession

    from .java import check_java

    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # otherwise the workers use the system's Python
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("ottla")
    for name, value in {**_SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# For jobs with little work in Spark: compiling it well would take longer than it saves.
SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # the 48 MB for one compiler fill up, and Java sweeps them again and again
    JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",
}
# How Spark starts Python and talks to it: over TCP each task waits 40 ms for a delayed acknowledgement.
WORKERS = {"spark.python.daemon.module": "ottla.pipeline.daemon", "spark.python.unix.domain.socket.enabled": "true"}
_SETTINGS = {
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
