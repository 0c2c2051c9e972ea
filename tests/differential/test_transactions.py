"""Transactions, told the same stories by ottla and by Apache Kafka: their steps, compared field by field."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.stories.topics import topic, versions
from ..support.stories.transactions import (
    ABORTED,
    COMMITTED,
    SETTINGS,
    Writer,
    added,
    adding,
    asked,
    described,
    ended,
    initialized,
    offsets_added,
    produced,
    settle,
    watched,
)

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)


# InitProducerId


@pytest.mark.parametrize("version", versions("InitProducerId"))
def test_producers_begin(pair: Pair, version: int) -> None:
    name = f"init-{version}"
    initialized(pair, None, version=version)
    initialized(pair, "", version=version)
    for timeout_ms in (0, -1, 100_001, 2**31 - 1):
        initialized(pair, f"{name}-slow", version=version, timeout_ms=timeout_ms)
    first = initialized(pair, name, version=version)
    second = initialized(pair, name, version=version)
    described(pair, name, f"{name}-slow", "")
    if version < 3:
        return
    third = initialized(pair, name, second, version)  # KIP-360
    again = initialized(pair, name, second, version)  # its reply was lost
    assert third == again
    for old in (first, second.stranger(), third.at(third.epoch + 1), third.at(-1), third._replace(ids=(-1, -1))):
        initialized(pair, name, old, version)
    initialized(pair, None, third, version)
    initialized(pair, f"{name}-unheard-of", third, version)


@pytest.mark.parametrize("version", versions("InitProducerId"))
def test_a_producer_that_begins_aborts_what_is_open(pair: Pair, version: int) -> None:
    name = f"fenced-{version}"
    topic(pair, name)
    old = initialized(pair, name, version=version)
    added(pair, 3, old, name, 0)
    produced(pair, 11, old, name, b"a")
    initialized(pair, name, version=version)  # CONCURRENT_TRANSACTIONS: the abort goes first
    settle(pair, name)
    new = initialized(pair, name, version=version)
    described(pair, name)
    produced(pair, 11, old, name, b"b", sequence=1)
    ended(pair, 4, old, COMMITTED)
    ended(pair, 1, old, COMMITTED)
    added(pair, 3, old, name, 0)
    added(pair, 1, old, name, 0)
    offsets_added(pair, 1, old, "g")
    offsets_added(pair, 3, old, "g")
    added(pair, 3, new, name, 0)
    produced(pair, 11, new, name, b"c")
    ended(pair, 4, new, COMMITTED)
    watched(pair, name)
    assert pair.errors("AddPartitionsToTxn") == {"INVALID_PRODUCER_EPOCH", "NONE", "PRODUCER_FENCED"}
    assert pair.errors("EndTxn") == {"INVALID_PRODUCER_EPOCH", "NONE", "PRODUCER_FENCED"}
    assert pair.errors("AddOffsetsToTxn") == {"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"}
    assert pair.errors("InitProducerId") == {"CONCURRENT_TRANSACTIONS", "NONE"}


# AddPartitionsToTxn, AddOffsetsToTxn


@pytest.mark.parametrize("version", versions("AddPartitionsToTxn"))
def test_partitions_join(pair: Pair, version: int) -> None:
    name = f"join-{version}"
    topic(pair, name, 3)
    writer = initialized(pair, name)
    added(pair, version, writer._replace(name=""), name, 0)
    added(pair, version, writer._replace(name="nobody"), name, 0)
    added(pair, version, writer.stranger(), name, 0)
    added(pair, version, writer.at(5), name, 0)
    added(pair, version, writer, name)
    added(pair, version, writer, name, 0)
    described(pair, name)
    added(pair, version, writer, name, 0)
    added(pair, version, writer, name, 1, 9)
    added(pair, version, writer, "not-there", 0)
    described(pair, name)
    added(pair, version, writer, name, 1, 2)
    described(pair, name)
    ended(pair, 5 if version >= 4 else 4, writer, ABORTED)
    described(pair, name)
    assert pair.errors("AddPartitionsToTxn") >= {
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_REQUEST",
        "NONE",
        "OPERATION_NOT_ATTEMPTED",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


@pytest.mark.parametrize("version", [4, 5])
def test_several_transactions_and_asking_only(pair: Pair, version: int) -> None:
    a = m.AddPartitionsToTxnRequest
    topic(pair, f"several-{version}", 3)
    writers = [initialized(pair, f"several-{version}-{n}") for n in range(3)]

    def topics(*partitions: int) -> list[Any]:
        return [a.AddPartitionsToTxnTopic(name=f"several-{version}", partitions=list(partitions))]

    def both(*wanted: tuple[Writer, tuple[int, ...], bool]) -> None:
        pair.both(
            "AddPartitionsToTxn",
            version,
            lambda side: a(transactions=[asked(w, side, topics(*p), only) for w, p, only in wanted]),
        )

    both((writers[0], (0,), True), (writers[1], (1,), False), (writers[2].at(9), (0, 2), False))
    both(
        (writers[0], (0, 1), False),
        (writers[1], (0, 1), True),
        (writers[2], (0,), True),
        (writers[1]._replace(name="nobody"), (0,), True),
    )
    both(
        (writers[1].at(7), (1,), True), (writers[0].stranger(), (0,), True), (writers[2]._replace(name=""), (0,), True)
    )
    both((writers[0], (8,), True), (writers[1], (0,), False))
    described(pair, *(w.name for w in writers))
    assert pair.errors("AddPartitionsToTxn") == {
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_REQUEST",
        "NONE",
        "PRODUCER_FENCED",
        "TRANSACTION_ABORTABLE",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


@pytest.mark.parametrize("version", [3, 4, 5])
def test_topics_without_partitions_join(pair: Pair, version: int) -> None:
    a = m.AddPartitionsToTxnRequest
    name = f"without-{version}"
    topic(pair, name)
    writer = initialized(pair, name)

    def ask(*topics: tuple[str, list[int]], by: Writer = writer, only: bool = False) -> None:
        wanted = [a.AddPartitionsToTxnTopic(name=name, partitions=partitions) for name, partitions in topics]
        pair.both("AddPartitionsToTxn", version, lambda side: adding(version, by, side, wanted, only))

    for by in (writer, writer._replace(name="nobody")):
        ask((name, []), by=by)
        ask((name, []), ("absent", [0]), by=by)
        ask((name, []), (name, [0]), by=by)
        if version >= 4:
            ask((name, []), (name, [0]), by=by, only=True)
            ask((name, []), by=by, only=True)


@pytest.mark.parametrize("version", [0, 3, 4, 5])
def test_topics_that_are_named_twice_join(pair: Pair, version: int) -> None:
    name = f"again-{version}"
    topic(pair, name)
    writer = initialized(pair, name)
    t = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic

    def ask(*topics: tuple[str, list[int]], by: Writer = writer, only: bool = False) -> None:
        wanted = [t(name=name, partitions=partitions) for name, partitions in topics]
        pair.both("AddPartitionsToTxn", version, lambda side: adding(version, by, side, wanted, only))

    for by in (writer.at(5), writer._replace(name="nobody"), writer):
        ask((name, [0]), (name, [0]), by=by)
        ask((name, [0, 0]), by=by)
        ask(("absent", [0]), ("absent", [0]), by=by)
        ask(("absent", [0, 0]), by=by)
        if version >= 4:
            ask((name, [0]), (name, [0, 0]), by=by, only=True)


@pytest.mark.parametrize("version", versions("AddOffsetsToTxn"))
def test_offsets_join(pair: Pair, version: int) -> None:
    writer = initialized(pair, f"offsets-{version}")
    for one in (
        writer._replace(name=""),
        writer._replace(name="nobody"),
        writer.stranger(),
        writer.at(3),
        writer,
        writer,
    ):
        offsets_added(pair, version, one, "group")
    offsets_added(pair, version, writer, "")
    described(pair, writer.name)
    ended(pair, 4, writer, COMMITTED)
    assert pair.errors("AddOffsetsToTxn") >= {"INVALID_PRODUCER_ID_MAPPING", "INVALID_REQUEST", "NONE"}


# EndTxn


@pytest.mark.parametrize("version", versions("EndTxn"))
@pytest.mark.parametrize("committed", [COMMITTED, ABORTED])
def test_transactions_end(pair: Pair, version: int, committed: bool) -> None:
    name = f"end-{version}-{committed}"
    topic(pair, name, 2)
    writer = initialized(pair, name)
    for one in (writer._replace(name=""), writer._replace(name="nobody"), writer.stranger(), writer.at(4)):
        ended(pair, version, one, committed)
    ended(pair, version, writer, COMMITTED)  # nothing has begun
    writer = ended(pair, version, writer, ABORTED)  # which clients of KIP-890 may
    described(pair, name)
    added(pair, 3, writer, name, 0, 1)
    produced(pair, 11, writer, name, b"a", b"b")
    after = ended(pair, version, writer, committed)
    described(pair, name)
    ended(pair, version, writer, committed)  # its reply was lost
    ended(pair, version, writer, not committed)
    ended(pair, version, after, committed)
    last = ended(pair, version, after, ABORTED)
    ended(pair, version, last, COMMITTED)
    ended(pair, version, after, COMMITTED)
    described(pair, name)
    for partition in (0, 1):
        watched(pair, name, partition)
    assert pair.errors("EndTxn") >= {"INVALID_PRODUCER_ID_MAPPING", "INVALID_REQUEST", "INVALID_TXN_STATE", "NONE"}
