"""A Spark cluster of its own on this machine: a master and two workers of one core each, out of the installed PySpark;
and a server that speaks S3.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import fsspec
from moto.server import ThreadedMotoServer

from ottla import pipeline

from ..support.poll import until
from .apart import ottla

WORKERS = 2
MASTER = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
REGISTERED = "Successfully registered with master"
BUCKET = "brokers"


@contextmanager
def _daemon(log: Path, kind: str, *arguments: str) -> Iterator[None]:
    command = [f"{pipeline.spark_home()}/bin/spark-class", f"org.apache.spark.deploy.{kind}", *arguments]
    with log.open("wb") as output:
        # without SPARK_DAEMON_MEMORY each may take a gigabyte
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "128m"}
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
    try:
        yield
    finally:
        process.terminate()  # a worker ends its executors
        process.wait(30)


def _said(log: Path, pattern: str) -> str:
    found: list[str] = []

    def is_there() -> bool:
        found[:] = re.findall(pattern, log.read_text())
        return bool(found)

    until(is_there, f"{log.name} says {pattern!r}", within=120, every=0.05)
    return found[0]


@contextmanager
def spark_cluster(directory: Path) -> Iterator[str]:
    """Yields the master's URL when all workers are there."""
    with ExitStack() as stack:
        log = directory / "master.log"
        own = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        stack.enter_context(_daemon(log, "master.Master", *own))
        url = _said(log, MASTER.pattern)
        for number in range(WORKERS):
            log = directory / f"worker-{number}.log"
            has = ("--cores", "1", "--memory", "640m", "--work-dir", str(directory / f"work-{number}"))
            stack.enter_context(_daemon(log, "worker.Worker", *own, *has, url))
        for number in range(WORKERS):
            _said(directory / f"worker-{number}.log", REGISTERED)
        yield url


class Stored(NamedTuple):
    """A directory in object storage, and the environment in which clients find it."""

    url: str
    environment: Mapping[str, str]


@contextmanager
def object_storage(directory: Path) -> Iterator[Stored]:
    """Serves the files of `directory`. There can be one such server in a process: all share what is stored."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # else it prints a line for each request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        keys = {"AWS_ACCESS_KEY_ID": "ottla", "AWS_SECRET_ACCESS_KEY": "ottla", "AWS_DEFAULT_REGION": "us-east-1"}
        where = {"AWS_ENDPOINT_URL": f"http://{host}:{port}", **keys}
        files = fsspec.filesystem(
            "s3", endpoint_url=where["AWS_ENDPOINT_URL"], key="ottla", secret="ottla", skip_instance_cache=True
        )
        files.mkdir(BUCKET)
        files.put(str(directory), f"{BUCKET}/", recursive=True)
        yield Stored(f"s3://{BUCKET}/{directory.name}", where)
    finally:
        server.stop()


class Job(NamedTuple):
    """How a job on a cluster ended. `executors`: how many each worker had."""

    exit_code: int
    output: str
    errors: str
    executors: list[int]


def run_job(name: str, stored: Stored, directory: Path) -> Job:
    """Runs `ottla pipeline NAME` over object storage, on a cluster."""
    with spark_cluster(directory) as master:
        settings = {
            "spark.master": master,
            "spark.executor.memory": "512m",
            **{f"spark.executorEnv.{key}": value for key, value in stored.environment.items()},
        }
        arguments = ottla(name, stored.url, "--format", "json")
        for key, value in settings.items():
            arguments += ["--conf", f"{key}={value}"]
        ran = subprocess.run(
            arguments,
            env={**os.environ, **stored.environment},
            check=False,
            capture_output=True,
            text=True,
            timeout=400,
        )
        executors = [len(list(directory.glob(f"work-{number}/app-*/*/stderr"))) for number in range(WORKERS)]
    return Job(ran.returncode, ran.stdout, ran.stderr, executors)
