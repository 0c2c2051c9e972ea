"""The controller's shard: the metadata on a timeline, and helpers of its handlers.

A handler gets a request and returns a `Result` with metadata records and a reply.
Ids, time and configuration are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, TypeVar

from ...protocol import messages
from ...protocol.control import Marker
from ...protocol.errors import ApiError, Errors
from ...protocol.features import CONTROLLERS_SINCE
from ...protocol.structs import Struct
from ..packing import Packed
from ..shard import Decision, Result
from ..timeline import Timeline, TimelineDict
from ..timers import Timer
from .directories import MIGRATING, is_online, of_new_replica, takes_replicas
from .elections import Assignment, Kind, Terms, changed, terms_of
from .new_partitions import PARTITIONS_AS_ONE, NewPartitions
from .placement import Chance, Placer
from .registration import Broker
from .state import NO_LEADER, NO_LEADER_CHANGE, MetadataState, Partition

R = TypeVar("R")
PRODUCER_ID_BLOCK = 1000
RECORDS_PER_REQUEST = 10_000


def count_of(result: Result[R]) -> int:
    """Returns how many records a result has."""
    return sum(len(one) if isinstance(one, Packed) else 1 for one in result.records)


def check_count(records: int) -> None:
    """Checks the number of records of a user's request, also if it only validates. Raises ApiError(POLICY_VIOLATION)
    for too many.
    """
    if records > RECORDS_PER_REQUEST:
        raise ApiError(Errors.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


def bounded(result: Result[R]) -> Result[R]:
    """Returns the result. Raises ApiError(POLICY_VIOLATION) if it has too many records."""
    check_count(count_of(result))
    return result


def limited(decision: Decision[R]) -> Decision[R]:
    """Decides what a client has asked for. Raises ApiError(POLICY_VIOLATION) for too many records."""
    return bounded((yield from decision))


@dataclass(slots=True)
class Defaults:
    """The broker's defaults for new topics."""

    num_partitions: int = 1
    replication_factor: int = 1
    topic_configs: dict[str, str] | None = None  # topic keys to the broker's value, if it is set
    broker_value: Callable[[str], Any] = lambda name: None  # returns the broker keys that bound the values of groups
    release: str | None = None  # the earlier release of Kafka that is emulated


