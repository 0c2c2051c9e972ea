"""A broker that is registered in a real ZooKeeper, which is lost, stopped, or without its data."""

from __future__ import annotations

import json
import os
import signal

import pytest
from ottla.protocol import messages as m

from ..oracle.zookeeper import ZooKeeperServer, tool
from ..support.poll import until
from ..support.wire import Wire
from .zookeeper_brokers import SHORT_MS, registered

pytestmark = pytest.mark.slow


def test_a_session_that_is_lost_is_registered_again(zookeeper: ZooKeeperServer) -> None:
    path = "/lost/brokers/ids/7"
    with registered(zookeeper, "/lost", "0.10.2", zookeeper_session_timeout_ms=SHORT_MS) as broker:
        before = zookeeper.owner(path)
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            until(lambda: zookeeper.owner(path) is None, "the session expires", within=30, every=0.05)
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        until(lambda: zookeeper.owner(path) not in (None, before), "it is registered again", within=30, every=0.02)
        until(lambda: zookeeper.owner("/lost/controller") == zookeeper.owner(path), "as controller too", within=30)
        until(lambda: zookeeper.value("/lost/controller_epoch") == "2", "of the next epoch", within=30)

        owner = zookeeper.owner(path)
        broker.kill()
        broker.start()  # faster than the session ends
        assert zookeeper.owner(path) not in (None, owner)


def test_the_broker_goes_on_while_zookeeper_is_down(zookeeper: ZooKeeperServer) -> None:
    with registered(zookeeper, "/down", "0.10.2") as broker:
        zookeeper.stop()
        r = m.MetadataRequest
        try:
            with Wire(broker.bootstrap_servers) as wire:
                asked = r(topics=[r.MetadataRequestTopic(name="meanwhile")])
                until(lambda: not wire.ask("Metadata", 0, asked).topics[0].error_code, "a topic is made", within=20)
        finally:
            zookeeper.start()
        state = "/down/brokers/topics/meanwhile/partitions/0/state"
        until(lambda: zookeeper.client.connected and zookeeper.value(state), "it is shown", within=60, every=0.05)
        until(lambda: zookeeper.value("/down/brokers/ids/7"), "and the broker", within=60, every=0.05)


def test_a_zookeeper_that_has_lost_its_data_gets_all_of_it_again(fresh: ZooKeeperServer) -> None:
    with registered(fresh, "/fresh", "1.1", zookeeper_session_timeout_ms=SHORT_MS) as broker:
        r = m.CreateTopicsRequest
        with Wire(broker.bootstrap_servers) as wire:
            wanted = r.CreatableTopic(name="kept", num_partitions=2, replication_factor=1)
            wanted.configs = [r.CreatableTopicConfig(name="retention.ms", value="1000000")]
            assert not wire.ask("CreateTopics", 2, r(topics=[wanted], timeout_ms=10_000)).topics[0].error_code
        state = "/fresh/brokers/topics/kept/partitions/1/state"
        until(lambda: fresh.value(state), "it is shown", within=60, every=0.05)
        before = fresh.tree("/fresh/brokers/topics")
        command = ("admin.ConfigCommand", "--zookeeper", f"{fresh.address}/fresh", "--alter")
        quota = ("--entity-type", "clients", "--entity-name", "c", "--add-config", "consumer_byte_rate=1000")
        tool("1.1.1", *command, *quota)
        agreed = broker.data_directory / "zookeeper-agreed"
        until(lambda: b"consumer_byte_rate" in agreed.read_bytes(), "the broker has it", within=60, every=0.05)
        for _ in range(5):  # changes are counted
            change = b'{"version":2,"entity_path":"clients/c"}'
            fresh.client.create("/fresh/config/changes/config_change_", change, sequence=True)
        fresh.client.stop()
        fresh.stop()
        fresh.lose_data()
        fresh.start()
        fresh.client.start()
        until(lambda: fresh.value("/fresh/brokers/ids/7"), "it is registered", within=60, every=0.05)
        until(lambda: fresh.tree("/fresh/brokers/topics").keys() == before.keys(), "topics", within=60, every=0.05)
        assert "1000000" in (fresh.value("/fresh/config/topics/kept") or "")
        until(lambda: "1000" in (fresh.value("/fresh/config/clients/c") or ""), "the quota", within=60, every=0.05)

        topic = ("--entity-type", "topics", "--entity-name", "kept", "--add-config", "retention.ms=2000000")
        tool("1.1.1", *command, *topic)
        d = m.DescribeConfigsRequest
        asked = d(resources=[d.DescribeConfigsResource(2, "kept", ["retention.ms"])])
        with Wire(broker.bootstrap_servers) as wire:

            def followed() -> bool:
                (found,) = wire.ask("DescribeConfigs", 1, asked).results
                return bool(found.configs[0].value == "2000000")

            until(followed, "a change is followed", within=60, every=0.05)


def test_what_changes_while_zookeeper_is_down_is_there_after_a_restart_of_the_broker(fresh: ZooKeeperServer) -> None:
    """Nothing that the broker has acknowledged is lost, or there again."""
    topics = "/gone/brokers/topics"

    def create(wire: Wire, name: str, partitions: int) -> None:
        r = m.CreateTopicsRequest
        wanted = r.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        assert not wire.ask("CreateTopics", 2, r(topics=[wanted], timeout_ms=10_000)).topics[0].error_code

    def shown(name: str) -> int:
        return len(json.loads(fresh.value(f"{topics}/{name}") or "{}").get("partitions", ()))

    with registered(fresh, "/gone", "1.1", zookeeper_session_timeout_ms=SHORT_MS) as broker:
        with Wire(broker.bootstrap_servers) as wire:
            for name in ("deleted", "again", "grown", "configured"):
                create(wire, name, 2)
            until(lambda: sum(map(shown, fresh.client.get_children(topics))) == 8, "all are shown", within=60)
            fresh.client.stop()
            fresh.stop()
            asked = m.DeleteTopicsRequest(topic_names=["deleted", "again"], timeout_ms=10_000)
            assert [one.error_code for one in wire.ask("DeleteTopics", 1, asked).responses] == [0, 0]
            create(wire, "again", 1)
            create(wire, "created", 1)
            p = m.CreatePartitionsRequest
            grown = p(topics=[p.CreatePartitionsTopic(name="grown", count=3, assignments=None)], timeout_ms=10_000)
            assert not wire.ask("CreatePartitions", 0, grown).results[0].error_code
            a = m.AlterConfigsRequest
            values = [a.AlterableConfig(name="retention.ms", value="7")]
            configs = a(resources=[a.AlterConfigsResource(resource_type=2, resource_name="configured", configs=values)])
            assert not wire.ask("AlterConfigs", 0, configs).responses[0].error_code
        broker.kill()
        fresh.start()
        fresh.client.start()
        broker.start()
        expected = {"again": 1, "configured": 2, "created": 1, "grown": 3}
        assert {name: shown(name) for name in sorted(fresh.client.get_children(topics))} == expected
        assert json.loads(fresh.value("/gone/config/topics/configured") or "")["config"] == {"retention.ms": "7"}
        with Wire(broker.bootstrap_servers) as wire:
            found = wire.ask("Metadata", 1, m.MetadataRequest(topics=None)).topics
        assert {one.name: len(one.partitions) for one in found} == expected
