"""Clients in other languages: franz-go and sarama (Go), kafkajs (Node.js), kcat. Their checks are in their own
programs.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ottla.testing import Broker

from .conftest import Run

pytestmark = pytest.mark.slow


def ran(command: list[str], cwd: Path | None = None, stdin: bytes | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:].decode(errors="replace")
    return done.stdout.decode()


@pytest.mark.go
def test_franz_go_and_sarama(broker: Broker, go_clients: Run) -> None:
    go_clients(broker.bootstrap_servers, within=300)


@pytest.mark.node
def test_kafkajs(broker: Broker, kafkajs: Run) -> None:
    kafkajs("kafkajs.js", broker.bootstrap_servers, within=300)


CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.mark.usefixtures("kcat")
@pytest.mark.parametrize(
    "mode",
    [("acks=all", "enable.idempotence=true"), ("acks=0",), ("acks=1",), ("acks=all",)],
    ids=["idempotent", "none", "leader", "all"],
)
def test_kcat(broker: Broker, mode: tuple[str, ...]) -> None:
    topic = "kcat-" + "-".join(mode).replace("=", ".")
    at = ["kcat", "-b", broker.bootstrap_servers, "-t", topic]
    options = [word for setting in mode for word in ("-X", setting)]
    for codec in CODECS:
        lines = "".join(f"{codec}-{n}\n" for n in range(100)).encode()
        ran([*at, "-P", "-p", "0", "-z", codec, *options], stdin=lines)
    out = ran([*at, "-C", "-p", "0", "-o", "beginning", "-e", "-q"]).split()
    assert out == [f"{codec}-{n}" for codec in CODECS for n in range(100)]
    assert ran([*at, "-C", "-p", "0", "-o", "450", "-c", "1", "-q"]).strip() == "zstd-50"
    assert f'topic "{topic}" with 1 partitions' in ran([*at[:3], "-L"])
    assert ran([*at[:3], "-Q", "-t", f"{topic}:0:-1"]).split()[-1] == "500"
    time, offset = ran([*at, "-C", "-p", "0", "-o", "-50", "-c", "1", "-q", "-f", "%T %o"]).split()
    found = int(ran([*at[:3], "-Q", "-t", f"{topic}:0:{time}"]).split()[-1])
    assert ran([*at, "-C", "-p", "0", "-o", str(found), "-c", "1", "-q", "-f", "%T"]) == time
    assert found <= int(offset)
    assert ran([*at, "-C", "-p", "0", "-o", f"s@{time}", "-c", "1", "-q", "-f", "%o"]) == str(found)


@pytest.mark.usefixtures("kcat")
def test_kcat_meets_the_right_errors(broker: Broker) -> None:
    at = ["kcat", "-b", broker.bootstrap_servers, "-t", "kcat-errors"]
    ran([*at, "-P", "-p", "0"], stdin=b"there\n")

    def refused(command: list[str], stdin: bytes | None = None) -> str:
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
        assert done.returncode != 0
        return done.stderr.decode()

    assert "Message size too large" in refused(
        [*at, "-P", "-p", "0", "-X", "message.max.bytes=5000000"], b"x" * 2_000_000
    )
    assert "Offset out of range" in refused([*at, "-C", "-p", "0", "-o", "4711", "-X", "auto.offset.reset=error"])
    assert "Unknown topic" in refused([*at[:3], "-C", "-t", "no-such-topic", "-p", "0", "-e"])
