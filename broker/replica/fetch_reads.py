"""Reads the partitions of a Fetch, on their leaders and, for clients, on followers (KIP-392)."""

from __future__ import annotations

from typing import NamedTuple

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...storage.aborted import some_aborted
from ...storage.epochs import UNDEFINED_EPOCH
from ...storage.file_slice import FileSlice
from ...storage.log import Log
from .fetch_sessions import Entry, Fetch
from .followers import Reach
from .partition import LOG_END, READ_COMMITTED, Partition
from .partitions import NO_REPLICA

EMPTY = b""
ABORTED_MAX = 1000  # transactions that end in the records of one partition in a reply
UNKNOWN_EPOCH = -1


class AskingReplica(NamedTuple):
    """The broker that asks as a follower. `broker_epoch`: of its registration, or UNKNOWN_EPOCH (KIP-903)."""

    node: int
    broker_epoch: int


def read_entry(
    fetch: Fetch, entry: Entry, budget: int, isolation_level: int, at_least_one: bool, replica: AskingReplica | None
) -> messages.FetchResponse.PartitionData:
    """Returns the response for one entry: its records, or its error. `replica`: None for a consumer."""
    data = messages.FetchResponse.PartitionData(partition_index=entry.index, records=EMPTY)
    try:
        _read(fetch, entry, data, budget, isolation_level, at_least_one, replica)
    except ApiError as error:
        _without_records(data)
        _tell(fetch, entry, data, error.code)
    except OSError as error:
        _without_records(data)
        assert entry.partition is not None  # the entry has been read
        _tell(fetch, entry, data, fetch.partitions.storage_error(entry.partition, error).code)
    return data


def _without_records(data: messages.FetchResponse.PartitionData) -> None:
    """Takes the records out: what belongs to them cannot be read."""
    if data.records is not EMPTY:
        data.records.release()
        data.records, data.aborted_transactions = EMPTY, None


def refused_entry(fetch: Fetch, entry: Entry, code: int) -> messages.FetchResponse.PartitionData:
    """Returns the response for an entry that is not read because of an error."""
    data = messages.FetchResponse.PartitionData(partition_index=entry.index, records=EMPTY)
    _tell(fetch, entry, data, code)
    return data


def _tell(fetch: Fetch, entry: Entry, data: messages.FetchResponse.PartitionData, code: int) -> None:
    if code == Errors.KAFKA_STORAGE_ERROR and not fetch.tells_storage_errors:
        code = int(Errors.NOT_LEADER_OR_FOLLOWER)
    data.error_code = code
    if code == Errors.INCONSISTENT_TOPIC_ID:  # Kafka finds this where it reads, and not before
        data.aborted_transactions = None
    data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
    partition = entry.partition
    if (
        code in (Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH)
        and partition is not None
        and fetch.tells_leaders
    ):
        leader = fetch.partitions.known_leader(partition)
        data.current_leader.leader_id, data.current_leader.leader_epoch = leader


def _read(
    fetch: Fetch,
    entry: Entry,
    data: messages.FetchResponse.PartitionData,
    budget: int,
    isolation_level: int,
    at_least_one: bool,
    replica: AskingReplica | None,
) -> None:
    partition = fetch.resolve(entry)
    data.aborted_transactions = None
    reach = fetch.partitions.check_read(partition, entry.current_leader_epoch, fetch.may_follow and replica is None)
    if replica is not None:
        _check_replica(fetch, entry, partition, replica)
    log = partition.open_log()
    data.high_watermark, data.last_stable_offset = partition.high_watermark, partition.last_stable_offset
    data.log_start_offset = log.start_offset
    entry.lags = False
    if reach is not None:
        entry.lags = fetch.partitions.is_cut or reach.high_watermark < partition.high_watermark
        data.high_watermark = reach.high_watermark
        data.last_stable_offset = min(data.last_stable_offset, reach.high_watermark)
    elif fetch.rack_id:
        data.preferred_read_replica = fetch.partitions.closest_replica(partition, fetch.rack_id, entry.offset)
        if data.preferred_read_replica != NO_REPLICA:
            return
    latest = fetch.partitions.known_leader(partition)[1] if fetch.partitions.is_cut else None
    if entry.last_fetched_epoch >= 0 and _diverges(log, entry, data, reach, latest):
        return
    level = isolation_level if replica is None else LOG_END
    max_bytes = min(entry.max_bytes, budget)
    piece = partition.read(entry.offset, max_bytes, level, at_least_one, reach)
    if piece is not None:
        data.records = piece
    if replica is not None:
        return _check_broker_epoch(fetch, replica)
    if isolation_level == READ_COMMITTED:
        if piece is not None:
            data.aborted_transactions = _aborted(log, entry.offset, piece)
        elif max_bytes <= 0 or entry.offset >= data.last_stable_offset:  # null where no batch fits, as in Kafka
            data.aborted_transactions = []


def _check_replica(fetch: Fetch, entry: Entry, partition: Partition, replica: AskingReplica) -> None:
    """Raises ApiError if the broker that asks is no follower of the partition: UNKNOWN_LEADER_EPOCH if it knows the
    epoch, as one that will be a replica does.
    """
    leader, epoch = fetch.partitions.known_leader(partition)
    if replica.node == leader or replica.node not in partition.replicas:
        knows = entry.current_leader_epoch == epoch
        raise ApiError(Errors.UNKNOWN_LEADER_EPOCH if knows else Errors.NOT_LEADER_OR_FOLLOWER)


def _check_broker_epoch(fetch: Fetch, replica: AskingReplica) -> None:
    """Raises ApiError(NOT_LEADER_OR_FOLLOWER) if the broker has registered again since (KIP-903)."""
    known = fetch.partitions.image.brokers.get(replica.node)
    if known is not None and not known.fenced and UNKNOWN_EPOCH != replica.broker_epoch < known.epoch:
        raise ApiError(Errors.NOT_LEADER_OR_FOLLOWER)


def _aborted(log: Log, offset: int, piece: FileSlice) -> list[messages.FetchResponse.AbortedTransaction]:
    """Returns the aborted transactions of a piece of the log, which ends earlier if they are many."""
    upper = log.offset_after(piece)
    found, bound = some_aborted(log, offset, upper, ABORTED_MAX)
    if bound < upper:
        segment, position = log.position_of(bound)
        if segment is piece.segment:
            piece.end_at(position)
    r = messages.FetchResponse.AbortedTransaction
    return [r(producer_id=t.producer_id, first_offset=t.first_offset) for t in found]


def _diverges(
    log: Log, entry: Entry, data: messages.FetchResponse.PartitionData, reach: Reach | None, latest: int | None
) -> bool:
    """Whether the client's log diverges from ours (KIP-595). `latest`: the last epoch that a node which is cut off
    knows. Raises ApiError if our log does not know the epoch.
    """
    own_end = log.end_offset if reach is None else reach.end
    epoch, end = log.epochs.end_offset_for(entry.last_fetched_epoch, own_end, latest)
    if epoch == UNDEFINED_EPOCH:
        raise ApiError(Errors.OFFSET_OUT_OF_RANGE)
    if epoch < entry.last_fetched_epoch or end < entry.offset:
        data.diverging_epoch.epoch = epoch
        data.diverging_epoch.end_offset = end
        return True
    return False
