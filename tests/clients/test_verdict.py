"""Real clients keep the rules of the verdict that they come to, live and by the trace of the same requests; where one
does not, the page of the documentation says so.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.testing import Broker

from ..oracle.kafka import program
from .verdict_page import findings
from .verdicts import report
from .well_known import CLIENTS, Client

pytestmark = pytest.mark.slow

BY_NAME = {one.name: one for one in CLIENTS}
IDEMPOTENCE = {"KIP-98.sequences-in-order", "KIP-98.five-in-flight"}
TRANSACTIONS = {"KIP-98.init-first", "KIP-98.partitions-added", "KIP-98.offsets-added"}
CLASSIC = {"KIP-394.member-id-kept", "KIP-62.leaves-at-close", "classic-group.generation-sent"}
CONSUMER = {"KIP-848.epoch-echoed", "KIP-848.leaves-at-close", "KIP-1082.member-id-own"}
MEASURES_TIME = "network"  # the examination whose rules a busy machine may break for a client


def passed(client: Client, directory: Path) -> set[str]:
    """Returns the rules that a client has passed. It has failed none that the documentation does not tell of."""
    rules = [(one["client_id"], rule) for one in report(client, directory) for rule in one["rules"]]
    known = findings().get(client.name, {})
    assert [
        (client_id, rule["id"], rule["failures"])
        for client_id, rule in rules
        if rule["outcome"] == "failed" and rule["examination"] != MEASURES_TIME and rule["id"] not in known
    ] == []
    return {rule["id"] for _, rule in rules if rule["outcome"] == "passed"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("librdkafka", {*IDEMPOTENCE, *TRANSACTIONS, *CLASSIC, *CONSUMER, "KIP-345.static-stays"}),
        ("kafka-python", {*IDEMPOTENCE, *TRANSACTIONS, *CLASSIC}),
    ],
)
def test_a_client_keeps_the_rules(name: str, expected: set[str], tmp_path: Path) -> None:
    assert expected <= passed(BY_NAME[name], tmp_path)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("GroupClients", {*CLASSIC, *CONSUMER, "KIP-227.session-closed", "KIP-345.static-stays"}),
        ("TransactionClients", {*IDEMPOTENCE, "KIP-98.init-first", "KIP-588.fenced-stops", "KIP-227.only-changes"}),
    ],
)
def test_kafkas_clients_keep_the_rules(name: str, expected: set[str], tmp_path: Path) -> None:
    def work(broker: Broker, directory: Path) -> None:
        command = [*program("tools", name, directory), broker.bootstrap_servers]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-4000:]

    assert expected <= passed(replace(BY_NAME["Java"], work=work), tmp_path)
