"""Transactions, told the same stories by ottla and by Apache Kafka: administration, features, what is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ottla.coordinator.transaction.format import TransactionFormat
from ottla.protocol import messages as m
from ottla.protocol import records

from ..support.ask import fetch_message
from ..support.differential import Pair, own_brokers
from ..support.stories.topics import topic, versions
from ..support.stories.transactions import (
    COMMITTED,
    SETTINGS,
    added,
    described,
    ended,
    initialized,
    listed,
    produced,
    settle,
    watched,
)
from ..support.transcripts import Asks

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)


@pytest.mark.parametrize("version", versions("ListTransactions"))
def test_transactions_are_listed(pair: Pair, version: int) -> None:
    name = f"listed-{version}"
    topic(pair, name)
    open_one, idle = initialized(pair, f"{name}-open"), initialized(pair, f"{name}-idle")
    produced(pair, 12, open_one, name, b"a")

    def mine(side: int) -> list[int]:
        return [open_one.ids[side], idle.ids[side], 10**12]

    for states in (
        [],
        ["Ongoing"],
        ["Empty"],
        ["Ongoing", "Empty", "Dead"],
        ["Nonsense", "ongoing"],
        ["PrepareEpochFence", "CompleteAbort"],
    ):
        listed(pair, version, producer_id_filters=mine, state_filters=states)
    listed(pair, version, producer_id_filters=[10**12])
    if version >= 1:
        for longer_ms in (-1, 0, 10**9):
            listed(pair, version, producer_id_filters=mine, duration_filter=longer_ms)
    if version >= 2:
        for pattern in ("", f"{name}-open", f"{name}-.*", "open", "(", "[a-z]+-2-(open|idle)"):
            listed(pair, version, producer_id_filters=mine, transactional_id_pattern=pattern)
    described(pair, open_one.name, idle.name, open_one.name, "nobody")
    ended(pair, 5, open_one, COMMITTED)
    assert pair.errors("DescribeTransactions") == {"NONE", "TRANSACTIONAL_ID_NOT_FOUND"}


@pytest.mark.parametrize("version", versions("FindCoordinator"))
def test_the_coordinator_of_a_transaction_is_found(pair: Pair, version: int) -> None:
    r = m.FindCoordinatorRequest
    for key in ("tx", ""):
        if version == 0:
            pair.ask("FindCoordinator", 0, r(key=key))
        elif version < 4:
            pair.ask("FindCoordinator", version, r(key=key, key_type=1))
        else:
            pair.ask("FindCoordinator", version, r(coordinator_keys=[key, "other"], key_type=1))
    assert pair.errors("FindCoordinator") == {"NONE"}


# features


@pytest.fixture
def lowered(pair: Pair, request: pytest.FixtureRequest) -> Iterator[int]:
    """The finalized transaction.version at a lower level, and at its old one afterwards."""
    finalize(pair, request.param)
    yield request.param
    finalize(pair, 2)


def finalize(pair: Pair, level: int) -> None:
    u = m.UpdateFeaturesRequest
    kind = 1 if level == 2 else 2
    pair.ask(
        "UpdateFeatures",
        1,
        u(
            feature_updates=[
                u.FeatureUpdateKey(feature="transaction.version", max_version_level=level, upgrade_type=kind)
            ]
        ),
    )
    request = m.ApiVersionsRequest(client_software_name="wire", client_software_version="1.0")
    wanted = level or None  # a level of 0 is not told
    pair.until(
        "ApiVersions",
        4,
        request,
        lambda r: {f.name: f.max_version_level for f in r.finalized_features}.get("transaction.version") == wanted,
    )


@pytest.mark.parametrize("lowered", [1, 0], indirect=True)
def test_transactions_of_an_older_feature_level(pair: Pair, lowered: int) -> None:
    """A producer that fences another raises its epoch at once and not with the end of the transaction; records are of
    an older version.
    """
    name = f"lowered-{lowered}"
    topic(pair, name)
    old = initialized(pair, name)
    added(pair, 3, old, name, 0)
    produced(pair, 11, old, name, b"a")
    initialized(pair, name)
    settle(pair, name)
    described(pair, name)
    new = initialized(pair, name)
    described(pair, name)
    ended(pair, 4, old, COMMITTED)
    added(pair, 3, new, name, 0)
    produced(pair, 11, new, name, b"b")
    ended(pair, 4, new, COMMITTED)
    careless = initialized(pair, f"{name}-careless")
    produced(pair, 12, careless, name, b"c")
    if lowered:  # at level 0 there is no record for it; Kafka refuses it and then never does anything else for this id
        ended(pair, 5, careless, COMMITTED)
    watched(pair, name)
    slow = initialized(pair, f"{name}-slow", timeout_ms=300)
    added(pair, 3, slow, name, 0)
    produced(pair, 11, slow, name, b"d")
    request = m.DescribeTransactionsRequest(transactional_ids=[slow.name])
    pair.until(
        "DescribeTransactions", 0, request, lambda r: r.transaction_states[0].transaction_state == "CompleteAbort"
    )
    settle(pair, slow.name)
    described(pair, slow.name)
    ended(pair, 4, slow, COMMITTED)
    watched(pair, name)
    assert pair.errors("EndTxn") == {"NONE", "PRODUCER_FENCED"}
    assert pair.errors("InitProducerId") == {"CONCURRENT_TRANSACTIONS", "NONE"}


# records


def written(wire: Asks) -> list[tuple[str, Any]]:
    """Every record of the coordinators' log, with producer ids as distances from the first of their transactional id,
    and without times.
    """
    found: list[tuple[str, Any]] = []
    first: dict[str, int] = {}
    for partition in (0, 1):
        answer = (
            wire.ask("Fetch", 11, fetch_message("__transaction_state", 0, partition, max_bytes=1 << 24))
            .responses[0]
            .partitions[0]
        )
        for at in records.batches(answer.records):
            for record in records.decode(answer.records, at):
                decoded = TransactionFormat(lambda: 1).decode(record)
                assert decoded is not None
                name, value = decoded
                if value is not None:
                    base = first.setdefault(name, value.producer_id)
                    value = value._replace(
                        producer_id=value.producer_id - base, start_ms=min(value.start_ms, 0), updated_ms=0
                    )
                    value = value._replace(
                        previous_producer_id=-1 if value.previous_producer_id < 0 else value.previous_producer_id - base
                    )
                found.append((name, (value, len(record.value or b""))))
    return found


def test_the_same_records_are_written(pair: Pair) -> None:
    """After all the stories before: the same steps, in the same bytes but for ids and times, for every transactional
    id.
    """
    mine, other = (by_name(written(wire)) for wire in pair.wires)
    assert mine.keys() == other.keys()
    for name, steps in mine.items():
        assert steps == other[name], name


def by_name(found: list[tuple[str, Any]]) -> dict[str, list[Any]]:
    steps: dict[str, list[Any]] = {}
    for name, step in found:
        steps.setdefault(name, []).append(step)
    return steps
