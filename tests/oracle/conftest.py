"""Installations of Kafka 0.8's time for groups of its consumers: one ZooKeeper, with a path for each broker."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ..support.classic_group import Printer
from .installations import Installation, RegisteredOttla
from .kafka import program
from .old_kafka import OldKafka
from .zookeeper import ZooKeeperServer

OTTLA, KAFKA = "ottla", "0.8.2.2"
KINDS = [OTTLA, KAFKA, *filter(None, os.environ.get("OTTLA_OLD_KAFKAS", "").split(","))]
"""More releases of Kafka by hand: OTTLA_OLD_KAFKAS=0.10.2.2,1.1.1"""
PARTITIONS = 6


@pytest.fixture(scope="session")
def zookeeper_server() -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tick_ms=500) as running:
        yield running


@pytest.fixture(scope="session", params=KINDS)
def kafka(request: pytest.FixtureRequest, zookeeper_server: ZooKeeperServer) -> Iterator[Installation]:
    """A broker in ZooKeeper: ottla, and what it stands for."""
    kind: str = request.param
    zookeeper = f"{zookeeper_server.address}/{kind}"
    settings: dict[str, object] = {"num.partitions": PARTITIONS}
    made = RegisteredOttla(zookeeper, settings) if kind == OTTLA else OldKafka(kind, settings, zookeeper)
    with made as running:
        yield running


@pytest.fixture(scope="session")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Printer]:
    """Kafka 0.8.2.2's consumers."""
    folder = tmp_path_factory.mktemp("theirs")
    printer = Printer(program("kafka-0.8.2.2", "OldConsumers", folder / "classes"), folder / "log")
    printer.wait("ready")
    yield printer
    printer.kill()
