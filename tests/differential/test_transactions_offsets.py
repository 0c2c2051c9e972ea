"""Transactions, told the same stories by ottla and by Apache Kafka: offsets, compared field by field."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.coordinator.hashing import partition_for
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.schema import NO_UUID

from ..support.differential import Pair, own_brokers
from ..support.stories.core import fetch_request
from ..support.stories.groups import first_beat, group_topic
from ..support.stories.topics import topic, versions
from ..support.stories.transactions import (
    ABORTED,
    COMMITTED,
    SETTINGS,
    Writer,
    described,
    ended,
    initialized,
    offsets_added,
)
from ..support.transcripts import Asks

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)


# offsets


def offsets_committed(
    pair: Pair,
    version: int,
    writer: Writer,
    group: str,
    name: str,
    offset: int,
    *,
    member: tuple[str, str] = ("", ""),
    generation: int = -1,
    instance: str | None = None,
    metadata: str = "",
    partitions: tuple[int, ...] = (0,),
    ids: tuple[bytes, bytes] | None = None,
) -> Any:
    r = m.TxnOffsetCommitRequest

    def make(side: int) -> Any:
        parts = [
            r.TxnOffsetCommitRequestPartition(partition_index=p, committed_offset=offset, committed_metadata=metadata)
            for p in partitions
        ]
        named = r.TxnOffsetCommitRequestTopic(partitions=parts)
        if version >= 6:
            named.topic_id = ids[side] if ids else bytes(15) + b"\x07"
        else:
            named.name = name
        request = r(
            transactional_id=writer.name,
            group_id=group,
            producer_id=writer.ids[side],
            producer_epoch=writer.epoch,
            topics=[named],
        )
        if version >= 3:
            request.member_id, request.generation_id_or_member_epoch, request.group_instance_id = (
                member[side],
                generation,
                instance,
            )
        return request

    return pair.both("TxnOffsetCommit", version, make)[0]


def offsets_watched(pair: Pair, group: str, name: str) -> None:
    f = m.OffsetFetchRequest
    for stable in (False, True):
        wanted = f.OffsetFetchRequestGroup(
            group_id=group, topics=[f.OffsetFetchRequestTopics(name=name, partition_indexes=[0, 1])]
        )
        pair.ask("OffsetFetch", 8, f(groups=[wanted], require_stable=stable))
        pair.ask(
            "OffsetFetch", 8, f(groups=[f.OffsetFetchRequestGroup(group_id=group, topics=None)], require_stable=stable)
        )


def sequences(wire: Asks, group: str) -> set[tuple[int, bool]]:
    """The sequences at which batches of a group's partition begin, and whether a producer wrote them."""
    r, name = m.MetadataRequest, "__consumer_offsets"
    (found,) = wire.ask("Metadata", 9, r(topics=[r.MetadataRequestTopic(name=name)])).topics
    partition = partition_for(group, len(found.partitions))
    reply = wire.ask("Fetch", 11, fetch_request(11, name, NO_UUID, 0, partition=partition))
    data = bytes(reply.responses[0].partitions[0].records)
    headers = [at.header for at in records.batches(data)]
    return {(one.base_sequence, one.producer_id >= 0) for one in headers if not one.is_control}


def test_batches_of_offsets_have_sequence_0(pair: Pair) -> None:
    topic(pair, "txn-sequence")
    writer = initialized(pair, "txn-sequence")
    offsets_added(pair, 3, writer, "txn-sequence")
    offsets_committed(pair, 4, writer, "txn-sequence", "txn-sequence", 5)
    r = m.OffsetCommitRequest
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    named = r.OffsetCommitRequestTopic(name="txn-sequence", partitions=[part])
    pair.ask("OffsetCommit", 8, r(group_id="txn-sequence", topics=[named]))
    for wire in pair.wires:
        assert sequences(wire, "txn-sequence") == {(0, True), (0, False)}
    ended(pair, 3, writer, ABORTED)


