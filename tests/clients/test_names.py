"""Clients look for a broker at all addresses of its name (KIP-302), and a trace says at which one they arrived.

A program has a file of hosts of its own, in a mount namespace, where a name has two addresses; the broker listens at
one of them.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from ottla.testing import Broker
from ottla.verdict_connections import GIVEN, KNOWN, settings

from ..support.kcat import put_on_path
from ..support.poll import until
from ..support.ports import free_run
from .examinations import QUICK, SECONDS, end, running
from .well_known import CLIENTS

pytestmark = pytest.mark.slow

NAME = "two.test"
ADDRESSES = "127.0.0.1", "127.0.0.2"
BY_NAME = {one.name: one for one in CLIENTS}
WORK = "connections"


@cache
def may_have_hosts_of_its_own() -> bool:
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-rm", "mount", "--bind", "/etc/hosts", "/etc/hosts"]
    return not subprocess.run(command, capture_output=True, check=False, timeout=SECONDS).returncode


@pytest.mark.skipif(not may_have_hosts_of_its_own(), reason="a program cannot have a file of hosts of its own here")
@pytest.mark.parametrize("at", ADDRESSES)
@pytest.mark.parametrize(
    "name",
    [
        "librdkafka",
        "franz-go",
        "sarama",
        "kafkajs",
        "aiokafka",
        "kafka-python",
        pytest.param("Java", marks=pytest.mark.oracle),
    ],
)
def test_a_client_reaches_the_address_at_which_the_broker_is(name: str, at: str, tmp_path: Path) -> None:
    put_on_path()
    port = free_run(2)
    known = {"listeners": f"{GIVEN}://127.0.0.1:{port},{KNOWN}://{at}:{port + 1}"}
    told = {"advertised.listeners": f"{GIVEN}://{NAME}:{port + 1},{KNOWN}://{NAME}:{port + 1}"}
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{address} {NAME}\n" for address in ADDRESSES) + "127.0.0.1 localhost\n")
    alone = ["unshare", "-rm", "sh", "-c", f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh"]
    command = [*alone, *BY_NAME[name].prepared(tmp_path), f"{WORK}=127.0.0.1:{port}"]
    log = tmp_path / "log"
    with Broker({**QUICK, **settings("127.0.0.1", port), **known, **told}) as broker, broker.lab.trace() as trace:

        def arrived() -> set[str]:
            found = trace.events
            working = {one["connection"] for one in found if one["event"] == "reply" and one["api"] == "Produce"}
            return {str(one["to"]) for one in found if one["event"] == "opened" and one["connection"] in working}

        with running(command, log) as process:
            until(arrived, f"{name} produces", SECONDS, every=0.1)
            end(process, WORK, log)
        assert arrived() == {f"{at}:{port + 1}"}
