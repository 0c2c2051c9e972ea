"""The transaction coordinators: the shards of `__transaction_state`, and the markers that carry out their decisions.

The end of a transaction is decided by a record. When the record is committed, the client gets its reply, and markers
are written to every partition of the transaction (`Completion`). The transaction is complete when the high watermark of
each partition has passed its marker. A loaded shard continues with the ends that were decided before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ...coordinator.shard import RecordFormat, Result
from ...coordinator.timeline import Timeline
from ...coordinator.timers import Timers
from ...protocol.config_def import numbers_of
from ...protocol.errors import ApiError, Errors
from ...protocol.records import NO_SEQUENCE
from ..controller.producer_ids import ProducerIds
from ..group.coordinators import GroupCoordinators
from ..later import Later
from ..limits import TRANSACTIONAL_IDS
from ..metrics import Summary
from ..shards.host import ShardHost
from ..shards.hosts import Services, ShardHosts
from .completion import Completion
from .markers import MarkerWriter

if TYPE_CHECKING:
    from ...coordinator.transaction.shard import TransactionShard
    from ...coordinator.transaction.state import TopicPartition, Transaction

R = TypeVar("R")
T = TypeVar("T")
TOPIC_NAME = "__transaction_state"
LEVELS_SINCE = (4, 0)  # the release that has `transaction.version` (KIP-890)
STEP_ENDS = 16  # of transactions that are carried out before other events are handled
TransactionHost = ShardHost["TransactionShard"]


class TransactionCoordinators(ShardHosts["TransactionShard"]):
    """All shards of transactional ids on this broker,
    and their environment (`coordinator.transaction.shard.Environment`).
    """

    topic_name = TOPIC_NAME
    timeout_key = "request.timeout.ms"  # a transaction's own timeout takes precedence
    codec_key = None
    base_sequence = NO_SEQUENCE
    required_acks = -1
    partitions_key = "transaction.state.log.num.partitions"
    replication_key = "transaction.state.log.replication.factor"

    def __init__(self, services: Services, producer_ids: ProducerIds, groups: GroupCoordinators) -> None:
        super().__init__(services)
        self.producer_ids = producer_ids
        self.markers = MarkerWriter(services.turn, services.appender, groups)
        self.completions: dict[str, Completion] = {}  # by transactional id
        self.completion_retries = 0
        self.verification_ms = Summary()
        self.verification_failures = 0
        release = self.settings.config.emulates
        self._has_levels = release is None or numbers_of(release) >= LEVELS_SINCE
        self._decided: dict[TransactionHost, None] = {}
        self._awaited: dict[str, dict[Later[None], None]] = {}  # what waits for a step, by transactional id

    # the shards

    def make_shard(self, host: TransactionHost, timeline: Timeline, timers: Timers) -> TransactionShard:
        from ...coordinator.transaction.shard import TransactionShard

        shard = TransactionShard(timeline, timers, self)
        shard.write = host.write_later
        return shard

    def format(self) -> RecordFormat:
        from ...coordinator.transaction.format import TransactionFormat

        return TransactionFormat(lambda: min(1, self.transaction_version()))

    def topic_configs(self) -> dict[str, str]:
        config = self.settings.config
        return {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "unclean.leader.election.enable": "false",
            "segment.bytes": str(config["transaction.state.log.segment.bytes"]),
            "min.insync.replicas": str(config["transaction.state.log.min.isr"]),
        }

    @property
    def ids(self) -> int:
        """How many transactional ids there are. One that is written, and was not committed in time, is in both maps."""
        shards = [host.shard for host in self.hosts.values()]
        unwritten = (one not in shard.transactions for shard in shards for one in shard.unwritten)
        return sum(len(shard.transactions) for shard in shards) + sum(unwritten)

    def has_room(self) -> bool:
        """Whether there may be one more transactional id; counts exactly only where that matters."""
        most: int = self.config("ottla.transactional.ids.max")
        shards = (host.shard for host in self.hosts.values())
        return sum(len(one.transactions) + len(one.unwritten) for one in shards) < most or self.ids < most

    def check_room(self, shard: TransactionShard, transactional_id: str) -> None:
        """Raises ApiError(POLICY_VIOLATION): for a new transactional id, if there are too many."""
        known = transactional_id in shard.transactions or transactional_id in shard.unwritten
        if not known and not self.has_room():
            self.limits.reached(TRANSACTIONAL_IDS, f"transactional id {transactional_id}")
            raise ApiError(Errors.POLICY_VIOLATION)

    # the environment of the shards

    def config(self, name: str) -> Any:
        return self.settings.value(name)

    def new_producer_id(self) -> int:
        return self.producer_ids.take()

    def transaction_version(self) -> int:
        """Returns the finalized level; an emulated release from before this feature writes records as of level 0."""
        return int(self.metadata_image.features.get("transaction.version", 0)) if self._has_levels else 0

    def stepped(self, transactional_id: str) -> None:
        waiting = self._awaited.pop(transactional_id, None)
        if waiting is None:
            return

        def go_on() -> None:
            for one in waiting:
                one.finish(None)

        self.turn.soon(go_on)  # as an event of its own: it writes to the shard

    def next_step(self, transactional_id: str, ms: float) -> Later[None]:
        """Completes when the step of a transactional id that is in progress has ended, or after `ms` milliseconds."""
        later: Later[None] = Later()
        timer = self.turn.later(ms, lambda: later.finish(None))
        self._awaited.setdefault(transactional_id, {})[later] = None

        def over(_: Later[None] | None = None) -> None:
            timer.cancel()
            waiting = self._awaited.get(transactional_id, {})
            waiting.pop(later, None)
            if not waiting:
                self._awaited.pop(transactional_id, None)

        later.when_done(over)
        later.on_cancel = over
        return later

    # ends of transactions

    def advanced(self, host: TransactionHost) -> None:
        """Carries out committed ends, after the replies are sent."""
        if host.shard.has_committed_ends(host.runtime.committed_offset) and host not in self._decided:
            self._decided[host] = None
            self.turn.soon(lambda: self._carry_out(host))

    def _carry_out(self, host: TransactionHost) -> None:
        """Begins to write the markers of some ends, and of the others when other events had their turn."""
        if self.hosts.get(host.partition.index) is host:
            for transactional_id, offset, decided in host.shard.committed_ends(
                host.runtime.committed_offset, STEP_ENDS
            ):
                made = self.completions[transactional_id] = Completion(self, host, transactional_id, offset, decided)
                made.write_markers()
            if host.shard.has_committed_ends(host.runtime.committed_offset):
                return self.turn.soon(lambda: self._carry_out(host))
        self._decided.pop(host, None)

    def remaining(self, transactional_id: str, decided: Transaction) -> frozenset[TopicPartition]:
        """Returns the partitions of a transaction whose markers are not written yet."""
        completion = self.completions.get(transactional_id)
        return decided.partitions if completion is None else decided.partitions & completion.remaining

    # requests

    def write(
        self,
        transactional_id: str,
        name: str,
        handler: Callable[[TransactionShard], Result[R]],
        timeout_ms: int | None = None,
    ) -> Later[R]:
        """Runs a handler as a write of the shard; its reply waits for at most the transaction timeout, or `timeout_ms`.
        Fails with ApiError.
        """
        host = self.host(transactional_id)
        if timeout_ms is None:
            found = host.shard.transactions.get(transactional_id)
            timeout_ms = None if found is None else found.timeout_ms
        return self.write_at(host.partition.index, name, handler, timeout_ms)

    def read(self, transactional_id: str, handler: Callable[[TransactionShard, int], T]) -> T:
        """Runs a handler on the committed state. Raises ApiError."""
        return self.host(transactional_id).read(handler)