@pytest.mark.parametrize("version", versions("TxnOffsetCommit"))
def test_offsets_in_transactions(pair: Pair, version: int) -> None:
    name = f"txn-offsets-{version}"
    ids = topic(pair, name, 2)
    end = 5 if version >= 5 else 4
    writer = initialized(pair, name)

    def committed(who: Writer, offset: int, group: str = name, **more: Any) -> Any:
        return offsets_committed(pair, version, who, group, name, offset, **{"ids": ids, **more})

    committed(writer, 1, group="")
    for stranger in (writer._replace(name=""), writer._replace(name="nobody"), writer.stranger(), writer.at(4)):
        committed(stranger, 1)
    if version < 5:
        committed(writer, 1)  # not announced
        offsets_added(pair, 3, writer, name)
    committed(writer, 5, partitions=(0, 1, 9))
    committed(writer, 5, partitions=())
    committed(writer, 5, ids=None) if version >= 6 else offsets_committed(pair, version, writer, name, "not-there", 1)
    committed(writer, 6, metadata="x" * 5000)
    offsets_watched(pair, name, name)
    described(pair, name)
    writer = ended(pair, end, writer, COMMITTED)
    offsets_watched(pair, name, name)
    if version < 5:
        committed(writer, 7)  # not announced again
        offsets_added(pair, 3, writer, name)
    committed(writer, 8, metadata="why")
    committed(writer.at(writer.epoch - 1) if version >= 5 else writer, 9)
    offsets_watched(pair, name, name)
    after = ended(pair, end, writer, ABORTED)
    offsets_watched(pair, name, name)
    if version < 5:
        offsets_added(pair, 3, after, name)
    if version >= 3:
        committed(after, 9, generation=3)
        committed(after, 9, generation=3, group=f"{name}-unheard-of")
        committed(after, 9, member=("m", "m"))
        committed(after, 9, instance="i")
        committed(after, 9, generation=-2)
    committed(after, 10, partitions=(1,))
    d = m.OffsetDeleteRequest
    parts = [d.OffsetDeleteRequestPartition(partition_index=p) for p in (0, 1)]
    pair.ask("OffsetDelete", 0, d(group_id=name, topics=[d.OffsetDeleteRequestTopic(name=name, partitions=parts)]))
    offsets_watched(pair, name, name)
    committed(after, 11)
    pair.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=[name]))
    offsets_watched(pair, name, name)
    ended(pair, end, after, COMMITTED)
    offsets_watched(pair, name, name)
    assert pair.errors("OffsetFetch") == {"NONE", "UNSTABLE_OFFSET_COMMIT"}


@pytest.mark.parametrize("version", versions("TxnOffsetCommit"))
def test_offsets_in_transactions_of_members_and_of_share_groups(pair: Pair, version: int) -> None:
    name = f"txn-members-{version}"
    ids = group_topic(pair, name, 2)
    first_beat(pair, f"{name}-c", "m1", [name])
    r = m.ShareGroupHeartbeatRequest
    pair.ask(
        "ShareGroupHeartbeat", 1, r(group_id=f"{name}-s", member_id="m1", member_epoch=0, subscribed_topic_names=[name])
    )
    writer = initialized(pair, name)
    for group in (f"{name}-c", f"{name}-s", f"{name}-none"):
        if version < 5:
            offsets_added(pair, 3, writer, group)
        for member in ("m1", "nobody", "") if version >= 3 else ("",):
            for generation in (-1, 0, 1, 2, 99) if version >= 3 else (-1,):
                offsets_committed(
                    pair, version, writer, group, name, 3, member=(member, member), generation=generation, ids=ids
                )
    ended(pair, 5 if version >= 5 else 4, writer, COMMITTED)
    assert pair.errors("TxnOffsetCommit") >= {"GROUP_ID_NOT_FOUND", "NONE"}
