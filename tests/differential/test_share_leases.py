"""Share groups, told the same stories by ottla and by Apache Kafka: leases, compared field by field."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.coordinator.share.acknowledge_types import ACCEPT, GAP, REJECT, RELEASE, RENEW
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.poll import until
from ..support.stories.leases import (
    SETTINGS,
    Acks,
    acknowledged,
    acquired,
    fetched,
    offsets,
)
from ..support.stories.share import Ids, began, configure, heartbeat, initialized
from ..support.stories.topics import batch, produce, topic
from ..support.transcripts import Asks

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)


def released(pair: Pair, group: str, ids: Ids, last: int) -> None:
    """Waits until each has written what a closed session gave back; Kafka answers before it has."""
    r = m.ReadShareGroupStateRequest
    for side, wire in enumerate(pair.wires):
        request = r(
            group_id=group,
            topics=[r.ReadStateData(topic_id=ids[side], partitions=[r.PartitionData(partition=0, leader_epoch=0)])],
        )

        def is_written(wire: Asks = wire, request: Any = request) -> bool:
            (found,) = wire.ask("ReadShareGroupState", 0, request).results[0].partitions
            return bool(found.state_batches) and found.state_batches[-1].last_offset >= last

        until(is_written, f"the records up to {last} are given back")


# leases


def test_what_members_say_of_records(pair: Pair) -> None:
    ids = began(pair, "sa")
    fetched(pair, "sa", ids, 0)
    produce(pair, "sa", ids, batch(*"abcdefghij"))
    fetched(pair, "sa", ids, 1)
    acknowledged(pair, "sa", ids, 2, [(0, 1, [ACCEPT]), (2, 2, [RELEASE]), (3, 3, [REJECT]), (4, 5, [ACCEPT, RELEASE])])
    fetched(pair, "sa", ids, 3)
    fetched(pair, "sa", ids, 4, [(2, 2, [ACCEPT]), (5, 9, [GAP])])
    offsets(pair, "sa")
    fetched(pair, "sa", ids, 5, [(0, 0, [ACCEPT])])
    fetched(pair, "sa", ids, -1)
    assert pair.errors("DescribeShareGroupOffsets") == {"NONE"}
    assert pair.errors("Produce") == {"NONE"}
    assert pair.errors("ShareAcknowledge") == {"NONE"}


WRONG: dict[str, Acks] = {
    "not held": [(20, 20, [ACCEPT])],
    "reaches past what was acquired": [(5, 30, [ACCEPT])],
    "backwards": [(5, 4, [ACCEPT])],
    "overlapping": [(0, 3, [ACCEPT]), (2, 5, [ACCEPT])],
    "touching": [(0, 3, [ACCEPT]), (3, 5, [ACCEPT])],
    "descending": [(4, 5, [ACCEPT]), (0, 1, [ACCEPT])],
    "no types": [(0, 1, [])],
    "too few types": [(0, 5, [ACCEPT, ACCEPT])],
    "unknown type": [(0, 0, [5])],
    "negative type": [(0, 0, [-1])],
    "renew without saying so": [(0, 0, [RENEW])],
    "nothing": [],
}


@pytest.mark.parametrize("version", [1, 2])
def test_acknowledgements_that_are_wrong(pair: Pair, version: int) -> None:
    name = f"sw{version}"
    ids = began(pair, name)
    produce(pair, name, ids, batch(*"abcdefghij"))
    fetched(pair, name, ids, 0, version=version)
    epoch = 1
    for acks in WRONG.values():
        acknowledged(pair, name, ids, epoch, acks, version=version)
        fetched(pair, name, ids, epoch + 1, acks, version=version, max_wait_ms=1)
        epoch += 2
    other = pair.beside("other")
    fetched(other, name, ids, 0, version=version, member="m2", max_wait_ms=1)
    for number, acks in enumerate(([(0, 9, [ACCEPT])], [(3, 3, [ACCEPT])])):
        acknowledged(other, name, ids, 1 + number, acks, version=version, member="m2")
    acknowledged(pair, name, ids, epoch, [(3, 3, [ACCEPT])], version=version)
    acknowledged(pair, name, ids, epoch + 1, [(0, 9, [ACCEPT])], version=version)
    acknowledged(pair, name, ids, epoch + 2, [(3, 4, [ACCEPT])], version=version)
    acknowledged(other, name, ids, 3, [(4, 4, [ACCEPT])], version=version, member="m2")
    acknowledged(pair, name, ids, epoch + 3, [(0, 2, [ACCEPT]), (4, 9, [ACCEPT])], version=version)
    acknowledged(pair, name, ids, epoch + 4, [(0, 9, [ACCEPT])], version=version)
    fetched(other, name, ids, -1, version=version, member="m2")
    fetched(pair, name, ids, -1, version=version)
    other.close()
    assert pair.errors("ShareAcknowledge") == {"INVALID_RECORD_STATE", "INVALID_REQUEST", "NONE"}
    assert pair.errors("ShareFetch") == {"INVALID_RECORD_STATE", "INVALID_REQUEST", "NONE"}


def test_renewing(pair: Pair) -> None:
    ids = began(pair, "sr")
    produce(pair, "sr", ids, batch(*"abcde"))
    fetched(pair, "sr", ids, 0)
    fetched(pair, "sr", ids, 1, [(0, 4, [RENEW])], is_renew_ack=True)
    nothing: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    fetched(pair, "sr", ids, 1, [(0, 4, [RENEW])], is_renew_ack=True, **nothing)
    acknowledged(pair, "sr", ids, 2, [(0, 1, [RENEW]), (2, 2, [ACCEPT])], is_renew_ack=True)
    acknowledged(pair, "sr", ids, 3, [(0, 2, [RENEW])], is_renew_ack=True)
    configure(pair, "sr", share_renew_acknowledge_enable="false")
    for wire in pair.wires:
        wire.ask("DescribeCluster", 2, m.DescribeClusterRequest())
    acknowledged(pair, "sr", ids, 4, [(0, 1, [ACCEPT])])
    fetched(pair, "sr", ids, -1)
    assert pair.errors("ShareAcknowledge") == {"INVALID_RECORD_STATE", "NONE"}
    assert pair.errors("ShareFetch") == {"INVALID_REQUEST", "NONE"}


def deliver_until_gone(
    pair: Pair, name: str, ids: Ids, epoch: int, release: int = RELEASE, **more: Any
) -> list[list[tuple[int, int, int]]]:
    """Fetches and gives back until nothing comes any more; what came each time."""
    came: list[list[tuple[int, int, int]]] = []
    for _ in range(60):
        got = acquired(fetched(pair, name, ids, epoch, named=epoch == 0, max_wait_ms=60 if epoch else 5000, **more))
        epoch += 1
        if not got:
            return came
        came.append(got)
        acknowledged(pair, name, ids, epoch, [(first, last, [release]) for first, last, _ in got])
        epoch += 1
    raise AssertionError("it never ends")


@pytest.mark.parametrize("limit", [2, 3, 5, 8])
def test_records_are_delivered_so_often(pair: Pair, limit: int) -> None:
    name = f"sdl{limit}"
    ids = began(pair, name, share_delivery_count_limit=str(limit))
    produce(pair, name, ids, batch(*"abcdefgh"))
    produce(pair, name, ids, batch("i"))
    came = deliver_until_gone(pair, name, ids, 0)
    assert max(count for got in came for _, _, count in got) == limit
    offsets(pair, name)
    fetched(pair, name, ids, 0)
    fetched(pair, name, ids, -1)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize(("records_max", "batch_size"), [(1, 1), (3, 2), (7, 5), (10, 100), (500, 4)])
def test_how_many_records_come(pair: Pair, mode: int, records_max: int, batch_size: int) -> None:
    name = f"sn{mode}-{records_max}-{batch_size}"
    ids = began(pair, name)
    for count in (1, 5, 2, 9, 3):
        produce(pair, name, ids, batch(*"abcdefghi"[:count]))
    epoch = last = 0
    for _ in range(8):
        reply = fetched(
            pair,
            name,
            ids,
            epoch,
            max_records=records_max,
            batch_size=batch_size,
            share_acquire_mode=mode,
            max_wait_ms=60 if epoch else 5000,
        )
        last = max([last, *(end for _, end, _ in acquired(reply))])
        epoch += 1
    acknowledged(pair, name, ids, epoch, [(0, 0, [RELEASE])])
    for _ in range(3):
        epoch += 1
        fetched(
            pair,
            name,
            ids,
            epoch,
            max_records=records_max,
            batch_size=batch_size,
            share_acquire_mode=mode,
            max_wait_ms=60,
        )
    fetched(pair, name, ids, -1)
    released(pair, name, ids, last)
    for epoch in range(4):
        fetched(
            pair,
            name,
            ids,
            epoch,
            max_records=records_max,
            batch_size=batch_size,
            share_acquire_mode=mode,
            max_wait_ms=60,
        )
    fetched(pair, name, ids, -1)
    assert pair.errors("Produce") == {"NONE"}
    assert pair.errors("ShareAcknowledge") == {"NONE"}
    assert pair.errors("ShareFetch") == {"NONE"}


def test_only_so_many_records_are_in_flight(pair: Pair) -> None:
    ids = began(pair, "sf", share_partition_max_record_locks="100")
    for _ in range(15):
        produce(pair, "sf", ids, batch(*"abcdefghij"))
    for epoch in range(4):
        fetched(pair, "sf", ids, epoch, max_records=45, max_wait_ms=60 if epoch else 5000)
    acknowledged(pair, "sf", ids, 4, [(10, 19, [ACCEPT]), (20, 29, [RELEASE])])
    fetched(pair, "sf", ids, 5, max_wait_ms=60)
    acknowledged(pair, "sf", ids, 6, [(0, 9, [ACCEPT])])
    for epoch in range(7, 10):
        fetched(pair, "sf", ids, epoch, max_wait_ms=60)
    offsets(pair, "sf")
    fetched(pair, "sf", ids, -1)
    assert pair.errors("DescribeShareGroupOffsets") == {"NONE"}
    assert pair.errors("Produce") == {"NONE"}
    assert pair.errors("ShareAcknowledge") == {"NONE"}


def test_limits_of_a_fetch(pair: Pair) -> None:
    ids = began(pair, "sb", 2)
    fetched(pair, "sb", ids, 0, max_records=0)
    fetched(pair, "sb", ids, 1, max_bytes=0)
    fetched(pair, "sb", ids, 2, min_bytes=0)
    for index in (0, 1):
        produce(pair, "sb", ids, batch("a" * 300), partition=index)
        produce(pair, "sb", ids, batch("b" * 300), partition=index)
    fetched(pair, "sb", ids, 3, max_bytes=400, max_wait_ms=60)
    fetched(pair, "sb", ids, 4, min_bytes=100_000, max_wait_ms=60)
    fetched(pair, "sb", ids, 5, max_wait_ms=60)
    fetched(pair, "sb", ids, -1)
    assert pair.errors("Produce") == {"NONE"}
    assert pair.errors("ShareFetch") == {"NONE"}
    assert pair.errors("ShareGroupHeartbeat") == {"NONE"}


def test_a_fetch_of_fewer_than_no_bytes(pair: Pair) -> None:
    """It fails share-partitions also where there are no records."""
    ids = began(pair, "sbn", 2)
    both = (0, 1)
    fetched(pair, "sbn", ids, 0, partitions=both, max_wait_ms=60)
    fetched(pair, "sbn", ids, 1, partitions=both, max_bytes=-1)
    produce(pair, "sbn", ids, batch("a"))
    fetched(pair, "sbn", ids, 2, partitions=both, max_bytes=-1000)
    fetched(pair, "sbn", ids, 3, partitions=both, max_bytes=-1, max_records=0)
    reply = fetched(pair, "sbn", ids, 4, partitions=both)
    assert acquired(reply) == [(0, 0, 1)]
    fetched(pair, "sbn", ids, -1)
    assert pair.errors("ShareFetch") == {"NONE", "UNKNOWN_SERVER_ERROR"}


def test_a_session_outlives_its_connection_if_another_one_of_it_has_ended(pair: Pair) -> None:
    ids = began(pair, "slo")
    produce(pair, "slo", ids, batch("a"))
    other = pair.beside("other")
    fetched(other, "slo", ids, 0, member="m2", max_wait_ms=60)
    fetched(other, "slo", ids, 0)
    fetched(other, "slo", ids, -1, member="m2")
    other.close()
    fetched(pair, "slo", ids, 1, max_wait_ms=60)
    fetched(pair, "slo", ids, -1)
    assert pair.errors("ShareFetch") == {"NONE"}


def test_records_do_not_wait_for_a_share_partition_whose_state_is_read(pair: Pair) -> None:
    ids = began(pair, "sur", 2)
    fetched(pair, "sur", ids, 0, max_wait_ms=60)
    for index in (0, 1):
        produce(pair, "sur", ids, batch("a"), partition=index)
    reply = fetched(pair, "sur", ids, 1, partitions=(1,))
    assert [part.partition_index for part in reply.responses[0].partitions] == [0]
    reply = fetched(pair, "sur", ids, 2, named=False)
    assert [part.partition_index for part in reply.responses[0].partitions] == [1]
    fetched(pair, "sur", ids, -1)
    assert pair.errors("ShareFetch") == {"NONE"}


def test_an_unknown_way_to_acquire(pair: Pair) -> None:
    """It fails a request when its session and acknowledgements have been served, if it fetches something."""
    ids = began(pair, "sam")
    produce(pair, "sam", ids, batch(*"ab"))
    fetched(pair, "sam", ids, 0, share_acquire_mode=2)
    fetched(pair, "sam", ids, 1, share_acquire_mode=-1, max_records=0)
    reply = fetched(pair, "sam", ids, 2)
    assert acquired(reply) == [(0, 1, 1)]
    fetched(pair, "sam", ids, 3, [(1, 1, [ACCEPT])], share_acquire_mode=100)
    acknowledged(pair, "sam", ids, 4, [(1, 1, [ACCEPT])])
    fetched(pair, "sam", ids, 5, named=False, forgotten=(0,), share_acquire_mode=100)
    fetched(pair, "sam", ids, -1, share_acquire_mode=100)
    assert pair.errors("ShareAcknowledge") == {"INVALID_RECORD_STATE", "NONE"}
    assert pair.errors("ShareFetch") == {"NONE", "UNKNOWN_SERVER_ERROR"}


def test_locks_run_out(pair: Pair) -> None:
    ids = began(pair, "st", share_record_lock_duration_ms="3000")
    produce(pair, "st", ids, batch(*"abcd"))
    fetched(pair, "st", ids, 0)
    reply = fetched(pair, "st", ids, 1, max_wait_ms=10_000)
    assert acquired(reply) == [(0, 3, 2)]
    acknowledged(pair, "st", ids, 2, [(0, 3, [ACCEPT])])
    acknowledged(pair, "st", ids, 3, [(0, 3, [ACCEPT])])
    offsets(pair, "st")
    fetched(pair, "st", ids, -1)


def test_records_are_deleted_under_a_group(pair: Pair) -> None:
    ids = began(pair, "sz")
    for _ in range(3):
        produce(pair, "sz", ids, batch(*"abcd"))
    fetched(pair, "sz", ids, 0, max_records=4)
    fetched(pair, "sz", ids, 1, max_records=4)
    r = m.DeleteRecordsRequest
    parts = [r.DeleteRecordsPartition(partition_index=0, offset=6)]
    pair.ask("DeleteRecords", 2, r(timeout_ms=1000, topics=[r.DeleteRecordsTopic(name="sz", partitions=parts)]))
    acknowledged(pair, "sz", ids, 2, [(0, 3, [RELEASE])])
    for epoch in range(3, 6):
        fetched(pair, "sz", ids, epoch, max_wait_ms=60)
    acknowledged(pair, "sz", ids, 6, [(4, 7, [RELEASE])])
    for epoch in range(7, 10):
        fetched(pair, "sz", ids, epoch, max_wait_ms=60)
    offsets(pair, "sz")
    fetched(pair, "sz", ids, -1)
    assert pair.errors("DeleteRecords") == {"NONE"}
    assert pair.errors("DescribeShareGroupOffsets") == {"NONE"}
    assert pair.errors("Produce") == {"NONE"}


@pytest.mark.parametrize("is_split", [False, True])
def test_the_last_records_that_are_held_are_deleted(pair: Pair, is_split: bool) -> None:
    """All at once, or with a state for each."""
    name = f"sz-{is_split}"
    ids = began(pair, name)
    produce(pair, name, ids, batch(*"abc"))
    fetched(pair, name, ids, 0)
    for values in ("def", "ghi"):
        produce(pair, name, ids, batch(*values))
    r = m.DeleteRecordsRequest
    parts = [r.DeleteRecordsPartition(partition_index=0, offset=6)]
    pair.ask("DeleteRecords", 2, r(timeout_ms=1000, topics=[r.DeleteRecordsTopic(name=name, partitions=parts)]))
    acks = [(0, 0, [RELEASE]), (1, 1, [RELEASE]), (2, 2, [ACCEPT])] if is_split else [(0, 2, [ACCEPT])]
    fetched(pair, name, ids, 1, acks, max_wait_ms=60)
    found = [acquired(fetched(pair, name, ids, epoch, max_wait_ms=60)) for epoch in (2, 3)]
    assert found == ([[(6, 8, 1)], []] if is_split else [[], [(6, 8, 1)]])
    offsets(pair, name)
    fetched(pair, name, ids, -1)


def test_a_topic_that_is_deleted(pair: Pair) -> None:
    ids = began(pair, "sq")
    produce(pair, "sq", ids, batch(*"abcd"))
    fetched(pair, "sq", ids, 0)
    pair.ask(
        "DeleteTopics",
        6,
        m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name="sq")], timeout_ms=5000),
    )
    pair.until("DescribeTopicPartitions", 0, _partitions_of("sq"), lambda r: r.topics[0].error_code != 0)
    acknowledged(pair, "sq", ids, 1, [(0, 3, [ACCEPT])])
    fetched(pair, "sq", ids, 2, named=False, max_wait_ms=60)
    fetched(pair, "sq", ids, -1)
    assert pair.errors("ShareAcknowledge") == {"NONE", "UNKNOWN_TOPIC_ID"}
    assert pair.errors("ShareFetch") == {"NONE", "UNKNOWN_TOPIC_OR_PARTITION"}


def test_a_topic_that_is_made_again_under_a_session(pair: Pair) -> None:
    """The session looks for a state of the topic that is gone."""
    ids, beside = topic(pair, "sqa"), topic(pair, "sqb")
    configure(pair, "sqa", share_auto_offset_reset="earliest")
    heartbeat(pair, "sqa", 0, ["sqa", "sqb"])
    for one in (ids, beside):
        initialized(pair, "sqa", one)
    fetched(pair, "sqa", ids, 0)
    fetched(pair, "sqa", beside, 1)
    pair.ask(
        "DeleteTopics",
        6,
        m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name="sqa")], timeout_ms=5000),
    )
    pair.until("DescribeTopicPartitions", 0, _partitions_of("sqa"), lambda r: r.topics[0].error_code != 0)
    assert topic(pair, "sqa") != ids
    pair.until("ListOffsets", 7, _ends_of("sqa"), lambda r: r.topics[0].partitions[0].error_code == 0)
    fetched(pair, "sqa", ids, 2, named=False)
    fetched(pair, "sqa", ids, -1)
    assert pair.errors("ShareFetch") == {"NONE", "UNKNOWN_SERVER_ERROR"}


def _ends_of(name: str) -> Any:
    r = m.ListOffsetsRequest
    wanted = r.ListOffsetsTopic(name=name, partitions=[r.ListOffsetsPartition(partition_index=0, timestamp=-1)])
    return r(replica_id=-1, topics=[wanted])


def _partitions_of(name: str) -> Any:
    r = m.DescribeTopicPartitionsRequest
    return r(topics=[r.TopicRequest(name=name)])
