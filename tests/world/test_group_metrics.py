"""The metrics of the group coordinator, by the names that Kafka 4.4 has for them, after a history whose numbers are
known.
"""

from __future__ import annotations

from collections import Counter

from ottla.broker.event_times import Rates, Times
from ottla.broker.group.metrics import groups
from ottla.protocol import messages as m

from ..support.group_world import beat, commit, policy, stable, world
from ..support.world import World

QUANTILES = ("max", "p50", "p95", "p99", "p999")
TIMES = ("event_processing", "event_purgatory", "batch_linger", "batch_flush")

# Kafka's group-coordinator-metrics, without those of threads, their queues and buffers
OF_COORDINATOR = {
    *(
        f"{name}_{how}"
        for name in ("offset_commit", "offset_expiration", "offset_deletion")
        for how in ("rate", "count_total")
    ),
    *(
        f"{kind}_rebalance_{how}"
        for kind in ("group_completed", "consumer_group", "share_group", "streams_group")
        for how in ("rate", "count_total")
    ),
    *(
        f"{what}_time_ms_{q}"
        for what in ("event_processing", "event_purgatory", "batch_linger", "batch_flush")
        for q in ("max", "p50", "p95", "p99", "p999")
    ),
    *(f"group_count{{{protocol}}}" for protocol in ("classic", "consumer", "share", "streams")),
    *(
        f"classic_group_count{{{state}}}"
        for state in ("empty", "preparingrebalance", "completingrebalance", "stable", "dead")
    ),
    *(f"consumer_group_count{{{state}}}" for state in ("empty", "assigning", "reconciling", "stable", "dead")),
    *(f"share_group_count{{{state}}}" for state in ("empty", "stable", "dead")),
    *(
        f"streams_group_count{{{state}}}"
        for state in ("empty", "not_ready", "assigning", "reconciling", "stable", "dead")
    ),
    *(f"num_partitions{{{state}}}" for state in ("loading", "active", "failed")),
    "batch_flush_rate",
    "offset_count",
    "partition_load_time_max",
    "partition_load_time_avg",
}
OF_MANAGER = {
    "NumOffsets",
    "NumGroups",
    *(f"NumGroups{s}" for s in ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")),
}


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
    assert set(metrics(world())) == OF_COORDINATOR | OF_MANAGER


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
    assert (found["classic_group_count{empty}"], found["group_count{classic}"], found["group_count{consumer}"]) == (
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
    host.partition.isr_size = 0
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
