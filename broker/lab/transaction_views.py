"""The state of transactions for the lab and `ottla transactions`: open transactions, and those that hold back a last
stable offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from ...coordinator.transaction.state import AT_REST, NAMES, State, Transaction
from ...protocol.errors import ApiError

if TYPE_CHECKING:
    from ..broker import Broker
    from ..replica.partition import Partition


class PlaceView(TypedDict):
    """A partition of a transaction. `first_offset`: of the transaction there; None if it has no records there yet."""

    topic: str
    partition: int
    first_offset: int | None


class TransactionView(TypedDict):
    """A transactional id. `open_ms` and `aborts_in_ms` belong to an open transaction; `partitions` are those whose
    markers are not written yet.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    open_ms: int | None
    aborts_in_ms: int | None
    client_version: int
    partitions: list[PlaceView]
    given_up: str | None


class HeldBackView(TypedDict):
    """A partition whose last stable offset is held back, and by which transaction. `transactional_id` is None if no
    coordinator knows the transaction.
    """

    topic: str
    partition: int
    last_stable_offset: int
    high_watermark: int
    records_behind: int
    producer_id: int | None
    transactional_id: str | None
    idle_ms: int | None
    why: str


class TransactionsView(TypedDict):
    """Transactional ids, and the partitions whose last stable offset is below the high watermark."""

    transactions: Iterable[TransactionView]
    held_back: Iterable[HeldBackView]


class Holders(NamedTuple):
    """Transactions by transactional id, and the ids of each producer id."""

    transactions: Mapping[str, Transaction]
    by_producer: Mapping[int, list[str]]


def transactions(broker: Broker, everything: bool = False) -> TransactionsView:
    """Returns transactional ids with an open transaction, or all of them; and the partitions whose last stable offset
    is below the high watermark. Each is described when its turn comes.
    """
    now, loaded = broker.schedule.now_ms(), known(broker)
    shown = [name for name, one in loaded.items() if everything or one.state not in AT_REST]
    held = [place for place, partition in broker.partitions.by_name.items() if _is_held_back(partition)]
    by_producer: dict[int, list[str]] = {}
    for name, one in loaded.items() if held else ():
        by_producer.setdefault(one.producer_id, []).append(name)
    holders = Holders(loaded, by_producer)
    return {
        "transactions": (describe(broker, name, loaded[name], now) for name in sorted(shown)),
        "held_back": (
            _held_back(holders, partition, now)
            for partition in map(broker.partitions.by_name.get, sorted(held))
            if partition is not None and _is_held_back(partition)
        ),
    }


def known(broker: Broker) -> dict[str, Transaction]:
    """Returns every loaded transactional id with its committed state."""
    found: dict[str, Transaction] = {}
    for host in broker.transactions.hosts.values():
        try:
            found.update(host.read(lambda shard, as_of: shard.transactions.items(as_of)))
        except ApiError:
            continue  # the shard is not loaded
    return found


def describe(broker: Broker, transactional_id: str, one: Transaction, now_ms: int) -> TransactionView:
    is_open = one.state is State.ONGOING
    partitions = sorted(broker.transactions.remaining(transactional_id, one))
    completion = broker.transactions.completions.get(transactional_id)
    return {
        "transactional_id": transactional_id,
        "producer_id": one.producer_id,
        "producer_epoch": one.epoch,
        "state": NAMES[one.state],
        "open_ms": now_ms - one.start_ms if one.state not in AT_REST else None,
        "aborts_in_ms": max(0, one.start_ms + one.timeout_ms - now_ms) if is_open and one.has_timeout else None,
        "client_version": one.client_version,
        "partitions": [_place(broker, one, topic, index) for topic, index in partitions],
        "given_up": str(completion.given_up) if completion is not None and completion.given_up is not None else None,
    }


def _place(broker: Broker, one: Transaction, topic: str, index: int) -> PlaceView:
    partition = broker.partitions.by_name.get((topic, index))
    log = partition.log if partition is not None else None
    first = log.producers.open_transactions.get(one.producer_id) if log is not None else None
    return {"topic": topic, "partition": index, "first_offset": first}


def _is_held_back(partition: Partition) -> bool:
    return partition.log is not None and partition.last_stable_offset < partition.high_watermark


def _held_back(holders: Holders, partition: Partition, now_ms: int) -> HeldBackView:
    log = partition.open_log()
    stable = partition.last_stable_offset
    out: HeldBackView = {
        "topic": partition.topic,
        "partition": partition.index,
        "last_stable_offset": stable,
        "high_watermark": partition.high_watermark,
        "records_behind": partition.high_watermark - stable,
        "producer_id": None,
        "transactional_id": None,
        "idle_ms": None,
        "why": "its end marker is above the high watermark",
    }
    holder = next(iter(log.producers.open_transactions.items()), None)
    if holder is not None and max(holder[1], log.start_offset) <= stable:
        producer_id = holder[0]
        place = partition.topic, partition.index
        known_ids = holders.by_producer.get(producer_id, ())
        names = [name for name in known_ids if place in holders.transactions[name].partitions]
        out["producer_id"] = producer_id
        out["transactional_id"] = names[0] if names else None
        out["idle_ms"] = now_ms - log.producers.by_id[producer_id].last_timestamp
        out["why"] = "it is open" if names else "hanging: no transaction coordinator knows this transaction"
    return out
