"""A broker's data directory as tables in Spark: `register(spark)`, then `spark.read.format("kafka-log").option("path", DIR).load()`.

Needs `pip install ottla[spark]`, and Java 17 or newer.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Makes the formats `kafka-log` and `kafka-wire` known to a session. Filters can be pushed down then, where the option `pushdown` says so."""
    from .source import KafkaLog
    from .wire import KafkaWire

    if spark.conf.get(PUSHDOWN, "false") != "true":  # a declarative pipeline sets it in its specification, and may not set it here
        spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(KafkaLog)
    spark.dataSource.register(KafkaWire)


def spark_home() -> str:
    """Where Spark is installed. RuntimeError when it is not."""
    try:
        import pyspark
    except ImportError:
        raise RuntimeError("PySpark is not installed: pip install ottla[spark]") from None
    return os.environ.get("SPARK_HOME", os.path.dirname(pyspark.__file__))


def session(**settings: Any) -> SparkSession:
    """A local session with `kafka-log`, on all cores. RuntimeError when Java or PySpark is missing or too old."""
    import sys

    spark_home()
    from pyspark.sql import SparkSession

    from .java import check_java

    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the workers take the system's Python
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("ottla")
    for name, value in {**_SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# Where Spark's own work is little: what it would take to compile that well is longer than it takes.
SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",  # in the 48 MB for one compiler Java goes on sweeping
}
# How Spark starts Python and talks to it: by TCP each task waits 40 ms for an acknowledgement that is delayed.
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
