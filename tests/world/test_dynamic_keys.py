"""Each broker key that Kafka declares dynamic, and that has an effect here, is changed while the broker runs: it has
its effect, or is refused as by Kafka. Those of the stores and protocols of TLS take effect for single listeners
(`tests/process/test_tls.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ottla.broker.config.checks import DEFAULT_ONLY
from ottla.broker.config.effects import without_effect
from ottla.broker.net.connection_counts import ConnectionCounts
from ottla.broker.tls.listener import STORES
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.config_def import dynamic_broker_keys, keys, topic_synonyms
from ottla.protocol.errors import Errors

from ..support.ask import batch, produce_message
from ..support.dynamic import described_broker, set_broker
from ..support.topic_world import create, produced
from ..support.world import World

OF_TOPICS = {
    "compression.gzip.level": "9",
    "compression.lz4.level": "2",
    "compression.type": "gzip",
    "compression.zstd.level": "4",
    "log.cleaner.delete.retention.ms": "77",
    "log.cleaner.max.compaction.lag.ms": "77",
    "log.cleaner.min.cleanable.ratio": "0.25",
    "log.cleaner.min.compaction.lag.ms": "77",
    "log.cleanup.policy": "compact",
    "log.flush.interval.messages": "7",
    "log.flush.interval.ms": "77",
    "log.index.interval.bytes": "777",
    "log.index.size.max.bytes": "7777",
    "log.message.timestamp.after.max.ms": "77",
    "log.message.timestamp.before.max.ms": "77",
    "log.message.timestamp.type": "LogAppendTime",
    "log.preallocate": "true",
    "log.retention.bytes": "77",
    "log.retention.ms": "77",
    "log.roll.jitter.ms": "77",
    "log.roll.ms": "77",
    "log.segment.bytes": "1048577",
    "log.segment.delete.delay.ms": "77",
    "max.decompressed.message.bytes": "7777",
    "message.max.bytes": "777",
    "unclean.leader.election.enable": "true",
}
"""Defaults of topics, with another value: logs that are open have it at once."""


def _topic_key(name: str) -> str:
    return next(key for key, names in topic_synonyms().items() if name in names)


def in_force(world: World, name: str) -> object:
    """The value with which the open log of `t` works."""
    key = _topic_key(name)
    log = world.broker.partitions.by_name["t", 0].open_log()
    own = getattr(log.settings, key.replace(".", "_"), None)
    return world.broker.settings.of_topic("t")[key] if own is None else own


@pytest.fixture(scope="module")
def shared() -> World:
    world = World(log_dirs="/a,/b", offsets_topic_num_partitions="1")
    create(world, "t")
    return world


@pytest.mark.long
@pytest.mark.parametrize("name", OF_TOPICS)
@pytest.mark.parametrize("node", ["", "1"])
def test_a_default_of_topics_holds_for_open_logs(name: str, node: str, shared: World) -> None:
    before = in_force(shared, name)
    assert set_broker(shared, name, OF_TOPICS[name], node) == (0, None)
    wanted = keys("broker")[name].parse(OF_TOPICS[name])
    found = in_force(shared, name)
    assert (list(found) if isinstance(found, tuple) else found) == wanted != before
    source = 2 if node else 3
    assert described_broker(shared, name, "1") == (0, {name: (OF_TOPICS[name], source)})
    assert set_broker(shared, name, None, node) == (0, None)
    assert in_force(shared, name) == before


def test_the_least_number_in_sync_is_of_the_cluster_while_there_are_eligible_replicas(shared: World) -> None:
    """KIP-966: it is not deleted, and single brokers have none."""
    name = "min.insync.replicas"
    assert set_broker(shared, name, "2", "1")[0] == Errors.INVALID_CONFIG
    assert set_broker(shared, name, "2", "") == (0, None)
    assert shared.broker.partitions.by_name["t", 0].min_insync_replicas == 2
    assert set_broker(shared, name, None, "")[0] == Errors.INVALID_CONFIG
    assert set_broker(shared, name, "1", "") == (0, None)
    assert shared.broker.partitions.by_name["t", 0].min_insync_replicas == 1


def _too_large(world: World) -> object:
    return produced(world.ask("Produce", 9, produce_message("t", batch(bytes(1000))))).error_code


def test_a_client_sees_a_changed_limit_with_its_next_request(shared: World) -> None:
    assert _too_large(shared) == 0
    set_broker(shared, "message.max.bytes", "777", "")
    assert _too_large(shared) == Errors.MESSAGE_TOO_LARGE
    set_broker(shared, "message.max.bytes", None, "")
    assert _too_large(shared) == 0


def _counts(world: World) -> ConnectionCounts:
    return ConnectionCounts(world.broker, 10_000)


def _value(name: str) -> Callable[[World], object]:
    """What those see who ask for the value whenever they need it."""
    return lambda world: world.broker.settings.value(name)


def _keys_of_a_compaction(world: World) -> object:
    return world.broker.replicas.cleaner.keys_max(world.broker.settings)


def _of_group(name: str) -> Callable[[World], object]:
    return lambda world: world.broker.settings.of_group("g", name)


def _refused_connections(world: World) -> object:
    counts = _counts(world)
    return [counts.opened("PLAINTEXT", address) is None for address in ("10.0.0.1", "10.0.0.1", "10.0.0.2")]


def _cleanings(world: World) -> object:
    """How often the cleaner looks within ten seconds."""
    figures, found = world.broker.replicas.cleaner.figures, set()
    world.pass_ms(20_000)
    for _ in range(100):
        found.add(figures.last_run_ms)
        world.pass_ms(100)
        world.broker.turn.wake()  # something happens: without that the rounds rest
    return len(found) > 5


def _compacted_topics(world: World) -> object:
    """How many of two topics are compacted within some rounds."""
    before = world.broker.metrics.cleanings
    for name in ("first", "second"):
        create(world, name, cleanup_policy="compact", segment_ms="1", min_cleanable_dirty_ratio="0.01")
        for number in range(3):
            data = bytes(records.encode([records.Record(b"k", b"%d" % number, world.schedule.now_ms())]))
            assert produced(world.ask("Produce", 9, produce_message(name, data))).error_code == 0
            world.pass_ms(10)
    world.pass_ms(60_000)
    made = world.broker.metrics.cleanings - before
    world.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["first", "second"], timeout_ms=1000))
    return made


def _new_topic(world: World) -> object:
    request = m.CreateTopicsRequest(timeout_ms=1000, validate_only=True)
    request.topics = [m.CreateTopicsRequest.CreatableTopic(name="new", num_partitions=1, replication_factor=1)]
    return world.ask("CreateTopics", 7, request).topics[0].error_code


def _throttle(name: str) -> Callable[[World], object]:
    return lambda world: world.broker.settings.rate(name)


RATES = ("follower.replication.throttled.rate", "leader.replication.throttled.rate")
MOVES = "replica.alter.log.dirs.io.max.bytes.per.second"
EFFECTS: dict[str, tuple[str, Callable[[World], object]]] = {
    "cordoned.log.dirs": ("*", _new_topic),
    "errors.deadletterqueue.auto.create.topics.enable": (
        "true",
        _value("errors.deadletterqueue.auto.create.topics.enable"),
    ),
    "errors.deadletterqueue.topic.name.prefix": ("x", _value("errors.deadletterqueue.topic.name.prefix")),
    **{
        f"group.{kind}.assignment.interval.ms": ("777", _of_group(f"{kind}.assignment.interval.ms"))
        for kind in ("consumer", "share", "streams")
    },
    "log.cleaner.backoff.ms": ("100", _cleanings),
    "log.cleaner.dedupe.buffer.size": (str(64 << 20), _keys_of_a_compaction),
    "log.cleaner.io.buffer.load.factor": ("0.5", _keys_of_a_compaction),
    "log.cleaner.io.max.bytes.per.second": ("1", _compacted_topics),
    "log.cleaner.threads": ("2", _keys_of_a_compaction),
    "max.connection.creation.rate": ("7", lambda world: world.broker._connection_rate(None)),
    "max.connections": ("2", _refused_connections),
    "max.connections.per.ip": ("1", _refused_connections),
    "max.connections.per.ip.overrides": ("10.0.0.1:1", _refused_connections),
    "producer.id.expiration.ms": ("777", _value("producer.id.expiration.ms")),
    "transaction.partition.verification.enable": ("false", lambda world: world.broker.appender.verifies()),
    **{name: ("7777", _throttle(name)) for name in (*RATES, MOVES)},
}
"""Other keys: a value, and what shows their effect."""


@pytest.mark.parametrize("name", EFFECTS)
def test_a_key_takes_effect_while_the_broker_runs(name: str, shared: World) -> None:
    value, see = EFFECTS[name]
    before = see(shared)
    assert set_broker(shared, name, value) == (0, None)
    assert see(shared) != before
    assert set_broker(shared, name, None) == (0, None)
    assert see(shared) == before


def test_a_producer_is_forgotten_after_the_time_that_holds_now() -> None:
    world = World(producer_id_expiration_check_interval_ms="1000")
    create(world, "t")
    data = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0, now=world.schedule.now_ms())
    assert produced(world.ask("Produce", 9, produce_message("t", data))).error_code == 0
    producers = world.broker.partitions.by_name["t", 0].open_log().producers
    world.pass_ms(5000)
    assert list(producers.by_id) == [7]
    set_broker(world, "producer.id.expiration.ms", "2000", "")
    world.pass_ms(2000)
    assert list(producers.by_id) == []


FACTORY = "ssl.engine.factory.class"
ONLY_OF_ONE = "Cannot update these configs at default cluster level, broker id must be specified"
ONLY_OF_LISTENERS = "These security configs can be dynamically updated only per-listener using the listener prefix"
REFUSED = {
    **{name: ("", ONLY_OF_ONE) for name in dynamic_broker_keys() if name.startswith("sasl.")},
    **{name: ("", ONLY_OF_ONE) for name in dynamic_broker_keys() if name.startswith("ssl.") and name != FACTORY},
    **dict.fromkeys(STORES, ("1", ONLY_OF_LISTENERS)),
    "listeners": ("", ONLY_OF_ONE),
    "listener.security.protocol.map": ("", ONLY_OF_ONE),
}
"""Keys that only listeners have, or only single brokers: the resource that may not have them, and Kafka's words."""


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_key_of_listeners_is_refused_elsewhere(name: str, shared: World) -> None:
    node, words = REFUSED[name]
    assert set_broker(shared, name, keys("broker")[name].default or "x", node) == (
        Errors.INVALID_REQUEST,
        f"{words}: [{name}]",
    )


def test_a_class_that_does_not_exist_is_refused(shared: World) -> None:
    words = f"Invalid value x.Y for configuration {FACTORY}: Class x.Y could not be found."
    for name in (FACTORY, f"listener.name.plaintext.{FACTORY}"):
        assert set_broker(shared, name, "x.Y", "1") == (Errors.INVALID_REQUEST, words)


def test_each_dynamic_key_with_an_effect_has_a_test() -> None:
    known = {name for name in dynamic_broker_keys() if without_effect(name) is None and name not in DEFAULT_ONLY}
    assert known - {*OF_TOPICS, *EFFECTS, *REFUSED, FACTORY} == {"min.insync.replicas"}, "which has a test of its own"
    assert {*OF_TOPICS, *EFFECTS} - known == set()


def test_a_key_that_is_not_dynamic_is_refused(shared: World) -> None:
    for name in sorted(set(keys("broker")) - dynamic_broker_keys()):
        if keys("broker")[name].internal:
            continue
        words = f"Cannot update these configs dynamically: [{name}]"
        assert set_broker(shared, name, "1") == (Errors.INVALID_REQUEST, words), name