class Controller:
    """Implements `Shard` for `__cluster_metadata`."""

    def __init__(self, timeline: Timeline, defaults: Defaults, new_id: Callable[[], bytes], chance: Chance) -> None:
        self.state = MetadataState(lambda: TimelineDict(timeline))
        self.defaults = defaults
        self.new_id = new_id
        self.chance = chance

    # the shard

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: None, value: object) -> None:
        self.state.apply(value)

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, marker: Marker) -> tuple[()]:
        """Never called: the metadata log has no transactions, as in Kafka."""
        return ()

    def on_loaded(self, now_ms: int) -> list[Timer]:
        return []

    def on_unloaded(self) -> None:
        """Does nothing: all state is in the log."""

    # brokers

    def is_active(self, node: int) -> bool:
        """Whether a node is registered and may lead."""
        found = self.state.brokers.get(node)
        return found is not None and found.is_active

    def register_brokers(
        self,
        requests: Sequence[Broker],
        controller: messages.RegisterControllerRecord,
        offline: Container[tuple[bytes, int]] = (),
        crashed: AbstractSet[int] = frozenset(),
    ) -> Result:
        """Registers the nodes again, unfenced, fences those that are gone, and elects leaders for the partitions that
        have none, except for those `offline`, by topic id and index: their log directory cannot be used.

        `crashed`: the nodes whose last shutdown was not clean. They stay fenced, and their replicas are neither in sync
        nor eligible (KIP-966).
        """
        every = {one.id for one in requests}
        here = every - crashed
        version = self.state.metadata_version
        registered = [
            one._replace(fenced=one.id in crashed, in_controlled_shutdown=False).at(version).record()
            for one in requests
        ]
        gone = [fencing(one, fenced=1) for one in self.state.brokers.values() if one.id not in every and not one.fenced]
        changes: list[Struct | None] = []
        for key, partition in self.state.partitions.items():
            if key in offline:
                if partition.leader in every or partition.elr:
                    changes.append(_without_leader(partition, ()))
                continue
            in_sync = (partition.leader, *partition.isr)
            has_lost = not crashed.isdisjoint((*in_sync, *partition.elr))
            if has_lost or (not here.issuperset(in_sync) and not here.isdisjoint(partition.replicas)):
                left = [one for one in partition.isr if one in here]
                changes.append(self._change(partition, left, here.__contains__, crashed))
        own = [controller] if version >= CONTROLLERS_SINCE else []
        return Result([*own, *registered, *gone, *filter(None, changes)])

    def amend_registrations(
        self, requests: Sequence[Broker], controller: messages.RegisterControllerRecord
    ) -> Result[None]:
        """Adds to the registrations what the metadata version has now, as Kafka's nodes do after it was raised."""
        version, known = self.state.metadata_version, self.state.brokers
        records: list[Struct] = []
        for before, one in ((known[one.id], one) for one in requests if one.id in known):
            after = before._replace(log_dirs=one.log_dirs, cordoned=one.cordoned).at(version)
            if after != before:
                records.append(after.record())
        if version >= CONTROLLERS_SINCE and controller.controller_id not in self.state.controllers:
            records.append(controller)
        return Result(records, None)

    def directory_failed(self, log_dirs: Mapping[int, list[bytes]], offline: Container[tuple[bytes, int]]) -> Result:
        """Takes the partitions of a failed log directory from their leaders, as Kafka's controller does after a
        heartbeat that names the directory. `log_dirs`: the ids of those that are left, by node.
        """
        changes = [
            messages.BrokerRegistrationChangeRecord(
                broker_id=node, broker_epoch=self.state.brokers[node].epoch, log_dirs=left
            )
            for node, left in log_dirs.items()
            if node in self.state.brokers and self.state.brokers[node].log_dirs
        ]
        lost = [
            _without_leader(partition, (partition.leader,))
            for key, partition in self.state.partitions.items()
            if key in offline and partition.leader in log_dirs
        ]
        return Result([*changes, *lost])

    def stop_brokers(self, nodes: Sequence[int]) -> Result:
        """Fences the nodes when all of them stop. The last write of a stopping process,
        so that the next start need not wait for session timeouts. The leaders stay for the next start.
        """
        brokers = [self.state.brokers.get(node) for node in nodes]  # one that was unregistered is not there
        return Result([fencing(one, fenced=1) for one in brokers if one is not None and not one.fenced])

    def change(
        self,
        partition: Partition,
        isr: Sequence[int],
        *,
        without: int | None = None,
        with_node: int | None = None,
        lost: Collection[int] = (),
        kind: Kind = Kind.ONLINE,
        target: Assignment | None = None,
        is_recovered: bool = False,
    ) -> messages.PartitionChangeRecord | None:
        """Returns the change of a partition whose in-sync replicas become `isr`, with the election that this needs;
        None if nothing changes. `without`: a broker that goes; `with_node`: one that comes; `lost`, `target` and
        `is_recovered`: as in `elections`.
        """

        def may_lead(node: int) -> bool:
            if node == without:
                return False
            return (node == with_node or self.is_active(node)) and self._has_directory(partition, node)

        return self._change(partition, isr, may_lead, lost, kind, target, is_recovered)

    def may_lead(self, partition: Partition, node: int) -> bool:
        """Whether a replica is alive, and its log directory is online."""
        return self.is_active(node) and self._has_directory(partition, node)

    def may_lose(self, topic: str) -> bool:
        """Whether unclean elections are enabled for a topic."""
        key = "unclean.leader.election.enable"
        value = self.state.topic_value(topic, key)
        return bool(self.defaults.broker_value(key)) if value is None else value == "true"

    def _has_directory(self, partition: Partition, node: int) -> bool:
        """Whether the log directory of a replica is online; one that the partition does not have yet has none."""
        if node not in partition.replicas:
            return False
        directories, at = partition.directories, partition.replicas.index(node)
        return at >= len(directories) or is_online(self.state.brokers[node], directories[at])

    def _change(
        self,
        partition: Partition,
        isr: Sequence[int],
        may_lead: Callable[[int], bool],
        lost: Collection[int] = (),
        kind: Kind = Kind.ONLINE,
        target: Assignment | None = None,
        is_recovered: bool = False,
    ) -> messages.PartitionChangeRecord | None:
        value = self.defaults.broker_value
        unclean = bool(value("unclean.leader.election.enable"))
        default = Terms(
            may_lead, int(value("min.insync.replicas") or 1), True, Kind.UNCLEAN if unclean else Kind.ONLINE
        )
        found = terms_of(self.state, partition, may_lead, default)
        terms = found if kind is Kind.ONLINE else found._replace(kind=kind)
        return changed(partition, isr, terms, lost, target, is_recovered=is_recovered)

    def directory_of(self, partition: Partition, node: int) -> bytes:
        """Returns the log directory that a replica has, or would get: the log of a partition is in one directory, which
        has an id for each node.
        """
        brokers, known = self.state.brokers, list(zip(partition.replicas, partition.directories, strict=False))
        own = brokers[node].log_dirs if node in brokers else ()
        for one, directory in known:
            if one == node:
                return directory
        for one, directory in known:
            ids = brokers[one].log_dirs if one in brokers else ()
            if directory in ids and ids.index(directory) < len(own):
                return own[ids.index(directory)]
        return of_new_replica(brokers[node]) if own else MIGRATING

    # placement

    def usable(self) -> list[Broker]:
        """Returns the brokers that may get replicas of new partitions; fenced ones may, those that shut down may not,
        as in Kafka.
        """
        known = self.state.brokers.values()
        return [one for one in known if takes_replicas(one) and (one.fenced or not one.in_controlled_shutdown)]

    def place(self, count: int, replication_factor: int) -> Generator[None, None, list[list[int]]]:
        """Returns the replicas of new partitions. Yields between two of them."""
        placer = Placer(self.usable(), self.chance)
        placed = [placer.place(replication_factor)]
        while len(placed) < count:
            yield
            placed.append(placer.place(replication_factor))
        return placed

    def new_partitions(
        self, topic_id: bytes, placed: list[list[int]], first: int = 0
    ) -> Generator[None, None, list[NewPartitions]]:
        """Returns the partitions of a topic from number `first` on, which have these replicas; one of each is active.
        Yields between two.
        """
        brokers, new = self.state.brokers, []
        choices: dict[tuple[int, ...], tuple[tuple[bytes, ...], tuple[int, ...]]] = {}
        for index, replicas in enumerate(map(tuple, placed), first):
            if index > first:
                yield
            if replicas not in choices:
                isr = tuple(one for one in replicas if self.is_active(one))
                choices[replicas] = tuple(of_new_replica(brokers[r]) for r in replicas), isr
            directories, isr = choices[replicas]
            new.append(Partition(topic_id, index, replicas, isr, isr[0], 0, 0, directories))
        return [
            NewPartitions(some)
            for _, alike in groupby(new, lambda one: len(one.isr))
            for some in iter(lambda: list(islice(alike, PARTITIONS_AS_ONE)), [])  # noqa: B023
        ]

    # producer ids

    def allocate_producer_ids(self, node: int, broker_epoch: int) -> Result[tuple[int, int]]:
        """Allocates a block of producer ids for a node; the reply is the first id and the size."""
        first = self.state.next_producer_id
        record = messages.ProducerIdsRecord(
            broker_id=node, broker_epoch=broker_epoch, next_producer_id=first + PRODUCER_ID_BLOCK
        )
        return Result([record], (first, PRODUCER_ID_BLOCK))

    def advance_producer_ids(self, node: int, broker_epoch: int, next_id: int) -> Result[None]:
        """Leaves out the producer ids before `next_id`, which were allocated elsewhere."""
        if next_id <= self.state.next_producer_id:
            return Result([], None)
        r = messages.ProducerIdsRecord
        return Result([r(broker_id=node, broker_epoch=broker_epoch, next_producer_id=next_id)], None)


def fencing(broker: Broker, fenced: int) -> messages.BrokerRegistrationChangeRecord:
    """Returns the record that fences a broker with 1, and unfences it with -1."""
    return messages.BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=fenced)


def _without_leader(partition: Partition, eligible: tuple[int, ...]) -> messages.PartitionChangeRecord:
    """Returns the change of a partition whose only replica is offline. `eligible`: the replicas that have all committed
    records (KIP-966); none if the node has not stopped cleanly.
    """
    return messages.PartitionChangeRecord(
        partition_id=partition.index,
        topic_id=partition.topic_id,
        isr=[],
        leader=NO_LEADER if partition.leader != NO_LEADER else NO_LEADER_CHANGE,
        eligible_leader_replicas=list(eligible),
        last_known_elr=list(partition.replicas),
    )
