"""Share groups, told the same stories by ottla and by Apache Kafka: features, what is written, dead letters."""

from __future__ import annotations

import time

import pytest
from ottla.coordinator.share.acknowledge_types import ACCEPT, REJECT, RELEASE
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record

from ..support.ask import fetch_message
from ..support.differential import Pair, differences, own_brokers
from ..support.poll import until
from ..support.stories.features import FEATURES, feature_request
from ..support.stories.leases import (
    SETTINGS,
    acknowledged,
    acquired,
    fetched,
    offsets,
    written,
)
from ..support.stories.share import began, configure, heartbeat, initialized
from ..support.stories.topics import batch, creatable, create, produce, topic
from ..support.transcripts import Asks

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)


# features


@pytest.mark.parametrize("version", [0, 1, 2])
def test_features_go_up_and_down(pair: Pair, version: int) -> None:
    for updates in FEATURES:
        pair.ask("UpdateFeatures", version, feature_request(version, updates))
    assert pair.errors("UpdateFeatures") == {"INVALID_UPDATE_VERSION", "NONE"}


def test_share_groups_follow_their_feature(pair: Pair) -> None:
    """At level 0 share groups are refused, with live members and records in flight; at level 2 they begin again."""
    ids = began(pair, "sv")
    produce(pair, "sv", ids, batch(*"abcd"))
    fetched(pair, "sv", ids, 0, max_wait_ms=5000)

    def level(wanted: int, kind: int) -> None:
        pair.ask("UpdateFeatures", 2, feature_request(2, [("share.version", wanted, kind)], try_only=False))
        request = m.ApiVersionsRequest(client_software_name="w", client_software_version="1")
        for wire in pair.wires:

            def is_finalized(wire: Asks = wire) -> bool:
                levels = {f.name: f.max_version_level for f in wire.ask("ApiVersions", 4, request).finalized_features}
                return bool(levels.get("share.version", 0) == wanted)

            until(is_finalized, f"share.version is {wanted}")

    level(1, 2)
    acknowledged(pair, "sv", ids, 1, [(0, 0, [ACCEPT])])
    level(0, 2)
    fetched(pair, "sv", ids, 2)
    acknowledged(pair, "sv", ids, 2, [(1, 1, [ACCEPT])])
    heartbeat(pair, "sv", 0, ["sv"])
    pair.ask("ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=["sv"]))
    offsets(pair, "sv")
    pair.ask("AlterShareGroupOffsets", 0, m.AlterShareGroupOffsetsRequest(group_id="sv"))
    pair.ask("DeleteShareGroupOffsets", 0, m.DeleteShareGroupOffsetsRequest(group_id="sv"))
    level(2, 1)
    fetched(pair, "sv", ids, 2)
    fetched(pair, "sv", ids, 0, max_wait_ms=5000)
    fetched(pair, "sv", ids, -1)
    assert pair.errors("ShareFetch") == {"NONE", "SHARE_SESSION_NOT_FOUND", "UNSUPPORTED_VERSION"}
    assert pair.errors("ShareAcknowledge") == {"NONE", "UNSUPPORTED_VERSION"}
    assert pair.errors("ShareGroupHeartbeat") == {"NONE", "UNSUPPORTED_VERSION"}
    assert pair.errors("AlterShareGroupOffsets") == {"UNSUPPORTED_VERSION"}


def test_the_same_records_are_written(pair: Pair) -> None:
    """The whole history of a group, in Kafka's records: updates, and a snapshot after five of them."""
    ids = began(pair, "records")
    produce(pair, "records", ids, batch(*"abcdefghij"))
    fetched(pair, "records", ids, 0)
    for number, acks in enumerate(([(0, 0, [ACCEPT])], [(2, 3, [RELEASE])], [(1, 1, [REJECT])], [(4, 7, [ACCEPT])])):
        acknowledged(pair, "records", ids, number + 1, acks)
    fetched(pair, "records", ids, 5)
    for number, acks in enumerate(([(2, 2, [ACCEPT])], [(3, 3, [ACCEPT])], [(8, 8, [ACCEPT])])):
        acknowledged(pair, "records", ids, number + 6, acks)
    fetched(pair, "records", ids, -1)
    mine, other = ([p for p in written(wire, 2) if p[0].group_id == "records"] for wire in pair.wires)
    assert len(mine) == len(other) > 8
    found = [
        (n, d)
        for n, (a, b) in enumerate(zip(mine, other, strict=True))
        for one, two in zip(a, b, strict=True)
        for d in differences("written", one, two)
    ]
    assert not found, found


@pytest.mark.parametrize("reset", ["earliest", "latest", "by_duration:PT30M", "by_duration:PT1M", "by_duration:P30D"])
def test_where_a_group_begins(pair: Pair, reset: str) -> None:
    """Records of an hour and of ten minutes ago; within the last minute there are none."""
    name = f"sr-{reset.replace(':', '-')}"
    ids = topic(pair, name)
    now_ms = int(time.time() * 1000)
    for minutes in (60, 10):
        produce(pair, name, ids, bytes(records.encode([Record(value=b"v", timestamp=now_ms - minutes * 60_000)])))
    configure(pair, name, share_auto_offset_reset=reset)
    heartbeat(pair, name, 0, [name])
    initialized(pair, name, ids)
    for epoch in (0, 1):
        fetched(pair, name, ids, epoch)
    offsets(pair, name)
    produce(pair, name, ids, batch())
    fetched(pair, name, ids, 2)
    assert pair.errors("Produce") == {"INVALID_RECORD", "NONE"}


# dead letters


def dead_letters(pair: Pair, name: str, count: int) -> None:
    """Waits until each queue has so many records, and compares them but for their times."""
    found = []
    for wire in pair.wires:

        def letters(wire: Asks = wire) -> list[Record] | None:
            part = wire.ask("Fetch", 12, fetch_message(name, 0, wait_ms=20)).responses[0].partitions[0]
            data = b"" if part.error_code else part.records or b""
            rows = [r for at in records.batches(data) for r in records.decode(data, at)]
            return rows if len(rows) >= count else None

        rows = until(letters, f"{count} dead letters")
        found.append([(r.offset, r.key, r.value, [(k, v) for k, v in r.headers]) for r in rows])
    assert found[0] == found[1]


@pytest.mark.parametrize("copied", ["false", "true"])
def test_dead_letters(pair: Pair, copied: str) -> None:
    """One record is rejected, one released until that is once too often, and one is held for too long as often."""
    name, queue = f"sd-{copied}", f"dlq.sd-{copied}"
    create(pair, creatable(queue, 1, 1, **{"errors.deadletterqueue.group.enable": "true"}))
    more = {
        "errors_deadletterqueue_topic_name": queue,
        "errors_deadletterqueue_copy_record_enable": copied,
        "share_delivery_count_limit": "2",
    }
    ids = began(pair, name, 1, None, share_record_lock_duration_ms="4000", **more)
    fetched(pair, name, ids, 0)
    produce(pair, name, ids, batch("a", "b", "c", "d", keys=["1", "2", "3", "4"]))
    fetched(pair, name, ids, 1)
    acknowledged(pair, name, ids, 2, [(0, 0, [REJECT]), (1, 1, [RELEASE]), (3, 3, [ACCEPT])])
    fetched(pair, name, ids, 3, max_wait_ms=3000)
    acknowledged(pair, name, ids, 4, [(1, 1, [RELEASE])])
    dead_letters(pair, queue, 2)
    for epoch in (5, 6):
        assert acquired(fetched(pair, name, ids, epoch, max_wait_ms=6000)) == ([(2, 2, 2)] if epoch == 5 else [])
    dead_letters(pair, queue, 3)
    offsets(pair, name)


def test_queues_that_make_themselves(pair: Pair) -> None:
    name, queue = "sdm", "dlq.sdm"
    ids = began(pair, name, errors_deadletterqueue_topic_name=queue)
    produce(pair, name, ids, batch("a"))
    fetched(pair, name, ids, 0)
    fetched(pair, name, ids, 1, [(0, 0, [REJECT])])
    dead_letters(pair, queue, 1)
    r = m.DescribeConfigsRequest
    pair.ask(
        "DescribeConfigs",
        4,
        r(resources=[r.DescribeConfigsResource(resource_type=2, resource_name=queue, configuration_keys=None)]),
    )
    assert pair.errors("DescribeConfigs") == {"NONE"}
    assert pair.errors("Produce") == {"NONE"}
    assert pair.errors("ShareFetch") == {"NONE"}


@pytest.mark.parametrize("queue", ["__dlq", "other", "dlq.unflagged", "bad name", "."])
def test_queues_that_may_not_be_written(pair: Pair, queue: str) -> None:
    """The record is archived all the same."""
    name = f"sdx-{queue.encode().hex()}"
    if queue == "dlq.unflagged":
        create(pair, creatable(queue, 1, 1))
    ids = began(pair, name, errors_deadletterqueue_topic_name=queue)
    produce(pair, name, ids, batch("a", "b"))
    fetched(pair, name, ids, 0)
    fetched(pair, name, ids, 1)
    acknowledged(pair, name, ids, 2, [(0, 0, [REJECT]), (1, 1, [ACCEPT])])
    fetched(pair, name, ids, 3)
    pair.ask(
        "Metadata",
        12,
        m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=queue)], allow_auto_topic_creation=False),
    )
    assert pair.errors("Produce") == {"NONE"}
    assert pair.errors("ShareAcknowledge") == {"NONE"}
    assert pair.errors("ShareFetch") == {"NONE"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("share.record.lock.duration.ms", "60001"),
        ("share.record.lock.duration.ms", "999"),
        ("share.delivery.count.limit", "1"),
        ("share.delivery.count.limit", "many"),
        ("share.partition.max.record.locks", "4001"),
        ("share.auto.offset.reset", "none"),
        ("share.auto.offset.reset", "by_duration:-PT1S"),
        ("share.isolation.level", "serializable"),
        ("share.renew.acknowledge.enable", "perhaps"),
        ("share.session.timeout.ms", "5000"),
        ("errors.deadletterqueue.topic.name", "__x"),
        ("errors.deadletterqueue.copy.record.enable", "yes"),
        ("streams.num.standby.replicas", "3"),
        ("streams.num.warmup.replicas", "1000"),
        ("streams.task.offset.interval.ms", "1"),
        ("streams.assignor.name", "none"),
    ],
)
def test_values_that_a_group_may_not_have(pair: Pair, name: str, value: str) -> None:
    configure(pair, "refused", **{name: value})
    r = m.DescribeConfigsRequest
    pair.ask(
        "DescribeConfigs",
        4,
        r(resources=[r.DescribeConfigsResource(resource_type=32, resource_name="refused", configuration_keys=[name])]),
    )
    assert pair.errors("IncrementalAlterConfigs") == {"INVALID_CONFIG"}
