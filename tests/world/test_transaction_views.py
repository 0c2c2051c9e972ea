"""What people see of transactions: the lab's snapshot and the metrics by Kafka's names."""

from __future__ import annotations

from typing import Any

from ottla.broker.lab import transaction_views
from ottla.broker.transaction.metrics import transactions as metrics

from ..support.transaction_world import Writer, hold, world
from ..support.world import World


def begun(w: World, name: str = "x", timeout_ms: int = 60_000) -> Writer:
    one = Writer(w, name, timeout_ms=timeout_ms)
    assert one.init() == 0
    return one


def views(w: World, everything: bool = False) -> dict[str, Any]:
    found = transaction_views.transactions(w.broker, everything)
    return {"transactions": list(found["transactions"]), "held_back": list(found["held_back"])}


def samples(w: World) -> dict[str, float]:
    return {
        f"{s.name}{list(s.labels.values())}": s.value
        for family in metrics(w.broker.transactions)
        for s in family.samples
    }


def test_an_open_transaction_is_shown_with_what_it_holds_back() -> None:
    w = world()
    one = begun(w)
    one.write(b"a", index=1)
    one.add(2)
    w.pass_ms(1500)
    idle = begun(w, "idle")
    idle.write(b"b", index=1)
    idle.end()
    found = views(w)
    (shown,) = found["transactions"]
    assert (shown["transactional_id"], shown["state"], shown["producer_id"], shown["producer_epoch"]) == (
        "x",
        "Ongoing",
        one.id,
        0,
    )
    assert shown["open_ms"] is not None
    assert 1500 <= shown["open_ms"] < 1600
    assert shown["aborts_in_ms"] == 60_000 - shown["open_ms"]
    assert shown["partitions"] == [
        {"topic": "t", "partition": 1, "first_offset": 0},
        {"topic": "t", "partition": 2, "first_offset": None},
    ]
    (held,) = found["held_back"]
    assert (held["topic"], held["partition"], held["last_stable_offset"], held["records_behind"]) == ("t", 1, 0, 3)
    assert (held["transactional_id"], held["producer_id"], held["why"]) == ("x", one.id, "it is open")
    assert 1500 <= (held["idle_ms"] or 0) < 1600
    everything = views(w, everything=True)["transactions"]
    assert [(t["transactional_id"], t["state"], t["open_ms"]) for t in everything][:1] == [
        ("idle", "CompleteCommit", None)
    ]
    assert one.end() == 0
    assert views(w) == {"transactions": [], "held_back": []}


def test_a_transaction_that_hangs_differs_from_an_end_that_is_held() -> None:
    w = world(transaction_partition_verification_enable="false")
    hanging = Writer(w, "nobody", raises=False)
    hanging.id, hanging.epoch = 77, 0
    hanging.send(b"a")
    one = begun(w)
    one.write(b"b", index=1)
    hold(w, "t")
    one.ending()
    w.pass_ms(5)
    found = views(w)
    assert [(t["state"], t["partitions"]) for t in found["transactions"]] == [
        ("PrepareCommit", [{"topic": "t", "partition": 1, "first_offset": None}])
    ]
    why = {h["partition"]: (h["producer_id"], h["transactional_id"], h["why"]) for h in found["held_back"]}
    assert why == {
        0: (77, None, "hanging: no transaction coordinator knows this transaction"),
        1: (None, None, "its end marker is above the high watermark"),
    }


def test_metrics_by_kafkas_names() -> None:
    w = world()
    one = begun(w)
    one.write(b"a")
    hold(w, "t")
    one.ending()
    w.pass_ms(5)
    found = samples(w)
    assert found["ottla_transactions['PrepareCommit']"] == 1
    assert found["kafka_coordinator_transaction_TransactionMarkerChannelManager_UnknownDestinationQueueSize[]"] == 1
    assert found["kafka_server_ReplicaManager_ProducerIdCount[]"] == 1
    assert found["kafka_server_AddPartitionsToTxnManager_VerificationTimeMs_count[]"] == 1
    assert found["kafka_server_ReplicaManager_PartitionsWithLateTransactionsCount[]"] == 0
    assert found["kafka_server_transaction_coordinator_metrics_partition_load_time_max[]"] >= 0
    hold(w, "t", "immediate")
    w.pass_ms(5)
    other = Writer(w, "y", raises=False)
    assert other.init() == 0
    other.send(b"not announced")
    found = samples(w)
    assert found["kafka_coordinator_transaction_TransactionMarkerChannelManager_UnknownDestinationQueueSize[]"] == 0
    assert found["kafka_server_AddPartitionsToTxnManager_VerificationFailures_total[]"] == 1
    assert found["ottla_transactions['CompleteCommit']"] == 1


def test_a_transaction_that_should_have_ended_long_ago_is_counted() -> None:
    w = world(transaction_partition_verification_enable="false", transaction_max_timeout_ms="1000")
    hanging = Writer(w, "nobody", raises=False)
    hanging.id, hanging.epoch = 77, 0
    hanging.send(b"a")
    w.pass_ms(290_000)
    assert samples(w)["kafka_server_ReplicaManager_PartitionsWithLateTransactionsCount[]"] == 0
    w.pass_ms(20_000)
    assert samples(w)["kafka_server_ReplicaManager_PartitionsWithLateTransactionsCount[]"] == 1


def test_transactions_that_took_too_long_are_counted() -> None:
    w = world(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000")
    begun(w, timeout_ms=2000).write(b"a")
    w.pass_ms(4000)
    assert samples(w)["ottla_transactions_timed_out_total[]"] == 1
