"""A Spark that stays for those who ask often: a server of Spark Connect, in which jobs need no Java of their own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Final

from . import SESSION_SETTINGS, spark_home

CLASS: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"
TIMEOUT: Final = "spark.connect.session.manager.defaultSessionTimeout"
ADDRESS: Final = "127.0.0.1"
READY_SECONDS: Final = 600.0  # with other work on the machine, Java alone can take minutes
LOOK_SECONDS: Final = 0.1
END_SECONDS: Final = 30.0


def command(port: int, settings: Mapping[str, str], java_options: str) -> list[str]:
    """Returns the command of a server on a port of this machine."""
    chosen = {
        **SESSION_SETTINGS,
        TIMEOUT: "-1",  # none: jobs go on in sessions of jobs before
        "spark.app.name": "ottla",
        "spark.connect.grpc.binding.address": ADDRESS,
        "spark.connect.grpc.binding.port": str(port),
        **settings,
    }
    own = [word for name, value in chosen.items() for word in ("--conf", f"{name}={value}")]
    return [os.path.join(spark_home(), "bin", "spark-submit"), "--class", CLASS, "--driver-java-options", java_options,
            *own, "spark-internal"]  # fmt: skip


def serve(port: int, settings: Mapping[str, str], java_options: str, ready: Callable[[str], None]) -> int:
    """Runs a server until it is interrupted or terminated; calls `ready` with its URL. Returns its exit code. Raises
    RuntimeError if it ends before, or takes too long.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    own = {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": spark_home(), "SPARK_LOCAL_IP": ADDRESS}
    environment = {**own, **os.environ}
    server = subprocess.Popen(command(port, settings, java_options), env=environment)
    try:
        deadline = time.monotonic() + READY_SECONDS
        while not _listens(port):
            if server.poll() is not None:
                raise RuntimeError(f"Spark ended with exit code {server.returncode}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"Spark does not listen on port {port} after {READY_SECONDS:.0f} s")
            time.sleep(LOOK_SECONDS)
        ready(f"sc://{ADDRESS}:{port}")
        return server.wait()
    except KeyboardInterrupt:  # a server in the foreground has got Ctrl-C, too
        return 0
    finally:
        _end(server)


def _end(server: subprocess.Popen[bytes]) -> None:
    """Ends Java, also one that hangs while it shuts down, which nothing else would end."""
    server.terminate()
    try:
        server.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((ADDRESS, port)) == 0
