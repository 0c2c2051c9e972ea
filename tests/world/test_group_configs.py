"""Each key of the group coordinator shows what it does. Those about threads and lingering have no effect here, and the
README names them.
"""

from __future__ import annotations

import pytest
from ottla.broker.config import sources as configuration
from ottla.broker.config.config import SETTLED, ConfigError
from ottla.broker.group.coordinators import TOPIC_NAME
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.protocol import compression, records
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.group_world import beat, code, commit, fetched, join, own, policy, stable, world
from ..support.world import World


def test_members_get_the_heartbeat_interval() -> None:
    w = world(ottla_group_settle="false", group_consumer_heartbeat_interval_ms="6000")
    assert beat(w, "m1", 0, "t").reply.heartbeat_interval_ms == 6000


def test_a_member_is_fenced_after_the_session_time_out_of_the_broker() -> None:
    w = world(group_consumer_session_timeout_ms="46000")
    beat(w, "m1", 0, "t")
    w.pass_ms(45_999)
    assert beat(w, "m1", 2).reply.error_code == 0
    w.pass_ms(46_001)
    assert beat(w, "m1", 2).reply.error_code == Errors.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("heartbeat.interval.ms", 4000),
        ("heartbeat.interval.ms", 9001),
        ("session.timeout.ms", 44_999),
        ("session.timeout.ms", 50_001),
        ("assignment.interval.ms", 99),
        ("assignment.interval.ms", 901),
    ],
)
def test_the_brokers_bounds_hold_for_a_groups_own_values(what: str, value: int) -> None:
    bounds = {
        "heartbeat.interval.ms": (5000, 9000),
        "session.timeout.ms": (45_000, 50_000),
        "assignment.interval.ms": (100, 900),
    }
    settings = {
        f"group.consumer.{end}.{k}".replace(".", "_"): str(v)
        for k, both in bounds.items()
        for end, v in zip(("min", "max"), both, strict=True)
    }
    w = world(4, **settings)
    refused = w.ask("IncrementalAlterConfigs", 1, own("g", **{"consumer_" + what.replace(".", "_"): value})).responses[
        0
    ]
    assert refused.error_code == Errors.INVALID_CONFIG
    inside = min(max(value, bounds[what][0]), bounds[what][1])
    taken = w.ask("IncrementalAlterConfigs", 1, own("g", **{"consumer_" + what.replace(".", "_"): inside})).responses[0]
    assert taken.error_code == 0


def test_no_more_members_than_the_largest_size() -> None:
    w = world(group_consumer_max_size="1")
    assert beat(w, "m1", 0, "t").reply.error_code == 0
    assert beat(w, "m2", 0, "t").reply.error_code == Errors.GROUP_MAX_SIZE_REACHED


def test_assignments_are_not_made_more_often_than_the_interval() -> None:
    w = world(group_consumer_assignment_interval_ms="1000", ottla_group_settle="false")
    assert beat(w, "m1", 0, "t").reply.member_epoch == 2
    beat(w, "m2", 0, "t")
    w.pass_ms(500)
    assert beat(w, "m1", 2, topic_partitions=None).reply.assignment is None, "within a second of the last assignment"
    w.pass_ms(600)
    assert beat(w, "m1", 2, topic_partitions=None).reply.assignment is not None


def test_an_expression_is_resolved_again_after_its_interval_and_not_before() -> None:
    w = world(group_consumer_regex_refresh_interval_ms="40000")
    beat(w, "m1", 0, subscribed_topic_names=None, subscribed_topic_regex="t.*")
    w.pass_ms(5)
    shard = w.broker.groups.host("g").shard
    resolved, epoch = [], 1
    for _ in range(2):
        w.pass_ms(21_000)
        epoch = beat(w, "m1", epoch).reply.member_epoch
        w.pass_ms(5)
        group = shard.groups["g"]
        assert isinstance(group, ConsumerGroup)
        resolved.append(group.regexes["t.*"].timestamp_ms)
    assert resolved[1] > resolved[0] + 21_000


@pytest.mark.parametrize(("session_ms", "refused"), [(6999, True), (7000, False), (8000, False), (8001, True)])
def test_session_time_outs_of_classic_members_are_bounded(session_ms: int, refused: bool) -> None:
    w = world(group_min_session_timeout_ms="7000", group_max_session_timeout_ms="8000")
    answer = join(w, version=3, session_timeout_ms=session_ms)
    w.pass_ms(300)
    assert (answer.reply.error_code == Errors.INVALID_SESSION_TIMEOUT) is refused


def test_a_commit_waits_for_the_high_watermark_as_long_as_the_key_says() -> None:
    w = world(offsets_commit_timeout_ms="700")
    policy(w, "held")
    late = commit(w, 5)
    w.pass_ms(690)
    assert not late.done
    w.pass_ms(20)
    assert code(late) == Errors.COORDINATOR_NOT_AVAILABLE


