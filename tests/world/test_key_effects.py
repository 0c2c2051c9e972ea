"""Keys of the broker whose effect no other test shows: what a client sees is not what it sees with the default."""

from __future__ import annotations

import re

import pytest
from ottla.broker.peer import SecurityProtocol
from ottla.coordinator.metadata.state import GROUP, TOPIC
from ottla.protocol import messages as m
from ottla.protocol.config_def import keys
from ottla.protocol.errors import Errors

from ..support.ask import batch, fetch_message, produce_message
from ..support.connected import ConnectedWorld
from ..support.sasl_world import LISTENER, SETTINGS
from ..support.stories.topics import creatable
from ..support.world import World


def test_the_windows_of_mutations_say_how_many_may_come_at_once() -> None:
    """controller.quota.window.num, controller.quota.window.size.seconds"""

    def created_at_once(**settings: str) -> int:
        w = World(**settings)
        a = m.AlterClientQuotasRequest
        entity = [a.EntityData(entity_type="client-id", entity_name=None)]
        ops = [a.OpData(key="controller_mutation_rate", value=1.0)]
        w.ask("AlterClientQuotas", 1, a(entries=[a.EntryData(entity=entity, ops=ops)]))
        for number in range(100):
            request = m.CreateTopicsRequest(timeout_ms=1000, topics=[creatable(f"t{number}", 1)])
            if w.ask("CreateTopics", 7, request).topics[0].error_code:
                return number
        return 100

    usual = created_at_once()
    assert created_at_once(controller_quota_window_num="3") < usual
    assert created_at_once(controller_quota_window_size_seconds="3") > usual


def test_a_page_of_partitions_is_bounded() -> None:
    """max.request.partition.size.limit"""
    w = World(max_request_partition_size_limit="3")
    w.ask("CreateTopics", 7, m.CreateTopicsRequest(timeout_ms=1000, topics=[creatable("t", 5)]))
    r = m.DescribeTopicPartitionsRequest
    found = w.ask("DescribeTopicPartitions", 0, r(topics=[r.TopicRequest(name="t")], response_partition_limit=2000))
    assert [one.partition_index for one in found.topics[0].partitions] == [0, 1, 2]
    assert (found.next_cursor.topic_name, found.next_cursor.partition_index) == ("t", 3)


@pytest.mark.parametrize(("size", "closed"), [(1000, False), (1001, True)])
def test_a_frame_beyond_the_largest_one_closes_the_connection(size: int, closed: bool) -> None:
    """socket.request.max.bytes"""
    client = ConnectedWorld(socket_request_max_bytes="1000").connect()
    client.feed(size.to_bytes(4, "big"))
    assert client.closed == closed


JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
OF_ALICE = {"sasl.enabled.mechanisms": "PLAIN", f"{LISTENER}.plain.sasl.jaas.config": JAAS}


@pytest.mark.parametrize(("size", "closed"), [(1000, False), (1001, True)])
def test_a_frame_before_the_log_in_is_bounded_by_itself(size: int, closed: bool) -> None:
    """sasl.server.max.receive.size"""
    world = ConnectedWorld(**SETTINGS, **OF_ALICE, **{"sasl.server.max.receive.size": "1000"})
    client = world.connect("AUTH", SecurityProtocol.SASL_PLAINTEXT)
    client.feed(size.to_bytes(4, "big"))
    world.pass_ms(1)
    assert client.closed == closed


def test_the_topic_of_transactions_has_segments_of_its_own_size() -> None:
    """transaction.state.log.segment.bytes"""
    w = World(transaction_state_log_segment_bytes="2000000")
    w.ask("InitProducerId", 4, m.InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000))
    w.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]))
    assert w.broker.image.config_of(TOPIC, "__transaction_state")["segment.bytes"] == "2000000"


@pytest.mark.parametrize(
    ("key", "value", "field", "expected"),
    [
        ("log_roll_jitter_hours", "2", "segment_jitter_ms", 7_200_000),
        ("log_roll_jitter_ms", "77", "segment_jitter_ms", 77),
        ("log_roll_hours", "3", "segment_ms", 10_800_000),
        ("log_retention_minutes", "5", "retention_ms", 300_000),
        ("log_retention_hours", "-1", "retention_ms", -1),
        ("log_flush_scheduler_interval_ms", "1000", "flush_ms", 1000),
    ],
)
def test_a_log_has_what_is_given_in_other_units(key: str, value: str, field: str, expected: int) -> None:
    w = World(**{key: value})
    w.ask("CreateTopics", 7, m.CreateTopicsRequest(timeout_ms=1000, topics=[creatable("t", 1)]))
    assert getattr(w.broker.partitions.by_name["t", 0].open_log().settings, field) == expected


