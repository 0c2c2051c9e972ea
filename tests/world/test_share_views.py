"""What people see of share groups: the lab's snapshot and the metrics by Kafka's names."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.lab import share_views
from ottla.broker.share.metrics import shares
from ottla.coordinator.share.acknowledge_types import ACCEPT, REJECT, RELEASE, RENEW
from ottla.coordinator.share.inflight import InFlight
from ottla.protocol import messages as m

from ..support.share_world import EARLIEST, Consumer, create, engine, hold, produce, world
from ..support.world import World


def ready() -> tuple[World, Consumer]:
    """Ten records, of which the member holds the first five."""
    w = world(group=EARLIEST | {"errors.deadletterqueue.topic.name": "dlq.q"})
    create(w, "dlq.q", 1, {"errors.deadletterqueue.group.enable": "true"})
    one = Consumer(w)
    produce(w, *(b"%d" % n for n in range(10)))
    assert one.got(share_acquire_mode=1, max_records=5) == [(0, 4, 1)]
    return w, one


def views(w: World, *place: Any) -> list[Any]:
    return list(share_views.group(w.broker, *place)["share_partitions"])


def metrics(w: World) -> dict[str, float]:
    """Each sample as `name{labels}`."""
    found = {}
    for family in shares(w.broker.share_partitions, w.broker.share_states):
        for sample in family.samples:
            labels = ",".join(sample.labels.values())
            found[f"{sample.name.removeprefix('kafka_server_')}{{{labels}}}"] = sample.value
    return found


def test_a_share_partition_is_shown_with_its_holders_and_their_time() -> None:
    w, one = ready()
    one.acknowledge((0, 1, ACCEPT), (3, 3, RELEASE))
    w.pass_ms(1000)
    seen = views(w, "q")[0]
    assert {
        name: seen[name]
        for name in ("topic", "partition", "state", "start_offset", "end_offset", "high_watermark", "lag", "in_flight")
    } == {
        "topic": "t",
        "partition": 0,
        "state": "active",
        "start_offset": 2,
        "end_offset": 9,
        "high_watermark": 10,
        "lag": 8,
        "in_flight": 8,
    }
    rows = [
        (row["first"], row["last"], row["state"], row["delivery_count"], row["member"], row["being_written"])
        for row in seen["records"]
    ]
    assert rows == [
        (0, 1, "ACKNOWLEDGED", 1, None, False),
        (2, 2, "ACQUIRED", 1, "m", False),
        (3, 3, "AVAILABLE", 1, None, False),
        (4, 4, "ACQUIRED", 1, "m", False),
        (5, 9, "AVAILABLE", 0, None, False),
    ]
    assert 28_000 < (seen["records"][1]["lock_remaining_ms"] or 0) <= 29_000
    assert [(step["what"], step["first"], step["last"], step["member_id"]) for step in seen["history"]][1:] == [
        ("acquired", 0, 4, "m"),
        ("accepted", 0, 1, "m"),
        ("released", 3, 3, "m"),
    ]


def test_a_change_that_is_being_written_is_shown_as_such() -> None:
    w, one = ready()
    hold(w)
    one.send_acknowledge((0, 4, ACCEPT))
    seen = views(w, "q", "t", 0)[0]["records"]
    assert (seen[0]["state"], seen[0]["being_written"]) == ("ACKNOWLEDGED", True)


def test_the_history_tells_what_happened() -> None:
    w, one = ready()
    one.acknowledge((0, 0, REJECT), (1, 1, RENEW), renews=True)
    w.pass_ms(30_100)
    one.got(share_acquire_mode=1, max_records=2)
    Consumer(w, "other").got(max_records=0)  # a group without sessions is forgotten
    one.lose_connection()
    words = [step["what"] for step in views(w, "q")[0]["history"]]
    assert words == [
        "loaded",
        "acquired",
        "rejected",
        "renewed",
        "dead letter",
        "lock timed out",
        "acquired",
        "session ended",
    ]


def test_looking_changes_nothing() -> None:
    w, one = ready()
    one.acknowledge((3, 3, RELEASE))

    def all_of(found: Any) -> Any:
        spans = [
            (s.first, s.last, s.whole is None, [vars_of(s.at(o)) for o in range(s.first, s.last + 1)])
            for s in found.spans
        ]
        return found.start_offset, found.end_offset, found.find_next, spans

    def vars_of(record: InFlight) -> Any:
        names = [name for name in dir(InFlight) if not name.startswith("__")]
        assert "_before" in names
        return [getattr(record, name) for name in names if not callable(getattr(InFlight, name))]

    before = all_of(engine(w).window)
    views(w, "q")
    assert all_of(engine(w).window) == before


def test_where_several_share_partitions_are_shown_each_has_its_first_runs() -> None:
    w = world(2)
    one = Consumer(w, partitions=(0, 1))
    one.got()
    for partition in (0, 1):
        produce(w, *(b"v" for _ in range(200)), partition=partition)
    one.got(max_records=1000)
    one.acknowledge((0, 199, *([ACCEPT, RELEASE] * 100)))
    shown, other = views(w, "q")
    assert (len(shown["records"]), shown["runs_left_out"]) == (50, True)
    assert (len(other["records"]), other["runs_left_out"]) == (1, False)
    (alone,) = views(w, "q", "t", 0)
    assert (len(alone["records"]), alone["runs_left_out"]) == (200, False)


def test_groups_are_listed_and_others_are_not_found() -> None:
    w, _ = ready()
    assert share_views.groups(w.broker) == {"groups": [{"group": "q", "share_partitions": 1}]}
    absent: tuple[tuple[Any, str], ...] = (
        (("other",), "share group other has not loaded any share-partition"),
        (("q", "u"), "share group q has not loaded u:"),
        (("q", "t", 7), "share group q has not loaded t:7:"),
    )
    for wanted, words in absent:
        with pytest.raises(LookupError, match=words):
            share_views.group(w.broker, *wanted)


def test_metrics_by_kafkas_names() -> None:
    w, one = ready()
    one.acknowledge((0, 0, ACCEPT), (1, 1, RELEASE), (2, 2, REJECT), (3, 3, RENEW), renews=True)
    w.pass_ms(30_100)
    seen = metrics(w)
    assert {
        kind: seen[f"ShareGroupMetrics_RecordAcknowledgements_total{{{kind}}}"]
        for kind in ("Accept", "Release", "Reject", "Renew")
    } == {
        "Accept": 1,
        "Release": 1,
        "Reject": 1,
        "Renew": 1,
    }
    assert seen["SharePartitionMetrics_InFlightMessageCount{q,t,0}"] == 9
    assert seen["SharePartitionMetrics_InFlightBatchCount{q,t,0}"] == 1
    assert seen["SharePartitionMetrics_AcquisitionLockTimeout_total{q,t,0}"] == 2
    assert seen["SharePartitionMetrics_InFlightBatchMessageCount_sum{q,t,0}"] == 5
    assert seen["SharePartitionMetrics_FetchLockTimeMs_count{q,t,0}"] == 1
    assert seen["ShareGroupMetrics_PartitionLoadTimeMs_count{}"] == 1
    assert seen["ShareGroupMetrics_RequestTopicPartitionsFetchRatio_sum{q}"] == 100
    assert seen["ShareGroupMetrics_TopicPartitionsAcquireTimeMs_count{q}"] == 1
    assert seen["ShareGroupMetrics_DeadLetterQueueRecordCount_total{q}"] == 1
    assert seen["ShareGroupMetrics_DeadLetterQueueTotalProduceRequests_total{q}"] == 1
    assert (seen["ShareSessionCache_ShareSessionsCount{}"], seen["ShareSessionCache_SharePartitionsCount{}"]) == (1, 1)
    assert seen["share_coordinator_metrics_write_total{}"] >= 2
    one.lose_connection()
    assert metrics(w)["ShareSessionCache_ShareSessionEvictions_total{}"] == 1


def test_a_cut_state_topic_says_where() -> None:
    w = world(
        share_coordinator_snapshot_update_records_per_snapshot="1",
        share_coordinator_state_topic_prune_interval_ms="5000",
    )
    one = Consumer(w)
    one.got()
    for _ in range(4):
        produce(w, b"v")
        ((first, last, _),) = one.got()
        one.acknowledge((first, last, ACCEPT))
    w.pass_ms(5001)
    assert metrics(w)["share_coordinator_metrics_last_pruned_offset{__share_group_state,0}"] > 0


def test_what_was_counted_for_a_group_goes_with_it() -> None:
    w, one = ready()
    one.acknowledge((0, 0, REJECT))
    w.pass_ms(10)
    r = m.ShareGroupHeartbeatRequest
    w.ask("ShareGroupHeartbeat", 1, r(group_id="q", member_id="m", member_epoch=-1))
    (deleted,) = w.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=["q"])).results
    assert deleted.error_code == 0
    assert not [name for name in metrics(w) if "{q}" in name]