def test_offsets_are_kept_for_the_retention_and_looked_at_at_each_interval() -> None:
    w = world(offsets_retention_minutes="2", offsets_retention_check_interval_ms="300000")
    commit(w, 5)
    w.pass_ms(299_000)
    assert fetched(w).committed_offset == 5, "expired since three minutes, and not looked for yet"
    w.pass_ms(302_000)
    assert fetched(w).committed_offset == -1


def test_batches_of_the_offsets_topic_are_compressed() -> None:
    w = world(offsets_topic_compression_codec="3")
    commit(w, 5)
    log = w.broker.partitions.by_name[TOPIC_NAME, w.broker.groups.partition_for("s")].open_log()
    codecs = {batch.header.codec for _, batch in log.batches_from(0) if batch.header}
    assert codecs == {compression.LZ4}
    assert all(
        list(records.decode(s.read_batch(b), records.BatchAt(0, b.header))) for s, b in log.batches_from(0) if b.header
    )


def test_the_offsets_topic_has_the_size_of_segments_that_the_key_says() -> None:
    w = world(offsets_topic_segment_bytes="1048600", offsets_topic_num_partitions="7")
    assert sorted(index for name, index in w.broker.partitions.by_name if name == TOPIC_NAME) == list(range(7))
    log = w.broker.partitions.by_name[TOPIC_NAME, 0].open_log()
    assert log.settings.segment_bytes == 1048600


def test_metadata_of_a_commit_has_a_limit() -> None:
    w = world(offset_metadata_max_bytes="3")
    assert code(commit(w, 1, metadata="abc")) == 0
    assert code(commit(w, 1, metadata="abcd")) == Errors.OFFSET_METADATA_TOO_LARGE


def test_without_its_protocol_a_consumer_group_is_an_unsupported_version() -> None:
    w = world(group_coordinator_rebalance_protocols="classic")
    assert beat(w, "m1", 0, "t").reply.error_code == Errors.UNSUPPORTED_VERSION
    described = w.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=["g"])).groups[0]
    assert described.error_code == Errors.UNSUPPORTED_VERSION
    assert stable(w)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"group.consumer.heartbeat.interval.ms": "4000"},
            "group.consumer.heartbeat.interval.ms must be greater than or equal to "
            "group.consumer.min.heartbeat.interval.ms",
        ),
        (
            {"group.consumer.session.timeout.ms": "60001"},
            "group.consumer.session.timeout.ms must be less than or equal to group.consumer.max.session.timeout.ms",
        ),
        (
            {"group.share.max.heartbeat.interval.ms": "4999"},
            "group.share.max.heartbeat.interval.ms must be greater than or equal to "
            "group.share.min.heartbeat.interval.ms",
        ),
        (
            {"group.streams.max.heartbeat.interval.ms": "50000", "group.streams.heartbeat.interval.ms": "45000"},
            "group.streams.heartbeat.interval.ms must be less than group.streams.session.timeout.ms",
        ),
        (
            {"group.streams.num.standby.replicas": "3"},
            "group.streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
        ({"group.coordinator.rebalance.protocols": "consumer"}, "Disabling the 'classic' protocol is not supported."),
    ],
)
def test_keys_that_do_not_go_together_keep_the_broker_from_starting(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("(", r"\(")):
        configuration.build(configuration.from_arguments([f"{k}={v}" for k, v in settings.items()]))


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({}, {"consumer": ("1000", 5), "share": ("1000", 5), "streams": ("1000", 5)}),
        (
            {"group_consumer_assignment_interval_ms": "0"},
            {"consumer": ("0", 4), "share": ("1000", 5), "streams": ("1000", 5)},
        ),
    ],
)
def test_clients_see_kafkas_default_where_groups_settle_faster(
    settings: dict[str, str], shown: dict[str, tuple[str, int]]
) -> None:
    w = world(4, **settings)
    r = m.DescribeConfigsRequest
    for kind, name, prefix in ((32, "g", ""), (4, "1", "group.")):
        keys = {one: f"{prefix}{one}.assignment.interval.ms" for one in shown}
        asked = r.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=list(keys.values())
        )
        found = {one.name: one for one in w.ask("DescribeConfigs", 4, r(resources=[asked])).results[0].configs}
        assert {one: (found[key].value, found[key].config_source) for one, key in keys.items()} == shown
    assert w.broker.config["group.share.assignment.interval.ms"] == 0


def test_without_settling_kafkas_intervals_are_in_force_unless_others_are_given() -> None:
    given = {"ottla.group.settle": "false", "group.share.assignment.interval.ms": "7"}
    config = configuration.build(configuration.from_arguments([f"{k}={v}" for k, v in given.items()]))
    assert {name: config[name] for name in SETTLED} == {
        "group.initial.rebalance.delay.ms": 3000,
        "group.consumer.assignment.interval.ms": 1000,
        "group.share.assignment.interval.ms": 7,
        "group.streams.assignment.interval.ms": 1000,
        "group.streams.initial.rebalance.delay.ms": 3000,
    }


def test_our_own_assignment_interval_gives_way_to_a_bound() -> None:
    w = World(None, 0, group_consumer_min_assignment_interval_ms="500")
    assert w.broker.config["group.consumer.assignment.interval.ms"] == 500
