"""Actions on the broker itself: appends that fail, slow syncs, coordinators that take long to load.

Of a rule's match they take the node that leads, topic and partition, and how many are chosen; a coordinator also group
or transactional id.
Each uses a door that the broker has (`Appender.append_to_log`, `Flusher.run`, `ShardHosts.begin`), and only while there
is such a rule.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final, Literal, Protocol, TypeVar

from ....coordinator.shard import Shard
from ....protocol.buffers import WritableData
from ....protocol.control import Marker
from ....protocol.records import BatchAt
from ....storage.batch_info import Appended
from ....storage.flush import FlushJob
from ....storage.layout import LOG
from ...broker import Broker
from ...replica.flusher import Done
from ...replica.partition import Partition
from ...shards.host import ShardHost
from ...shards.hosts import ShardHosts
from ..shapes import Invalid
from .action import Action
from .matching import Match
from .request_actions import Lasting

TOPICS: Final = {
    "group": "__consumer_offsets",
    "transaction": "__transaction_state",
    "share": "__share_group_state",
}


KEYS: Final = {"group": "group", "transaction": "transactional_id"}  # by which a coordinator is chosen

A = TypeVar("A", bound=Action)


class InnerAction(Action):
    """Something that happens within the broker."""


@dataclass(frozen=True)
class AppendFails(InnerAction):
    """Records cannot be appended to the log of a partition: KAFKA_STORAGE_ERROR. With `offline`, the disk has failed,
    which takes its log directory offline, as in Kafka; the last directory takes the broker down.
    """

    kind: Literal["append-fails"] = "append-fails"
    offline: bool = False

    @property
    def text(self) -> str:
        return "let appends fail"


@dataclass(frozen=True)
class SlowSync(Lasting, InnerAction):
    """Syncing a log to disk takes longer. Replies wait for it only where `flush.messages` says so."""

    kind: Literal["slow-sync"] = "slow-sync"

    @property
    def text(self) -> str:
        return "sync slowly"


@dataclass(frozen=True)
class Loading(Lasting, InnerAction):
    """Coordinators are loading for a time: those that there are load again when the rule is added, and others when they
    come. Requests get COORDINATOR_LOAD_IN_PROGRESS.
    """

    kind: Literal["loading"] = "loading"
    coordinator: Literal["group", "transaction", "share"] = "group"

    @property
    def text(self) -> str:
        return f"load {self.coordinator} coordinators for {self.ms} ms"


def check_inner(match: Match, action: InnerAction) -> None:
    """Refuses what an action within the broker does not look at. Raises Invalid."""
    for name in ("api", "versions", "client_id", "principal", "listener", "member"):
        if getattr(match, name) is not None:
            raise Invalid(name, f"{action.kind} happens within the broker, whatever the requests are")
    key = KEYS.get(action.coordinator) if isinstance(action, Loading) else None
    without = ("group", "transactional_id", "topic") if isinstance(action, Loading) else ("group", "transactional_id")
    for name in without:
        if getattr(match, name) is not None and name != key:
            raise Invalid(name, f"is nothing by which {action.kind} chooses{_whose(action)}")


def _whose(action: InnerAction) -> str:
    return f" {action.coordinator} coordinators" if isinstance(action, Loading) else ""


class InnerHits(Protocol):
    """Counts something that rules of a kind may disturb; returns the action of the first rule that is applied to it."""

    def __call__(self, kind: type[A], partition: Partition, what: str) -> tuple[A, Random] | None: ...


class Doors:
    """The doors of a broker that rules use. Each is open only while there is a rule for it."""

    def __init__(self, broker: Broker, hits: InnerHits) -> None:
        self._broker = broker
        self._hits = hits
        self._loads: dict[int, _Load] = {}
        self._waiting: dict[ShardHost[Shard], None] = {}  # coordinators that have not begun to load

    def open_for(self, kinds: Collection[type[Action]]) -> None:
        """Opens the doors that rules of these kinds use, and shuts the others."""
        flusher = self._broker.replicas.flusher
        self._broker.appender.append_to_log = self._append if AppendFails in kinds else Partition.append
        flusher.run = self._sync if SlowSync in kinds else flusher.run_in_thread

    # logs

    def _append(
        self,
        partition: Partition,
        data: WritableData,
        batches: list[BatchAt],
        now_ms: int,
        marker: Marker | None = None,
    ) -> Appended:
        found = self._hits(AppendFails, partition, f"an append to {partition.name}")
        if found is not None:
            number = errno.EIO if found[0].offline else errno.EAGAIN
            path = partition.open_log().active.path(LOG)
            raise OSError(number, f"{os.strerror(number)} (a fault of the lab)", path)
        return partition.append(data, batches, now_ms, marker)

    def _sync(self, partition: Partition, job: FlushJob, done: Done) -> None:
        flusher = self._broker.replicas.flusher
        found = self._hits(SlowSync, partition, f"a sync of {partition.name}")
        if found is None:
            return flusher.run_in_thread(partition, job, done)
        action, chance = found
        self._broker.turn.later(action.chosen_ms(chance), partial(flusher.run_in_thread, partition, job, done))

    # coordinators

    def load(self, number: int, action: Loading, match: Match, ms: float) -> int:
        """Has the coordinators that a rule is for load again, and not before its time is over; returns how many."""
        family: ShardHosts[Shard] = self._broker.coordinators[TOPICS[action.coordinator]]
        key = getattr(match, KEYS[action.coordinator]) if action.coordinator in KEYS else None
        index = match.partition if key is None else family.partition_for(key)
        load = self._loads[number] = _Load(family, index, match.node)
        family.begin = self._begin
        chosen = [one.partition for one in family.hosts.values() if load.is_for(one)]
        for partition in chosen:
            self._broker.turn.event(partial(family.reload, partition))
        self._broker.turn.later(ms, partial(self.end_load, number))
        return len(chosen)

    def end_load(self, number: int) -> None:
        """Lets the coordinators of a rule load, unless another rule delays them."""
        load = self._loads.pop(number, None)
        if load is None:
            return
        family = load.family
        if not any(one.family is family for one in self._loads.values()):
            family.begin = ShardHost.begin
        for host in [one for one in self._waiting if not self._is_delayed(one)]:
            del self._waiting[host]
            if host.owner.hosts.get(host.partition.index) is host:
                self._broker.turn.event(host.begin)

    def _is_delayed(self, host: ShardHost[Shard]) -> bool:
        return any(one.is_for(host) for one in self._loads.values())

    def _begin(self, host: ShardHost[Shard]) -> None:
        if self._is_delayed(host):
            self._waiting[host] = None
        else:
            host.begin()


@dataclass(frozen=True, slots=True)
class _Load:
    """Coordinators that a rule delays: all of a family, the one of a partition, or those of a node."""

    family: ShardHosts[Shard]
    index: int | None
    node: int | None

    def is_for(self, host: ShardHost[Shard]) -> bool:
        partition = host.partition
        is_chosen = self.index in (None, partition.index) and self.node in (None, partition.leader)
        return host.owner is self.family and is_chosen
