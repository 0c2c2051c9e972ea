"""Clients look for a broker at all addresses of its name (KIP-302), and a trace says at which one they arrived."""

from __future__ import annotations

from pathlib import Path

import pytest
from ottla.verdict.report import lines

from ottla.testing import Broker
from ottla.verdict_addresses import BEGINNINGS, LISTENERS, settings, unserved

from ..support.hosts import may_have_hosts_of_its_own, with_hosts
from ..support.kcat import put_on_path
from ..support.poll import until
from ..support.ports import free_run
from .addresses import HOSTS, NAME, RULES, WORK, addresses
from .examinations import QUICK, SECONDS, end, running
from .verdicts import its_own, of_rules, run_of
from .well_known import CLIENTS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not may_have_hosts_of_its_own(), reason="a program cannot have a file of hosts of its own here"),
]

BY_NAME = {one.name: one for one in CLIENTS}


@pytest.mark.parametrize(
    "name",
    [
        *("librdkafka", "franz-go", "sarama", "kafkajs", "aiokafka", "kafka-python", "kcat"),
        pytest.param("Java", marks=pytest.mark.oracle),
    ],
)
def test_a_client_tries_all_addresses_of_a_name(name: str, tmp_path: Path) -> None:
    put_on_path()
    client = BY_NAME[name]
    seen = addresses(client.prepared(tmp_path), tmp_path)
    found = of_rules(run_of(its_own(client, seen.clients), seen.missed), RULES)
    assert (found["missed"], found["rules"]) == ([], dict.fromkeys(RULES, "passed")), "\n".join(lines(seen.clients))


def test_a_trace_says_at_which_address_of_a_name_a_client_arrived(tmp_path: Path) -> None:
    port = free_run(len(LISTENERS))
    command = [*with_hosts(tmp_path, NAME, HOSTS), *BY_NAME["librdkafka"].prepared(tmp_path)]
    log = tmp_path / "log"
    with (
        unserved(port, HOSTS),
        Broker({**QUICK, **settings(NAME, port, HOSTS)}) as broker,
        broker.lab.trace() as trace,
        running([*command, f"{WORK}={HOSTS[0]}:{port + BEGINNINGS[0]}"], log) as process,
    ):

        def arrived() -> set[str]:
            found = trace.events
            working = {one["connection"] for one in found if one["event"] == "reply" and one["api"] == "Produce"}
            return {str(one["to"]) for one in found if one["event"] == "opened" and one["connection"] in working}

        until(arrived, "the client produces", SECONDS, every=0.1)
        end(process, WORK, log)
        assert arrived() == {f"{HOSTS[1]}:{port + 1}"}
