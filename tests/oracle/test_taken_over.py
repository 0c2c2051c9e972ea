"""Apache Kafka 4.4 on what `ottla takeover` made of directories that Kafkas with KRaft before 4.0 wrote, at once and
after ottla has served them.

All releases but the last, or the first with a metadata version, take part with OTTLA_RELEASES=1.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from ottla.protocol import messages as m

from ottla.handover.layout import Wanted
from ottla.handover.work import Order, take_over
from ottla.testing import Broker

from ..support.ask import batch, create, fetch, produce, produce_message
from ..support.entities import quotas_of
from ..support.old_directories import KraftDirectories, Row, committed, read
from ..support.poll import until
from ..support.wire import Wire
from .kafka import Kafka

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
ALL = ("3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.1")
IS_WHOLE = os.environ.get("OTTLA_RELEASES") == "1"
VERSIONS = ALL if IS_WHOLE else ("3.9.1",)
SERVED = ALL if IS_WHOLE else ("3.3.2",)
CONFIGS_IN_FORCE = {"plain": {"retention.ms": "900000000"}, "packed": {}}


def own_configs(wire: Wire, topic: str) -> dict[str, str]:
    """The configurations that a topic has of its own."""
    r = m.DescribeConfigsRequest
    resource = r.DescribeConfigsResource(resource_type=2, resource_name=topic)
    (found,) = wire.ask("DescribeConfigs", 4, r(resources=[resource])).results
    assert found.error_code == 0, found
    return {one.name: one.value for one in found.configs if one.config_source == 1}


def has(wire: Wire, topic: str, partition: int, rows: list[Row]) -> bool:
    return read(wire, topic, partition) == rows


@pytest.mark.parametrize("version", VERSIONS)
def test_kafka_goes_on_with_what_was_taken_over(version: str, tmp_path: Path) -> None:
    recorded = KraftDirectories(version, tmp_path / "old")
    kind = "killed" if "killed" in recorded.truth else "clean"
    take_over(Order(recorded.nodes(kind), str(tmp_path / "data"), Wanted()))
    truth = recorded.truth[kind]
    settings: dict[str, object] = {"offsets.topic.num.partitions": 4}
    with Kafka(settings, tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        for name, rows in truth["records"].items():
            topic, _, partition = name.rpartition("-")
            is_whole = partial(has, wire, topic, int(partition), rows)
            until(is_whole, f"{name} has what it had, up to its high watermark")
        found = until(lambda: committed(wire, "simple", ["plain", "packed"]), "the group is loaded")
        assert found == truth["offsets"]["simple"]
        assert {topic: own_configs(wire, topic) for topic in CONFIGS_IN_FORCE} == CONFIGS_IN_FORCE
        assert quotas_of(wire) == [[[["user", "u"]], [["producer_byte_rate", 1000.0]]]]
        reply = wire.ask("Produce", 9, produce_message("plain", batch(b"new")))
        assert reply.responses[0].partition_responses[0].error_code == 0
        until(lambda: len(read(wire, "plain", 0)) == len(truth["records"]["plain-0"]) + 1, "one more is there")


@pytest.mark.parametrize("version", SERVED)
def test_kafka_goes_on_with_what_ottla_has_served_since(version: str, tmp_path: Path) -> None:
    """The metadata version stays that of the earlier Kafka, so that ottla writes what it has."""
    recorded = KraftDirectories(version, tmp_path / "old")
    take_over(Order(recorded.nodes("clean"), str(tmp_path / "data"), Wanted()))
    settings: dict[str, object] = {"offsets.topic.num.partitions": 4}
    with Broker(settings, directory=tmp_path, lab=False) as broker, Wire(broker.bootstrap_servers) as wire:
        create(wire, "made", retention_ms="900000000")
        assert produce(wire, "made", b"by ottla").error_code == 0
        assert produce(wire, "plain", b"by ottla").error_code == 0
    truth = recorded.truth["clean"]
    with Kafka(settings, tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        until(lambda: fetch(wire, "made") == [b"by ottla"], "the new topic has its record")
        assert own_configs(wire, "made") == {"retention.ms": "900000000"}
        *before, (_, _, value, _) = until(lambda: read(wire, "plain", 0), "the log is read")
        assert (before, value) == (truth["records"]["plain-0"], "by ottla")
        found = until(lambda: committed(wire, "simple", ["plain", "packed"]), "the group is loaded")
        assert found == truth["offsets"]["simple"]
