"""The transaction coordinators: the shards of `__transaction_state`, and the markers that carry out what they decide.

The end of a transaction is decided with a record; once that is committed the client has its reply, and markers are written to every
partition of the transaction (`Completion`). The transaction is complete when the high watermark of each has passed its marker. A shard that
is loaded goes on with the ends that it finds decided.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..coordinator.shard import RecordFormat, Result
from ..coordinator.timeline import Timeline
from ..coordinator.timers import Timers
from ..protocol.errors import ApiError, Errors
from .hosting import Coordinators, Host
from .later import Later
from .markers import TransactionEnd, write_marker
from .metrics import Summary

if TYPE_CHECKING:
    from ..coordinator.transaction.shard import TransactionShard
    from ..coordinator.transaction.state import TopicPartition, Transaction
    from .broker import Broker

logger = logging.getLogger("ottla")
TOPIC_NAME = "__transaction_state"
RETRY_MS = 100
# Kafka tries these again; anything else ends the attempt until the coordinator is loaded again
RETRIABLE = frozenset(
    (
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Errors.REQUEST_TIMED_OUT,
        Errors.KAFKA_STORAGE_ERROR,
    )
)
TransactionHost = Host["TransactionShard"]


class Completion:
    """The markers of one transaction that are still to be written."""

    def __init__(self, owner: TransactionCoordinators, host: TransactionHost, transactional_id: str, offset: int, decided: Transaction) -> None:
        self.owner = owner
        self.host = host
        self.transactional_id = transactional_id
        self.offset = offset
        self.remaining: set[TopicPartition] = set(decided.partitions)
        self.end = TransactionEnd(decided.producer_id, decided.epoch, host.runtime.epoch, committed=decided.commits, version=decided.client_version)
        self.given_up: ApiError | None = None
        self._open = 0  # markers on their way

    @property
    def is_current(self) -> bool:
        """Whether the shard that decided this is in charge still."""
        return self.owner.hosts.get(self.host.partition.index) is self.host and self.given_up is None

    def write_markers(self) -> None:
        """Writes the markers that are missing, in the order of their partitions."""
        if not self.is_current:
            return
        if not self.remaining:
            return self._complete()
        broker = self.owner.broker
        partitions, batch = broker.partitions.by_name, self.end.batch(broker.schedule.now_ms())
        waiting = []
        for key in sorted(self.remaining):
            partition = partitions.get(key)
            if partition is None:  # it was deleted: there is nothing to end
                self.remaining.discard(key)
            else:
                waiting.append((key, write_marker(broker, partition, batch)))
        self._open = len(waiting)
        if not waiting:
            return self._complete()
        for key, later in waiting:
            later.when_done(lambda done, key=key: self._written(key, done.error))  # type: ignore[misc]

    def _written(self, key: TopicPartition, error: BaseException | None) -> None:
        self._open -= 1
        if error is None:
            self.remaining.discard(key)
        elif not isinstance(error, ApiError) or error.code not in RETRIABLE:
            self.given_up = error if isinstance(error, ApiError) else ApiError(Errors.UNKNOWN_SERVER_ERROR)
            logger.warning("the marker of %s in %s-%d cannot be written: %s", self.transactional_id, *key, error)
        if self._open == 0:
            if self.remaining:
                self.owner.later(RETRY_MS, self.write_markers)
            else:
                self._complete()

    def _complete(self) -> None:
        if not self.is_current:
            return
        transactional_id, offset, owner, host = self.transactional_id, self.offset, self.owner, self.host

        def done(_: Any, error: ApiError | None) -> None:
            if error is None or error.code == Errors.NOT_COORDINATOR:
                if owner.completions.get(transactional_id) is self:
                    del owner.completions[transactional_id]
            elif self.is_current:  # its record could not be appended
                owner.completion_retries += 1
                owner.later(RETRY_MS, self._complete)

        now = owner.monotonic_ms()
        host.runtime.write(lambda: host.shard.complete(transactional_id, offset), done, now)
        owner.broker.wrote(host)


class TransactionCoordinators(Coordinators["TransactionShard"]):
    """All shards of transactional ids on this broker, and the world as they see it (`coordinator.transaction.shard.Environment`)."""

    topic_name = TOPIC_NAME
    timeout_key = "request.timeout.ms"  # a transaction's own time-out counts where there is one
    codec_key = None
    partitions_key = "transaction.state.log.num.partitions"
    replication_key = "transaction.state.log.replication.factor"

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.completions: dict[str, Completion] = {}  # by transactional id
        self.completion_retries = 0
        self.verification_ms = Summary()
        self.verification_failures = 0
        self._decided: dict[TransactionHost, None] = {}

    # the shards

    def make_shard(self, host: TransactionHost, timeline: Timeline, timers: Timers) -> TransactionShard:
        from ..coordinator.transaction.shard import TransactionShard

        shard = TransactionShard(timeline, timers, self)
        shard.write = host.write_later
        return shard

    def format(self) -> RecordFormat:
        from ..coordinator.transaction.format import TransactionFormat

        return TransactionFormat(lambda: min(1, self.transaction_version()))

    def topic_configs(self) -> dict[str, str]:
        config = self.broker.config
        return {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "unclean.leader.election.enable": "false",
            "segment.bytes": str(config["transaction.state.log.segment.bytes"]),
            "min.insync.replicas": str(config["transaction.state.log.min.isr"]),
        }

    # the environment of the shards

    def config(self, name: str) -> Any:
        return self.broker.value(name)

    def new_producer_id(self) -> int:
        return self.broker.producer_ids.take()

    def transaction_version(self) -> int:
        return int(self.broker.image.features.get("transaction.version", 0))

    # ends of transactions

    def advanced(self, host: TransactionHost) -> None:
        """Ends that have been committed are carried out once the replies are on their way."""
        prepared = host.shard.newly_prepared
        if prepared and prepared[0][0] < host.runtime.committed_offset and host not in self._decided:
            self._decided[host] = None
            self.broker.schedule.soon(lambda: self.broker.event(lambda: self._carry_out(host)))

    def _carry_out(self, host: TransactionHost) -> None:
        self._decided.pop(host, None)
        if self.hosts.get(host.partition.index) is not host:
            return
        for transactional_id, offset, decided in host.shard.committed_ends(host.runtime.committed_offset):
            completion = self.completions[transactional_id] = Completion(self, host, transactional_id, offset, decided)
            completion.write_markers()

    def later(self, ms: int, call: Callable[[], None]) -> None:
        self.broker.schedule.later(ms, lambda: self.broker.event(call))

    def remaining(self, transactional_id: str, decided: Transaction) -> frozenset[TopicPartition]:
        """The partitions of a transaction, without those whose markers are written."""
        completion = self.completions.get(transactional_id)
        return decided.partitions if completion is None else decided.partitions & completion.remaining

    # requests

    def write(self, transactional_id: str, handler: Callable[[TransactionShard], Result], timeout_ms: int | None = None) -> Later[Any]:
        """Runs a handler as a write of the shard; its reply waits as long as the transaction may be open, or `timeout_ms`. ApiError."""
        host = self.host(transactional_id)
        if timeout_ms is None:
            found = host.shard.transactions.get(transactional_id)
            timeout_ms = None if found is None else found.timeout_ms
        return self.write_at(host.partition.index, handler, timeout_ms)

    def read(self, transactional_id: str, handler: Callable[[TransactionShard, int], Any]) -> Any:
        """Runs a handler on what is committed. ApiError."""
        return self.host(transactional_id).read(handler)
