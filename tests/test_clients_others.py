"""Clients in other languages: franz-go and sarama (Go), kafkajs (Node.js), kcat. Their checks are in their own programs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ottla.testing import Broker

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent


def ran(command: list[str], cwd: Path | None = None, stdin: bytes | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:].decode(errors="replace")
    return done.stdout.decode()


@pytest.mark.go
def test_franz_go_and_sarama(broker: Broker, tmp_path: Path) -> None:
    program = tmp_path / "clients"
    ran(["go", "build", "-o", str(program), "."], HERE / "go")
    assert ran([str(program), broker.bootstrap_servers]).split()[-1] == "ok"


@pytest.mark.node
def test_kafkajs(broker: Broker, tmp_path: Path) -> None:
    for name in ("package.json", "kafkajs.js"):
        shutil.copy(HERE / "node" / name, tmp_path)
    ran(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], tmp_path)
    assert ran(["node", "kafkajs.js", broker.bootstrap_servers], tmp_path).split()[-1] == "ok"


@pytest.mark.skipif(shutil.which("kcat") is None, reason="needs kcat")
def test_kcat(broker: Broker) -> None:
    at = ["kcat", "-b", broker.bootstrap_servers, "-t", "kcat-topic"]
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        lines = "".join(f"{codec}-{n}\n" for n in range(100)).encode()
        ran([*at, "-P", "-p", "0", "-z", codec], stdin=lines)
    out = ran([*at, "-C", "-p", "0", "-o", "beginning", "-e", "-q"]).split()
    assert out == [f"{codec}-{n}" for codec in ("none", "gzip", "snappy", "lz4", "zstd") for n in range(100)]
    assert ran([*at, "-C", "-p", "0", "-o", "450", "-c", "1", "-q"]).strip() == "zstd-50"
    assert 'topic "kcat-topic" with 1 partitions' in ran([*at[:3], "-L"])
    assert ran([*at[:3], "-Q", "-t", "kcat-topic:0:-1"]).split()[-1] == "500"
