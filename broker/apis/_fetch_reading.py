"""Reads the partitions of a Fetch, of very many some per step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from ...protocol import messages
from ...protocol.errors import Errors
from ..net.context import Context
from ..replica.fetch_reads import EMPTY, AskingReplica, read_entry, refused_entry
from ..replica.fetch_sessions import Entry, Fetch
from ..replica.partitions import NO_REPLICA
from ..steps import Pace, slices

if TYPE_CHECKING:
    Data = messages.FetchResponse.PartitionData

ORDER = attrgetter("order")
STEP_READS = 128  # partitions that are read in a step: the first read of each opens its files
ABORTED_FREE = 1000  # transactions in a reply beyond which each makes its records shorter: it takes time, not space
ABORTED_BYTES = 16384


class Reading:
    """Reads partitions that may have news: `size` is the bytes of records so far; `hurry` means that something must be
    sent at once. `unread`: partitions that do not exist or may not be read. They come last in the reply, and a fetch
    waits for the others. `session_id`: of the session when the fetch came; it may have ended since.
    """

    __slots__ = (
        "_aborted",
        "_budget",
        "_replica",
        "_request",
        "entries",
        "fetch",
        "found",
        "hurry",
        "incremental",
        "min_bytes",
        "refused",
        "session_id",
        "size",
        "unread",
    )

    def __init__(
        self,
        context: Context,
        request: messages.FetchRequest,
        fetch: Fetch,
        incremental: bool,
        refused: dict[Entry, int],
        session_id: int | None = None,
    ) -> None:
        """`session_id`: if the fetch has waited."""
        self.fetch = fetch
        self.session_id = fetch.id if session_id is None else session_id
        self.incremental = incremental
        self.found: dict[Entry, Data] = {}
        self.unread: dict[Entry, Data] = {}
        self.size, self.hurry = 0, False
        self.refused = refused
        if refused:
            fetch.dirty |= dict.fromkeys(self.refused)
        self.entries = sorted(fetch.dirty, key=ORDER) if incremental else list(fetch.entries.values())
        fetch.dirty.clear()
        self._request = request
        self._aborted = 0  # transactions that the reply lists
        self._budget: int = min(request.max_bytes, context.broker.config["fetch.max.bytes"])
        self._replica = replica_of(request)
        quota_max = None if context.usage is None or self._replica is not None else context.usage.fetch_bytes_max()
        if quota_max is not None:  # a reply that is larger would be throttled, again and again
            self._budget = int(min(self._budget, quota_max))
        self.min_bytes = min(request.min_bytes, self._budget)

    def read(self, entries: Sequence[Entry]) -> None:
        fetch, found, isolation_level, size = self.fetch, self.found, self._request.isolation_level, self.size
        for entry in entries:
            if self.refused and entry in self.refused:
                self.unread[entry] = refused_entry(fetch, entry, self.refused[entry])
                fetch.dirty[entry] = None  # it is read as soon as it may be
                continue
            data = read_entry(fetch, entry, self._left(size), isolation_level, size == 0, self._replica)
            if entry.partition is None and data.error_code != Errors.INCONSISTENT_TOPIC_ID:
                self.unread[entry] = data
                fetch.dirty[entry] = None
                continue
            length = len(data.records)
            size += length
            self._aborted += len(data.aborted_transactions or ())
            if data.error_code:
                self.hurry = True
            is_sent_away = data.preferred_read_replica != NO_REPLICA
            if data.diverging_epoch.epoch >= 0 or is_sent_away:
                self.hurry = True
            more = data.error_code or length or data.high_watermark > entry.offset or entry.lags or is_sent_away
            if more or self._replica is not None:  # no one sends an event for what is above the high watermark
                fetch.dirty[entry] = None  # the partition may have more news at the next fetch
            found[entry] = data
        self.size = size

    def _left(self, size: int) -> int:
        """Returns how many bytes may be read: fewer than 0 for the first partition only, where the request says so. For
        a partition that only its own limit leaves without records (not Kafka's, which is 0 then), it is 1, so that no
        batch fits.
        """
        left = self._budget - size
        if self.found:
            left = max(0, left)
        beyond = self._aborted - ABORTED_FREE
        return left if left <= 0 or beyond <= 0 else max(1, left - ABORTED_BYTES * beyond)

    def results(self) -> dict[Entry, Data]:
        """Returns all partitions in the order of the reply; of those that were not read, unknown ids come first."""
        if not self.unread:
            return self.found
        unread = sorted(self.unread.items(), key=lambda one: one[1].error_code != Errors.UNKNOWN_TOPIC_ID)
        return {**self.found, **dict(unread)}

    def is_enough(self) -> bool:
        """Whether the reply is sent without a wait for more records."""
        return bool(
            self.hurry
            or self._request.max_wait_ms <= 0
            or len(self.fetch.entries) == len(self.unread)
            or self.size >= self.min_bytes
        )

    def is_outdated(self, advanced: Iterable[Entry]) -> bool:
        """Whether a partition has advanced since it was read; nothing would wake a waiting fetch for that. `advanced`:
        the entries whose partitions have changed since the first one was read.
        """
        return any(
            entry.partition is not None
            and not entry.lags
            and (entry.partition.high_watermark, entry.partition.last_stable_offset)
            != (data.high_watermark, data.last_stable_offset)
            for entry in advanced
            if (data := self.found.get(entry)) is not None
        )

    def release(self) -> None:
        for data in self.found.values():
            if data.records is not EMPTY:
                data.records.release()


async def read_in_steps(context: Context, reading: Reading) -> None:
    pace = Pace(reading.fetch.turn, STEP_READS)
    try:
        for step in slices(reading.entries, STEP_READS):
            reading.read(step)
            if pace.is_over(len(step)):
                await context.paused(pace.rest())
    except BaseException:  # the connection is closed: nothing will send the records
        reading.release()
        raise


def replica_of(request: messages.FetchRequest) -> AskingReplica | None:
    state = request.replica_state
    node = max(request.replica_id, state.replica_id)
    return AskingReplica(node, state.replica_epoch) if node >= 0 else None
