"""The image and the compose file: built, started and asked where there is a builder, as compose.yaml says. Without one,
what they say.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ottla.broker.config import sources
from ottla.protocol import messages as m

from ..support.ask import fetch
from ..support.docker_image import BASE
from ..support.poll import until
from ..support.ports import free_port
from ..support.wire import Wire

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())["services"]["ottla"]
# Steps run in namespaces of their own, never in a mere chroot: that one mounts the machine's own /dev, and two at a
# time damage it.
BUILDER = {**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "oci"}


def buildah(*arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["buildah", *arguments], cwd=ROOT, env=BUILDER, capture_output=True, text=True, timeout=timeout, check=False
    )


def requirements(part: str) -> str:
    return subprocess.run(
        [sys.executable, "docker/requirements.py", part],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout


def pins(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z][\w.-]*)==([^\s\\]+)", text, re.MULTILINE))


def test_what_is_installed_has_the_hashes_of_the_constraints() -> None:
    constraints = (ROOT / "constraints.txt").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    run = requirements("run")
    wanted = {re.split("[^a-z0-9-]", one)[0] for one in project["project"]["dependencies"]}
    assert wanted <= pins(run).keys()
    assert "cramjam" in pins(run), "what python-snappy needs"
    assert not {"pytest", "pyspark", "mypy"} & pins(run).keys()
    assert list(pins(requirements("build"))) == ["setuptools"]
    for line in run.splitlines():
        assert line in constraints
    for block in re.split(r"^(?=[a-z])", run, flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in block
    installs = re.findall(r"pip install (.*)", (ROOT / "docker" / "Dockerfile").read_text())
    assert all("--require-hashes" in one or "--no-deps" in one for one in installs)


def test_the_lab_is_published_on_loopback_as_the_clients_port_is() -> None:
    ports = dict(one.removeprefix("127.0.0.1:").split(":") for one in COMPOSE["ports"])
    assert ports == {"9092": "9092", "9644": "9644"}
    exposed = re.search(r"^EXPOSE (.*)$", (ROOT / "docker" / "Dockerfile").read_text(), re.MULTILINE)
    assert exposed is not None
    assert exposed.group(1).split() == list(ports.values())
    assert {"ottla.lab.port=9644", "ottla.lab.open=true"} <= set(COMPOSE["command"])


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    if shutil.which("buildah") is None or not (shutil.which("crun") or shutil.which("runc")):
        pytest.skip("needs buildah, and crun or runc")
    if buildah("pull", "--policy", "missing", BASE).returncode != 0:
        pytest.skip(f"the base image {BASE} is not here and cannot be pulled")
    probe = buildah("from", "--pull=never", BASE).stdout.strip()
    tried = buildah("run", "--network", "host", probe, "--", "true")
    buildah("rm", probe)
    if tried.returncode != 0:
        pytest.skip(f"buildah can run nothing here: {tried.stderr.strip()}")
    name = f"ottla-test-{os.getpid()}"
    built = buildah(
        "build",
        "--format",
        "docker",
        "--pull=never",
        "--network",
        "host",
        "-f",
        "docker/Dockerfile",
        "-t",
        name,
        ".",
        timeout=900,
    )
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    yield name
    buildah("rmi", name)


@pytest.fixture
def container(image: str) -> Iterator[str]:
    name = buildah("from", "--pull=never", image).stdout.strip()
    yield name
    buildah("rm", name)


def test_the_image_holds_what_the_constraints_say(image: str, container: str) -> None:
    config = json.loads(buildah("inspect", "--type", "image", image).stdout)["Docker"]["config"]
    assert sorted(config["ExposedPorts"]) == ["9092/tcp", "9644/tcp"]
    assert config["User"] == "1000"
    assert config["Healthcheck"]["Test"][0:3] == ["CMD", "ottla", "ready"]
    frozen = buildah(
        "run", "--network", "host", container, "--", "python", "-m", "pip", "list", "--format", "freeze"
    ).stdout
    installed = pins(frozen.lower().replace("_", "-"))
    assert {name: installed.get(name) for name in pins(requirements("run"))} == pins(requirements("run"))


def test_the_compose_file_starts_a_broker_with_its_seed_and_its_lab(container: str) -> None:
    """The builder has no network of its own, and so no ports to publish: each of the container's becomes a free one of
    this machine.
    """
    free = {port: str(free_port()) for port in ("19092", "9092", "9644")}

    def here(text: str) -> str:
        return re.sub(r"\b(?:19092|9092|9644)\b", lambda found: free[found.group()], text)

    token = re.sub(r"\$\{OTTLA_LAB_TOKEN:-(.*)\}", r"\1", COMPOSE["environment"]["KAFKA_OTTLA_LAB_TOKEN"])
    given = {**COMPOSE["environment"], "KAFKA_OTTLA_LAB_TOKEN": token}
    environment = [argument for name, value in given.items() for argument in ("--env", f"{name}={here(value)}")]
    (seed,) = (one.split(":") for one in COMPOSE["volumes"] if one.startswith("./"))
    volume = ["--volume", f"{ROOT / 'docker' / seed[0]}:{seed[1]}:{seed[2]}"]
    entrypoint = json.loads(
        re.findall(r"^ENTRYPOINT (.*)$", (ROOT / "docker" / "Dockerfile").read_text(), re.MULTILINE)[-1]
    )
    command = [
        "buildah",
        "run",
        "--network",
        "host",
        *environment,
        *volume,
        container,
        "--",
        *entrypoint,
        *map(here, COMPOSE["command"]),
    ]
    broker = subprocess.Popen(
        command, env=BUILDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        ready = [sys.executable, "-m", "ottla", "ready", "-b", f"127.0.0.1:{free['9092']}"]

        def answers() -> bool:
            assert broker.poll() is None, "the container ended"
            return subprocess.run(ready, check=False, capture_output=True, timeout=60).returncode == 0

        until(answers, "the broker in the container answers")
        with Wire(f"127.0.0.1:{free['9092']}") as wire:
            assert fetch(wire, "orders", 0) == [b"first order"]
            (node,) = wire.ask("Metadata", 12, m.MetadataRequest(topics=None)).brokers
            assert (node.host, str(node.port)) == ("localhost", free["9092"])
        with Wire(f"127.0.0.1:{free['19092']}") as wire:
            (node,) = wire.ask("Metadata", 12, m.MetadataRequest(topics=None)).brokers
            assert (node.host, str(node.port)) == ("ottla", free["19092"])
        url = f"http://127.0.0.1:{free['9644']}/v1/topics"
        asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert {one["topic"] for one in json.load(answer)["topics"]} >= {"orders", "customers"}
    finally:
        os.killpg(broker.pid, signal.SIGTERM)
        said, _ = broker.communicate(timeout=120)
    assert "Traceback" not in said


def test_the_settings_for_testcontainers_are_those_of_a_broker_with_an_open_lab() -> None:
    """With the image's own variables, as a container has them."""
    page = (ROOT / "docs" / "how-to" / "testcontainers.md").read_text()
    image = dict(re.findall(r"(KAFKA_\w+)=(\S+)", (ROOT / "docker" / "Dockerfile").read_text()))
    assert page.count('"KAFKA_ADVERTISED_LISTENERS", ') == 2
    assert page.count("ottla.lab.port=9644") == page.count("ottla.lab.open=true") == 3
    given = {**image, "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:4711", "KAFKA_OTTLA_LAB_TOKEN": "secret"}
    arguments = ["ottla.lab.port=9644", "ottla.lab.open=true"]
    config = sources.build(sources.from_environment(given), sources.from_arguments(arguments))
    assert [(one.host, one.port) for one in config.advertised.values()] == [("localhost", 4711)]
    assert [(one.host, one.port) for one in config.listeners] == [("0.0.0.0", 9092)]
    assert config["ottla.lab.token"] == "secret"
