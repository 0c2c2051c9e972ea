"""What transactions look like inside, for the lab and `ottla transactions`: who is open, since when, where, and what holds a last stable offset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..coordinator.transaction.state import AT_REST, NAMES, State, Transaction
from ..protocol.errors import ApiError

if TYPE_CHECKING:
    from .broker import Broker
    from .partition import Partition


def transactions(broker: Broker, everything: bool = False) -> dict[str, Any]:
    """Transactional ids with something under way, or all of them; and the partitions whose committed records end before the high watermark."""
    now, loaded = broker.schedule.now_ms(), known(broker)
    found = [describe(broker, name, one, now) for name, one in sorted(loaded.items()) if everything or one.state not in AT_REST]
    return {
        "transactions": found,
        "held_back": [_held_back(loaded, p, now) for _, p in sorted(broker.partitions.by_name.items()) if _is_held_back(p)],
    }


def known(broker: Broker) -> dict[str, Transaction]:
    """Every transactional id that is loaded, as it is committed."""
    found: dict[str, Transaction] = {}
    for host in broker.transactions.hosts.values():
        try:
            found.update(host.read(lambda shard, as_of: shard.transactions.items(as_of)))
        except ApiError:
            continue  # it is not loaded
    return found


def describe(broker: Broker, transactional_id: str, one: Transaction, now_ms: int) -> dict[str, Any]:
    """One transactional id. `open_ms` and `aborts_in_ms` are those of a transaction that goes on; `markers` what is still to be written."""
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


def _place(broker: Broker, one: Transaction, topic: str, index: int) -> dict[str, Any]:
    """A partition of a transaction, and its first record there, None where it has none yet."""
    partition = broker.partitions.by_name.get((topic, index))
    log = partition.log if partition is not None else None
    first = log.producers.open_transactions.get(one.producer_id) if log is not None else None
    return {"topic": topic, "partition": index, "first_offset": first}


def _is_held_back(partition: Partition) -> bool:
    return partition.log is not None and partition.last_stable_offset < partition.high_watermark


def _held_back(loaded: dict[str, Transaction], partition: Partition, now_ms: int) -> dict[str, Any]:
    """A partition whose readers of committed records wait, and for whom. `transactional_id` is None for a transaction that no coordinator knows."""
    log = partition.open_log()
    stable = partition.last_stable_offset
    out: dict[str, Any] = {
        "topic": partition.topic,
        "partition": partition.index,
        "last_stable_offset": stable,
        "high_watermark": partition.high_watermark,
        "records_behind": partition.high_watermark - stable,
        "producer_id": None,
        "transactional_id": None,
        "idle_ms": None,
        "why": "its end is above the high watermark",
    }
    holder = next(iter(log.producers.open_transactions.items()), None)
    if holder is not None and max(holder[1], log.start_offset) <= stable:
        producer_id = holder[0]
        place = partition.topic, partition.index
        names = [name for name, one in loaded.items() if one.producer_id == producer_id and place in one.partitions]
        out["producer_id"] = producer_id
        out["transactional_id"] = names[0] if names else None
        out["idle_ms"] = now_ms - log.producers.by_id[producer_id].last_timestamp
        out["why"] = "it is open" if names else "it hangs: no coordinator knows of it"
    return out
