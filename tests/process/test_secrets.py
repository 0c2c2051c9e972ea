"""Secrets are nowhere but where they have to be: one is planted in every place that takes a password, and then
everything that the broker wrote, answered and showed is searched for it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from ottla.broker.config.config import OWN_KEYS
from ottla.protocol import messages as m
from ottla.protocol.config_def import keys

from ..support.wire import Closed, Wire

pytestmark = pytest.mark.slow
TOKEN = "S3cret-lab-token"
PASSWORDS = sorted(name for name, key in {**keys("broker"), **OWN_KEYS}.items() if key.type == "PASSWORD")
PARSED = {"ottla.users": "alice:{}", "ottla.lab.token": TOKEN}
PATHS = ("/metrics", "/v1/state", "/v1/topics", "/v1/share", "/v1/transactions", "/v1/nothing")
SHOWN = re.compile(rb"S3cret-[a-z.-]*")


def planted(name: str, where: str) -> str:
    return PARSED.get(name, "{}").format(f"S3cret-{where}-{name}")


class Planted:
    """A broker with a secret in every PASSWORD key: some from a file, some from variables, some from the command
    line.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.data = directory / "data"
        by_place: dict[int, list[str]] = {0: [], 1: [], 2: []}
        for number, name in enumerate(PASSWORDS):
            by_place[number % 3].append(name)
        lines = [f"{name}={planted(name, 'file')}" for name in by_place[0]]
        (directory / "server.properties").write_text("\n".join([*lines, "listener.name.x.ssl.key.password=S3cret-own"]))
        variables = {f"KAFKA_{name.upper().replace('.', '_')}": planted(name, "variable") for name in by_place[1]}
        settings = [f"{name}={planted(name, 'argument')}" for name in by_place[2]]
        settings += [f"log.dirs={self.data}", f"ottla.request.log={directory / 'requests.log'}"]
        settings += ["listeners=PLAINTEXT://127.0.0.1:0", "ssl.key.pasword=S3cret-misspelt"]
        command = [sys.executable, "-m", "ottla", "serve", "--announce", "--lab=0", "-v", "-c", "server.properties"]
        self.process = subprocess.Popen(
            [*command, *settings],
            cwd=directory,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self.address, self.lab = self.process.stdout.readline().decode().split()

    def end(self) -> bytes:
        """Stops the broker; returns what it said."""
        self.process.send_signal(signal.SIGTERM)
        out, error = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, error.decode()
        return out + error


def answers(broker: Planted) -> Iterator[tuple[str, bytes]]:
    """Asks the lab and the broker for all that they tell of themselves, and gives the broker secrets by requests."""
    for path in PATHS:
        for token in ("wrong", TOKEN):
            request = urllib.request.Request(f"{broker.lab}{path}", headers={"Authorization": f"Bearer {token}"})
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    yield path, answer.read()
            except urllib.error.HTTPError as error:
                with error:
                    yield f"{path} {error.code}", error.read()
    with Wire(broker.address) as wire:
        i, d = m.IncrementalAlterConfigsRequest, m.DescribeConfigsRequest
        for name in PASSWORDS:
            config = i.AlterableConfig(name=name, value=f"S3cret-dynamic-{name}")
            for resource in ("", "1"):
                found = i.AlterConfigsResource(resource_type=4, resource_name=resource, configs=[config])
                yield "alter", repr(wire.ask("IncrementalAlterConfigs", 1, i(resources=[found]))).encode()
        both = [d.DescribeConfigsResource(resource_type=4, resource_name=one) for one in ("", "1")]
        described = d(resources=both, include_synonyms=True, include_documentation=True)
        yield "describe", repr(wire.ask("DescribeConfigs", 4, described)).encode()
        a = m.AlterUserScramCredentialsRequest
        user = a.ScramCredentialUpsertion(name="bob", mechanism=1, iterations=4096, salt=b"salt of bob")
        user.salted_password = b"S3cret-salted"
        yield "scram", repr(wire.ask("AlterUserScramCredentials", 0, a(upsertions=[user]))).encode()
        with contextlib.suppress(Closed):
            asked = m.SaslAuthenticateRequest(auth_bytes=b"S3cret-sasl")
            yield "sasl", repr(wire.ask("SaslAuthenticate", 2, asked)).encode()


def test_secrets_are_nowhere_but_where_they_have_to_be(tmp_path: Path) -> None:
    assert len(PASSWORDS) > 10
    broker = Planted(tmp_path)
    try:
        shown = Path(f"/proc/{broker.process.pid}/cmdline").read_bytes()  # what ps reads
        found = dict(answers(broker))
    finally:
        said = broker.end()
    found |= {"ps": shown, "output": said, "request log": (tmp_path / "requests.log").read_bytes()}
    assert {place: SHOWN.findall(text) for place, text in found.items() if b"S3cret" in text} == {}
    assert {f"{path} 401" for path in PATHS} <= set(found), "the lab wants its token"
    assert b"***" in found["ps"]
    assert b"***" in found["request log"]
    assert b"in the list of processes until the broker started" in said
    kept = {
        path.parent.name: sorted(set(SHOWN.findall(path.read_bytes())))
        for path in broker.data.rglob("*")
        if path.is_file() and b"S3cret" in path.read_bytes()
    }
    assert set(kept) <= {"__cluster_metadata-0"}, "dynamic values are records of the metadata log, as in Kafka"
    assert [one for of in kept.values() for one in of if not one.startswith(b"S3cret-dynamic")] == []


def test_what_the_broker_writes_is_for_its_user_only(tmp_path: Path) -> None:
    broker = Planted(tmp_path)
    broker.end()
    ours = [broker.data, *broker.data.rglob("*"), tmp_path / "requests.log"]
    assert {str(one): oct(one.stat().st_mode) for one in ours if stat.S_IMODE(one.stat().st_mode) & 0o077} == {}


@pytest.mark.parametrize("wrong", ["num.partitions=none", "log.segment.bytes=1", "listeners=NONE", "ssl.protocol"])
def test_a_start_that_fails_does_not_show_secrets(tmp_path: Path, wrong: str) -> None:
    settings = [f"{name}={planted(name, 'argument')}" for name in PASSWORDS]
    command = [sys.executable, "-m", "ottla", "serve", "-v", f"log.dirs={tmp_path}", *settings, wrong]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 2
    assert SHOWN.findall(done.stdout + done.stderr) == []


def test_help_shows_no_secrets() -> None:
    environment = {**os.environ, "KAFKA_OTTLA_LAB_TOKEN": TOKEN, "OTTLA_LAB_TOKEN": TOKEN}
    for command in ([], ["serve"], ["topics"]):
        ran = [sys.executable, "-m", "ottla", *command, "--help"]
        done = subprocess.run(ran, env=environment, capture_output=True, text=True, check=True, timeout=60)
        assert TOKEN not in done.stdout
