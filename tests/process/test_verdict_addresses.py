"""`ottla verdict --examination addresses`: a program whose broker has a name with two addresses."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ottla import verdict_addresses
from ottla.cli import main

from ..support.ports import free_run

pytestmark = pytest.mark.slow

TWO, TWICE, ADDRESSES = "two.test", "twice.test", ["127.0.0.1", "127.0.0.2"]
NAMES = {TWO: ADDRESSES, TWICE: ADDRESSES[:1] * 2}
SEEKER = """
import os, socket, sys
from kafka import KafkaProducer
from kafka.errors import KafkaError

addresses, find = sys.argv[1:], socket.getaddrinfo

def found(host, *more, **named):
    hosts = addresses if host == "two.test" else [host]
    return [one for each in hosts for one in find(each, *more, **named)]

socket.getaddrinfo = found
seconds = 60 if len(addresses) > 1 else 2
servers = {"bootstrap_servers": os.environ["OTTLA_BOOTSTRAP_SERVERS"], "client_id": "seeker"}
producer = KafkaProducer(**servers, max_block_ms=seconds * 1000)
try:
    producer.send("t", b"value").get(timeout=seconds)
except KafkaError:
    pass
producer.close(timeout=0)
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verdict", "--examination", "addresses", *arguments])


@pytest.fixture
def two_addresses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name TWO has two addresses in this process, and TWICE has one twice. Returns the two."""
    found = socket.getaddrinfo

    def find(host: str, *more: Any, **named: Any) -> list[Any]:
        return [one for each in NAMES.get(host, [host]) for one in found(each, *more, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", find)
    return ADDRESSES


def seeks(tmp_path: Path, *addresses: str) -> Result:
    """Examines a program of kafka-python that knows these addresses of the name."""
    program = tmp_path / "program.py"
    program.write_text(SEEKER)
    command = f"{sys.executable} {program} {' '.join(addresses)}"
    return run("--listen", f"{TWO}:0", "--all", "--run", command)


def test_a_client_tries_all_addresses_of_a_name(two_addresses: list[str], tmp_path: Path) -> None:
    done = seeks(tmp_path, *two_addresses)
    assert done.exit_code == 0, done.output
    for step in verdict_addresses.STEPS:
        assert f"ottla: provoked: {step}" in done.stderr
    assert done.stdout.splitlines()[1:] == [f"  passed         {one}" for one in verdict_addresses.RULES]


def test_a_client_that_knows_one_address_comes_to_one_place_only(two_addresses: list[str], tmp_path: Path) -> None:
    done = seeks(tmp_path, two_addresses[0])
    came_not, came = verdict_addresses.STEPS
    assert f"ottla: not come to: {came_not}\nottla: provoked: {came}\n" in done.stderr
    assert done.stdout.splitlines()[1:] == [f"  not exercised  {one}" for one in verdict_addresses.RULES]


def test_a_name_needs_two_addresses_that_are_free(two_addresses: list[str]) -> None:
    for name in ("127.0.0.1", TWICE, "none.invalid", ""):
        done = run("--listen", f"{name}:9092", "--run", "true")
        assert done.exit_code == 2
        assert f"ottla: cannot listen at {name}:9092: '{name}' has no two addresses of 127.0.0.0/8" in done.stderr
    port = free_run(len(verdict_addresses.LISTENERS))
    with socket.create_server((two_addresses[1], port + 3)):
        done = run("--listen", f"{TWO}:{port}", "--run", "true")
    assert done.exit_code == 2
    assert f"ottla: cannot listen at {TWO}:{port}: {two_addresses[1]}:{port + 3} has to be free" in done.stderr
    assert run("--live", "http://127.0.0.1:1").exit_code == 2


def test_an_address_that_is_not_served_refuses_connections(two_addresses: list[str]) -> None:
    port = free_run(len(verdict_addresses.LISTENERS))
    with verdict_addresses.unserved(port, two_addresses):
        for at in ((two_addresses[0], port + 1), (two_addresses[1], port + 3)):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(at)
            with pytest.raises(OSError, match="in use"):
                socket.create_server(at)