BOUNDS = {
    "group.consumer.max.assignment.interval.ms": 14_000,
    "group.consumer.max.heartbeat.interval.ms": 14_000,
    "group.consumer.max.session.timeout.ms": 59_000,
    "group.consumer.min.assignment.interval.ms": 10,
    "group.consumer.min.heartbeat.interval.ms": 6000,
    "group.consumer.min.session.timeout.ms": 46_000,
    "group.share.max.assignment.interval.ms": 14_000,
    "group.share.max.delivery.count.limit": 9,
    "group.share.max.heartbeat.interval.ms": 14_000,
    "group.share.max.partition.max.record.locks": 3999,
    "group.share.max.record.lock.duration.ms": 59_999,
    "group.share.max.session.timeout.ms": 59_000,
    "group.share.min.assignment.interval.ms": 10,
    "group.share.min.delivery.count.limit": 3,
    "group.share.min.heartbeat.interval.ms": 6000,
    "group.share.min.partition.max.record.locks": 101,
    "group.share.min.record.lock.duration.ms": 15_001,
    "group.share.min.session.timeout.ms": 46_000,
    "group.streams.max.assignment.interval.ms": 14_000,
    "group.streams.max.heartbeat.interval.ms": 14_000,
    "group.streams.max.session.timeout.ms": 59_000,
    "group.streams.max.standby.replicas": 1,
    "group.streams.max.warmup.replicas": 3,
    "group.streams.min.assignment.interval.ms": 10,
    "group.streams.min.heartbeat.interval.ms": 6000,
    "group.streams.min.session.timeout.ms": 46_000,
    "group.streams.min.task.offset.interval.ms": 15_001,
}
"""Bounds that the broker has for keys of groups, with other values than by default."""


def bounded(bound: str) -> str:
    """The key of groups that a key of the broker bounds."""
    own = "num." if bound.endswith("replicas") else ""
    return re.sub(r"\.(min|max)\.", f".{own}", bound.removeprefix("group."), count=1)


@pytest.fixture(scope="module")
def usual() -> World:
    return World()


@pytest.mark.parametrize("bound", BOUNDS)
def test_groups_are_bounded_by_the_broker(bound: str, usual: World) -> None:
    def altered(w: World, to: int) -> int:
        r = m.IncrementalAlterConfigsRequest
        change = r.AlterableConfig(name=bounded(bound), value=str(to))
        resource = r.AlterConfigsResource(resource_type=GROUP, resource_name="g", configs=[change])
        (answer,) = w.ask("IncrementalAlterConfigs", 1, r(resources=[resource])).responses
        return int(answer.error_code)

    value = BOUNDS[bound]
    w = World(**{bound: str(value), f"group.{bounded(bound)}": str(value)})
    beyond = value + (1 if ".max." in bound.removesuffix("max.record.locks") else -1)
    assert (altered(w, value), altered(w, beyond)) == (0, Errors.INVALID_CONFIG)
    assert altered(usual, beyond) == 0


def test_each_bound_of_groups_is_among_these() -> None:
    bounds = {name for name in keys("broker") if re.match(r"group\.(consumer|share|streams)\.(min|max)\.", name)}
    of_the_broker = {f"group.{kind}.max.size" for kind in ("consumer", "share", "streams")}
    assert bounds - of_the_broker - {"group.share.max.share.sessions"} == set(BOUNDS)


def test_groups_have_what_the_broker_has() -> None:
    """The keys of groups that differ from those of the broker by their beginning."""
    given = {f"group.{bounded(name)}": str(value) for name, value in BOUNDS.items()}
    given |= {
        "group.streams.acceptable.recovery.lag": "7",
        "group.streams.initial.rebalance.delay.ms": "7",
        "group.streams.rack.aware.assignment.tags": "zone",
    }
    settings = World(**given).broker.settings
    for name, value in given.items():
        assert settings.of_group("g", name.removeprefix("group.")) == keys("broker")[name].parse(value), name


def test_a_fetch_has_no_more_than_the_broker_gives() -> None:
    """fetch.max.bytes, for those that ask for more"""

    def fetched(**settings: str) -> list[int]:
        w = World(**settings)
        w.ask("CreateTopics", 7, m.CreateTopicsRequest(timeout_ms=1000, topics=[creatable("t", 2)]))
        for index in range(2):
            w.ask("Produce", 9, produce_message("t", batch(bytes(2000)), index))
        request = fetch_message("t", 0)
        request.topics[0].partitions.append(fetch_message("t", 0, 1).topics[0].partitions[0])
        found = w.ask("Fetch", 11, request).responses[0].partitions
        return [one.partition_index for one in found if one.records]

    assert fetched() == [0, 1]
    assert fetched(fetch_max_bytes="1024") == [0]
