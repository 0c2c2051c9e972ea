"""The page about Testcontainers, run as its readers run it: Docker builds the image, and the block of each language
starts a broker that is ready when the block has ended; the program's end removes it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..support.ask import create, fetch, produce
from ..support.docker_image import BASE
from ..support.sources import ROOT
from ..support.wire import Wire

pytestmark = pytest.mark.slow
PAGE = (ROOT / "docs" / "how-to" / "testcontainers.md").read_text()
# Without the containers that Testcontainers adds (they clean up after a test that was killed, and find this machine's
# address), because their images come from a registry.
ENVIRONMENT = {
    **os.environ,
    "TESTCONTAINERS_RYUK_DISABLED": "true",
    "TESTCONTAINERS_CHECKS_DISABLE": "true",
    "TESTCONTAINERS_HOST_OVERRIDE": "localhost",
}


def docker(*arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False
    )


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    if shutil.which("docker") is None or docker("info").returncode != 0:
        pytest.skip("needs Docker and its daemon")
    if docker("image", "inspect", BASE).returncode != 0 and docker("pull", BASE, timeout=300).returncode != 0:
        pytest.skip(f"the base image {BASE} is not here and cannot be pulled")
    name = f"ottla-test-{os.getpid()}"
    built = docker("build", "--network", "host", "-f", "docker/Dockerfile", "-t", name, ".", timeout=1800)
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    yield name
    docker("image", "rm", name)


def block(language: str, image: str) -> str:
    """Returns the lines of the page for a language, with the test's image."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    quoted, count = re.subn(r"""(["'])ottla\1""", rf"\1{image}\1", found)
    assert count == 1
    return quoted


def indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}" for line in text.splitlines(keepends=True))


def python_program(lines: str, folder: Path) -> list[str]:
    """Makes the program. Its wait is within `with container:`, at whose end the broker ends."""
    site = folder / "site"
    install = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", str(site)]
    subprocess.run([*install, "testcontainers==4.15.0"], check=True, timeout=600)
    waits = '    print(f"localhost:{port}", lab.url, flush=True)\n    sys.stdin.read()\n'
    head = f"import socket, sys\nsys.path.insert(0, {str(site)!r})\n"
    (folder / "program.py").write_text(head + lines + waits)
    return [sys.executable, "program.py"]


def java_program(lines: str, folder: Path) -> list[str]:
    tail = 'System.out.println(servers + " " + lab);\nSystem.in.readAllBytes();\nottla.stop();\n'
    imports = "".join(
        f"import {one};\n"
        for one in (
            "java.util.List",
            "org.testcontainers.containers.GenericContainer",
            "org.testcontainers.containers.wait.strategy.Wait",
        )
    )
    body = indented(lines + tail, 4)
    (folder / "Program.java").write_text(
        f"{imports}\nclass Program {{\n  public static void main(String[] args) throws Exception {{\n{body}  }}\n}}\n"
    )
    (folder / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>containers</artifactId>"
        "<version>1</version><dependencies><dependency><groupId>org.testcontainers</groupId>"
        "<artifactId>testcontainers</artifactId><version>2.0.3</version></dependency></dependencies></project>"
    )
    copies = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
    subprocess.run(copies, cwd=folder, check=True, timeout=600)
    return ["java", "-cp", "jars/*", "Program.java"]


def node_program(lines: str, folder: Path) -> list[str]:
    (folder / "package.json").write_text(
        json.dumps({"private": True, "type": "module", "dependencies": {"testcontainers": "11.14.0"}})
    )
    install = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]
    subprocess.run(install, cwd=folder, check=True, timeout=600, capture_output=True)
    head = (
        "import { createServer } from 'node:net'\nimport { GenericContainer, Wait } from 'testcontainers'\n"
        "const free = createServer()\nawait new Promise((done) => free.listen(0, done))\n"
        "const { port } = free.address()\nawait new Promise((done) => free.close(done))\n"
    )
    tail = (
        "console.log(`localhost:${port} http://localhost:${ottla.getMappedPort(9644)}`)\n"
        "await process.stdin.resume().toArray()\nawait ottla.stop()\n"
    )
    (folder / "program.js").write_text(head + lines + tail)
    return ["node", "program.js"]


PROGRAMS = {"python": python_program, "java": java_program, "javascript": node_program}
LANGUAGES = [
    "python",
    pytest.param("java", marks=pytest.mark.oracle),
    pytest.param("javascript", marks=pytest.mark.node),
]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_broker_is_ready_when_its_container_has_started(language: str, image: str, tmp_path: Path) -> None:
    command = PROGRAMS[language](block(language, image), tmp_path)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        ready = program.stdout.readline()
        assert ready, "the program ended before its broker was ready"
        servers, lab = ready.split()
        with Wire(servers) as wire:
            create(wire, "orders", 1)
            produce(wire, "orders", b"first")
            assert fetch(wire, "orders", 0) == [b"first"]
        asked = urllib.request.Request(f"{lab}/v1/topics", headers={"Authorization": "Bearer secret"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert [one["topic"] for one in json.load(answer)["topics"]] == ["orders"]
        running = docker("ps", "-q", "--filter", f"ancestor={image}").stdout.split()
        assert len(running) == 1
        program.stdin.close()
        assert program.wait(timeout=120) == 0
    assert docker("ps", "-q", "--filter", f"ancestor={image}").stdout == ""
