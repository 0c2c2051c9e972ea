"""Brokers and controllers that are registered no more."""

from __future__ import annotations

from typing import Any

from ottla.coordinator.shard import Result
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, produce_message
from ..support.topic_world import create, produced, read
from ..support.world import World


def written(world: World, record: Any) -> None:
    """Lets the controller write a record, as in another life of the directory."""
    later = world.broker.metadata.submit(lambda: Result([record]))
    world.broker.turn.settle()
    world.pass_ms(10)
    assert later.done
    assert later.error is None


def unregister_broker(world: World, node: int) -> int:
    return int(world.ask("UnregisterBroker", 0, m.UnregisterBrokerRequest(broker_id=node)).error_code)


def leaders(world: World) -> dict[int, tuple[int, list[int], list[int]]]:
    """Leader, in-sync and offline replicas of each partition of t."""
    wanted = m.MetadataRequest.MetadataRequestTopic(name="t")
    (topic,) = world.ask("Metadata", 12, m.MetadataRequest(topics=[wanted])).topics
    return {p.partition_index: (p.leader_id, p.isr_nodes, p.offline_replicas) for p in topic.partitions}


def registered(world: World) -> dict[int, bool]:
    """Whether each broker is fenced."""
    return {one.id: one.fenced for one in world.broker.image.brokers.values()}


def unregister(world: World, controller_id: int) -> int:
    reply = world.ask("UnregisterController", 0, m.UnregisterControllerRequest(controller_id=controller_id))
    return int(reply.error_code)


def test_a_controller_of_another_life_is_forgotten_for_good() -> None:
    world = World()
    written(world, m.RegisterControllerRecord(controller_id=2))
    assert sorted(world.broker.image.controllers) == [1, 2]
    assert unregister(world, 2) == Errors.NONE
    assert unregister(world, 2) == Errors.CONTROLLER_ID_NOT_REGISTERED
    assert unregister(world, 1) == Errors.INVALID_REQUEST
    assert sorted(world.broker.image.controllers) == [1]
    assert sorted(World(world.lose_power()).broker.image.controllers) == [1]


def test_a_broker_of_another_life_is_forgotten_for_good() -> None:
    world = World()
    log_dirs = list(world.broker.image.brokers[1].log_dirs)
    written(world, m.RegisterBrokerRecord(broker_id=7, broker_epoch=3, fenced=True, log_dirs=log_dirs))
    create(world, "t")
    state = world.broker.image.topics["t"]
    change = m.PartitionChangeRecord(partition_id=0, topic_id=state.id, replicas=[1, 7], isr=[1, 7])
    change.directories = log_dirs * 2
    written(world, change)
    assert registered(world) == {1: False, 7: True}
    assert leaders(world) == {0: (1, [1, 7], [7])}
    assert unregister_broker(world, 7) == Errors.NONE
    assert unregister_broker(world, 7) == Errors.BROKER_ID_NOT_REGISTERED
    assert registered(world) == {1: False}
    assert leaders(world) == {0: (1, [1], [7])}
    again = World(world.lose_power())
    assert registered(again) == {1: False}
    assert leaders(again) == {0: (1, [1], [7])}


def test_a_running_broker_that_is_unregistered_leads_again_after_a_restart() -> None:
    """Its partitions keep it as an eligible leader (KIP-966), as in Kafka."""
    world = World()
    create(world, "t")
    assert produced(world.ask("Produce", 9, produce_message("t", batch(b"a")))).error_code == 0
    assert unregister_broker(world, 1) == Errors.NONE
    (partition,) = world.broker.image.partitions_of(world.broker.image.topics["t"].id)
    assert (partition.leader, partition.isr, partition.elr, partition.last_known_elr) == (-1, (), (1,), (1,))
    assert leaders(world) == {0: (-1, [], [1])}
    r = m.CreateTopicsRequest
    topics = [r.CreatableTopic(name="u", num_partitions=1, replication_factor=1)]
    assert world.ask("CreateTopics", 7, r(topics=topics, timeout_ms=1000)).topics[0].error_code == (
        Errors.INVALID_REPLICATION_FACTOR
    )
    world.broker.stop()
    again = World(world.files)
    assert registered(again) == {1: False}
    assert leaders(again) == {0: (1, [1], [])}
    assert read(again, "t") == [b"a"]


def test_the_partitions_of_a_node_that_is_unregistered_go_to_others() -> None:
    world = World(None, 0, ottla_nodes="3")
    r = m.CreateTopicsRequest
    topics = [r.CreatableTopic(name="t", num_partitions=3, replication_factor=3)]
    world.ask("CreateTopics", 7, r(topics=topics, timeout_ms=10_000))
    assert sorted(leader for leader, _, _ in leaders(world).values()) == [1, 2, 3]
    assert unregister_broker(world, 2) == Errors.NONE
    found = leaders(world)
    assert 2 not in {leader for leader, _, _ in found.values()}
    assert all(sorted(isr) == [1, 3] and offline == [2] for _, isr, offline in found.values())
    world.broker.stop()
    assert registered(World(world.files, 0, ottla_nodes="3")) == {1: False, 2: False, 3: False}
