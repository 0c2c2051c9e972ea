"""Six clients go through one history of three nodes side by side: nothing that was acknowledged is lost, idempotent
producers write nothing twice, transactions are whole, and groups go on at their offsets. history.py has the history,
the programs and the checks.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..oracle import jars
from ..oracle.cluster_pair import Nodes
from . import history, history_checks
from .history import Program

pytestmark = pytest.mark.slow
NAMES = ("librdkafka", "aiokafka", "java", "franz", "sarama", "kafkajs")
NEEDS = {"java": jars.missing() is None, "kafkajs": bool(shutil.which("npm"))} | dict.fromkeys(
    ("franz", "sarama"), bool(shutil.which("go"))
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    with Nodes(history.OURS) as running:
        yield running


@pytest.fixture(scope="module")
def worked(
    cluster: Nodes, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Program]]:
    """The programs of all clients, after the history. Those that cannot be built here are left out, except in CI."""

    def built(name: str) -> tuple[list[str], Path]:
        if name == "kafkajs":
            return ["node", "history.js"], request.getfixturevalue("node_programs")
        if name in ("franz", "sarama"):
            return [str(request.getfixturevalue("go_history"))], history.ROOT
        return history.command(name, tmp_path_factory.mktemp(name))

    commands = {name: built(name) for name in NAMES if os.environ.get("CI") or NEEDS.get(name, True)}
    history.prepare(cluster, list(commands))
    programs = {name: history.started(name, command, cluster) for name, command in commands.items()}
    try:
        history.run(cluster, list(programs.values()))
        yield programs
    finally:
        for one in programs.values():
            one.kill()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_lost_and_nothing_twice(name: str, cluster: Nodes, worked: dict[str, Program]) -> None:
    if name not in worked:
        pytest.skip(f"{name} cannot be built here")
    assert not history_checks.check(history.servers(cluster), worked[name]), worked[name].tail()


def test_no_election_was_unclean(cluster: Nodes, worked: dict[str, Program]) -> None:
    assert cluster.broker.lab.get("losses")["committed_records"] == 0


# the checks find what they are for


class Told(Program):
    """A journal without a program."""

    def __init__(self, name: str, *lines: str) -> None:
        self.name = name
        self.lines = [(float(number), line.split()) for number, line in enumerate(lines)]


@pytest.mark.parametrize(
    ("records", "wrong"),
    [
        ({(0, 0): "1", (0, 1): "2"}, []),
        ({(0, 0): "1", (0, 1): "2", (0, 2): "3"}, []),
        ({(0, 0): "1"}, ["record 2 was acknowledged and is lost"]),
        ({(0, 0): "1", (0, 1): "2", (0, 2): "1"}, ["record 1 is there 2 times"]),
        ({(0, 0): "1", (0, 1): "2", (0, 2): "3", (1, 0): "3"}, ["record 3 is there 2 times"]),
        ({(0, 0): "1", (0, 1): "2", (0, 2): "4"}, ["record 4 was never sent to its end"]),
    ],
)
def test_lost_and_repeated_records_are_found(records: dict[tuple[int, int], str], wrong: list[str]) -> None:
    assert history_checks.wrong_records(Told("java", "acked 1", "acked 2", "lost 3"), records) == wrong


def test_groups_that_go_back_or_miss_something_are_found() -> None:
    told = Told(
        *("java", "acked 1", "acked 2", "acked 3", "read g 0 0 1", "read g 0 1 2", "committed g 0 2", "read g 0 1 2"),
        *("read g 0 2 4",),
    )
    assert history_checks.wrong_reads(told, {(0, 0): "1", (0, 1): "2", (0, 2): "3"}, lambda group: {0: 1}) == [
        "g read 0:1 after it committed 2",
        "g read 4 at 0:2, where 3 is",
        "g missed 1 records",
        "g committed 0:2, and 1 is left",
    ]


def test_records_that_are_accepted_twice_or_missed_are_found() -> None:
    told = Told("java", "acked 1", "acked 2", "accepted 1", "accepted 1")
    assert history_checks.wrong_accepts(told) == ["the share group accepted 1 2 times", "the share group missed 2"]


@pytest.mark.parametrize(
    ("values", "offset", "wrong"),
    [
        ("1-0 1-1 1-2", 1, 0),
        ("1-0 1-1 1-2 2-0 2-1 2-2", 2, 0),
        ("1-0 1-1", 1, 1),
        ("1-0 1-1 1-2 2-0", 1, 1),
        ("1-0 1-1 1-2 3-0 3-1 3-2", 1, 1),
        ("1-0 1-1 1-2 1-2", 1, 1),
        ("1-0 1-1 1-2", 0, 1),
    ],
)
def test_transactions_that_are_not_whole_are_found(values: str, offset: int, wrong: int) -> None:
    told = Told("java", "whole 1", "doubtful 2", "aborted 3")
    records = {(0, number): value for number, value in enumerate(values.split())}
    assert len(history_checks.wrong_transactions(told, records, offset)) == wrong
