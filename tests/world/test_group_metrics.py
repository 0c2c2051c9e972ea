"""The metrics of the group coordinator, by the names that Kafka 4.4 has for them, after a history whose numbers are
known.
"""

from __future__ import annotations

from collections import Counter

from ottla.broker.event_times import Rates, Times
from ottla.broker.group.metrics import groups
from ottla.protocol import messages as m

from ..oracle.mbeans import recorded
from ..support.failing_appends import fail_appends
from ..support.group_world import beat, commit, policy, stable, world
from ..support.stories.streams import R, joining, part
from ..support.world import World

# Kafka's threads with their queues and buffers
WITHOUT_COUNTERPART = (
    "background-",
    "batch-buffer-cache-",
    "event-queue-",
    "thread-idle-ratio-",
)


def names_of_kafka() -> set[str]:
    """The MBeans that a Kafka had, by the names of ottla."""
    found = set()
    for line in recorded():
        bean, _, attribute = line.partition(" ")
        keys = dict(pair.split("=") for pair in bean.partition(":")[2].split(","))
        if keys["type"] == "GroupMetadataManager":
            found.add(keys["name"])
        elif not attribute.startswith(WITHOUT_COUNTERPART):
            name = attribute.replace("-", "_")
            tag = keys.get("state", keys.get("protocol"))
            is_counter = name.endswith("_count") and tag is None and name != "offset_count"
            found.add(f"{name}_total" if is_counter else name if tag is None else f"{name}{{{tag}}}")
    return found


def metrics(w: World) -> dict[str, float]:
    found = {}
    for family in groups(w.broker.groups):
        for sample in family.samples:
            name = sample.name.removeprefix("kafka_server_group_coordinator_metrics_").removeprefix(
                "kafka_coordinator_group_GroupMetadataManager_"
            )
            found[name + (f"{{{','.join(sample.labels.values())}}}" if sample.labels else "")] = sample.value
    return found


def test_every_name_of_kafkas_is_there_and_no_other() -> None:
    assert set(metrics(world())) == names_of_kafka()


def test_counts_rates_and_states_of_groups() -> None:
    w = world()
    began_ms = w.schedule.monotonic_ms()
    stable(w, b"")
    for offset in range(3):
        commit(w, offset)
    beat(w, "m1", 0, "t", group="c")
    w.send(
        "ShareGroupHeartbeat",
        1,
        m.ShareGroupHeartbeatRequest(group_id="q", member_id="m1", member_epoch=0, subscribed_topic_names=["t"]),
    )
    d = m.OffsetDeleteRequest
    topic = d.OffsetDeleteRequestTopic(name="t", partitions=[d.OffsetDeleteRequestPartition(partition_index=0)])
    w.ask("OffsetDelete", 0, d(group_id="s", topics=[topic]))
    commit(w, 9)
    w.pass_ms(30_000 - (w.schedule.monotonic_ms() - began_ms))
    found = metrics(w)
    assert {
        name: found[name] for name in ("offset_commit_count_total", "offset_deletion_count_total", "offset_count")
    } == {
        "offset_commit_count_total": 4,
        "offset_deletion_count_total": 1,
        "offset_count": 1,
    }
    assert 0.12 < found["offset_commit_rate"] < 0.14, "four in thirty seconds and a little"
    assert (found["group_completed_rebalance_count_total"], found["consumer_group_rebalance_count_total"]) == (1, 1)
    assert (found["classic_group_count{Empty}"], found["group_count{classic}"], found["group_count{consumer}"]) == (
        2,
        2,
        1,
    )
    assert found["share_group_rebalance_count_total"] >= 1
    assert found["num_partitions{active}"] == 3
    host = w.broker.groups.host("s")
    w.broker.turn.event(lambda: w.broker.groups.reload(host.partition))
    assert metrics(w)["offset_commit_count_total"] == 4, "what a shard counted is not lost with it"


def test_offsets_that_expire_are_counted() -> None:
    w = world(offsets_retention_minutes="1", offsets_retention_check_interval_ms="1000")
    commit(w, 1)
    w.pass_ms(62_000)
    assert (metrics(w)["offset_expiration_count_total"], metrics(w)["offset_count"]) == (1, 0)


def test_times_of_events_purgatory_and_batches() -> None:
    w = world()
    before = metrics(w)
    assert before["event_purgatory_time_ms_max"] == 0
    policy(w, "lag=40ms")
    commit(w, 1)
    w.pass_ms(50)
    found = metrics(w)
    assert found["event_purgatory_time_ms_max"] == found["event_purgatory_time_ms_p999"] == 40, (
        "as long as the high watermark was away"
    )
    assert w.broker.groups.times.batch_flush.count == w.broker.groups.times.batch_linger.count == 1
    assert w.broker.groups.times.processing.count == 1
    assert found["event_processing_time_ms_max"] > 0
    assert found["batch_flush_time_ms_max"] > 0
    assert found["batch_flush_rate"] > 0


def test_writes_are_counted_by_their_names() -> None:
    w = world()
    policy(w, "lag=40ms")
    commit(w, 1, group="s")
    w.pass_ms(50)
    host = w.broker.groups.host("s")
    fail_appends(w, host.partition)
    commit(w, 2, group="s")
    beat(w, "m", 0, "t", group="s")
    found = metrics(w)
    assert {name: value for name, value in found.items() if name.startswith("ottla_group_coordinator_events")} == {
        "ottla_group_coordinator_events_total{commit-offset}": 2,
        "ottla_group_coordinator_events_total{consumer-group-heartbeat}": 1,
        "ottla_group_coordinator_events_errors_total{commit-offset}": 1,
        "ottla_group_coordinator_events_errors_total{consumer-group-heartbeat}": 1,
        "ottla_group_coordinator_events_purgatory_time_ms_max{commit-offset}": 40,
        "ottla_group_coordinator_events_purgatory_time_ms_max{consumer-group-heartbeat}": 0,
    }


def test_quantiles_are_at_most_twice_too_long() -> None:
    times = Times()
    for n in range(1, 1001):
        times.add(n * 1000)
    for share, right in ((0.5, 500), (0.95, 950), (0.999, 999)):
        assert right <= times.quantile_ms(share) <= 2 * right
    assert (times.count, times.most, Times().quantile_ms(0.5)) == (1000, 1_000_000, 0)


def test_rates_are_of_the_last_minute() -> None:
    rates, counts = Rates(0), Counter({"commits": 10})
    assert rates.of(counts, 10_000) == {"commits": 1.0}
    counts["commits"] = 130
    assert rates.of(counts, 70_000) == {"commits": 2.0}
    assert rates.of(counts, 131_000) == {"commits": 0.0}


def test_streams_groups_are_counted_by_state() -> None:
    w = world()
    leaves = R(group_id="over", member_id="m1", member_epoch=-1)
    for request in (joining("runs"), joining("waits", part("0", "absent")), joining("over"), leaves):
        assert w.send("StreamsGroupHeartbeat", 1, request).reply.error_code == 0
    found = metrics(w)
    assert {name: value for name, value in found.items() if name.startswith("streams_group_count")} == {
        "streams_group_count{Empty}": 1,
        "streams_group_count{NotReady}": 1,
        "streams_group_count{Assigning}": 0,
        "streams_group_count{Reconciling}": 0,
        "streams_group_count{Stable}": 1,
        "streams_group_count{Dead}": 0,
    }
    assert (found["group_count{streams}"], found["NumGroups"]) == (3, 3)
    assert found["streams_group_rebalance_count_total"] == 3
