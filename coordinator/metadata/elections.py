"""Elections: how the leader, the in-sync replicas and the eligible ones of a partition change when brokers come and go
(Kafka's PartitionChangeBuilder, KIP-966), and how a reassignment ends (KIP-455).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from typing import NamedTuple, TypeVar

from ...protocol import messages
from ...protocol.features import SHRINKS_WITHIN_EPOCH_SINCE
from ..hashing import number_order
from .state import NO_LEADER, NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, RECOVERED, RECOVERING, MetadataState, Partition

T = TypeVar("T")
ELIGIBLE_REPLICAS = "eligible.leader.replicas.version"


class Kind(Enum):
    """`PREFERRED`: the first replica, if it may lead; `ONLINE`: the present leader, else the first replica that may
    lead; `UNCLEAN`: if none may, the first that is alive, although it may not have all committed records.
    """

    PREFERRED = 0
    UNCLEAN = 1
    ONLINE = 2


class Terms(NamedTuple):
    """What an election of one partition depends on. `may_lead`: whether a broker is alive; `min_isr`: how many replicas
    have to be in sync, or no replica is eligible beside them; `counts_shrinking`: whether there is a new leader epoch
    when a replica is not in sync any more.
    """

    may_lead: Callable[[int], bool]
    min_isr: int
    has_elr: bool
    kind: Kind = Kind.ONLINE
    counts_shrinking: bool = False


class Assignment(NamedTuple):
    """The replicas of a partition. While it is reassigned, `adding` are the new ones among them, and `removing` those
    that leave when all others are in sync. `directories`: of the replicas in their order; none if they are not known.
    """

    replicas: tuple[int, ...]
    directories: tuple[bytes, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @staticmethod
    def of(partition: Partition) -> Assignment:
        return Assignment(partition.replicas, partition.directories, partition.adding, partition.removing)

    def completed(self, isr: Collection[int]) -> Assignment:
        """Returns the assignment after the reassignment, if that can end; else this one. All new replicas have to be in
        sync; if more leave than come, all that stay.
        """
        left = tuple(one for one in self.replicas if one not in self.removing)
        in_sync = {one for one in isr if one not in self.removing}
        if not (self.adding or self.removing) or not left or not in_sync:
            return self
        needed = (*self.adding, *left) if len(self.adding) < len(self.removing) else self.adding
        if not in_sync.issuperset(needed):
            return self
        kept = [where for one, where in zip(self.replicas, self.directories, strict=False) if one in left]
        return Assignment(left, tuple(kept))


def terms_of(state: MetadataState, partition: Partition, may_lead: Callable[[int], bool], default: Terms) -> Terms:
    """Returns the terms of a partition: as its topic and the cluster configure them, else those of `default`."""
    name = state.topic_names[partition.topic_id]
    given = state.topic_value(name, "min.insync.replicas")
    unclean = state.topic_value(name, "unclean.leader.election.enable")
    kind = default.kind if unclean is None else Kind.UNCLEAN if unclean == "true" else Kind.ONLINE
    has_elr = state.features.get(ELIGIBLE_REPLICAS, 0) > 0
    wanted = default.min_isr if given is None else int(given)
    # for all partitions of the topic, the first one says how many replicas there are, as in Kafka
    min_isr = min(wanted, len(state.partitions[partition.topic_id, 0].replicas))
    return Terms(may_lead, min_isr, has_elr, kind, state.metadata_version < SHRINKS_WITHIN_EPOCH_SINCE)


def changed(
    partition: Partition,
    isr: Collection[int],
    terms: Terms,
    lost: Collection[int] = (),
    target: Assignment | None = None,
    *,
    is_recovered: bool = False,
) -> messages.PartitionChangeRecord | None:
    """Returns the change of a partition whose in-sync replicas become `isr`, with the election that this makes
    necessary; None if nothing changes. `lost`: replicas that may have lost committed records; `target`: the replicas
    that it gets, if they change; `is_recovered`: whether the leader asks. A reassignment that can end does.
    """
    present = Assignment.of(partition)
    begun = target or present
    assigned = begun.completed(isr)
    if assigned is not begun:
        isr = tuple(one for one in isr if one in assigned.replicas)
    elr, last_known = partition.elr, partition.last_known_elr
    if terms.has_elr:
        elr = _eligible(partition, isr, terms, lost)
    leader, is_clean = _elected(partition, assigned.replicas, isr, elr, terms)
    recovery = RECOVERED if is_recovered and partition.is_recovering else NO_RECOVERY_CHANGE
    if leader not in (partition.leader, NO_LEADER) and not (is_clean or partition.is_recovering):
        recovery = RECOVERING
    if leader not in (partition.leader, NO_LEADER) and (leader in elr or leader not in isr):
        isr, elr = (leader,), tuple(one for one in elr if one != leader) if is_clean else ()
    if not terms.has_elr:
        isr, elr = isr or partition.isr, ()
    # the leader's epoch shows clients that a replica has gone, even if the leader stays
    has_gone = not set(partition.replicas).issubset(assigned.replicas)
    has_epoch = (
        leader != partition.leader or has_gone or (terms.counts_shrinking and not set(partition.isr) <= set(isr))
    )
    if terms.has_elr and has_epoch and leader != NO_LEADER:
        last_known = ()
    elif terms.has_elr and has_epoch and not last_known:
        last_known = (partition.leader,)  # who is chosen when no eligible replica comes back
    record = messages.PartitionChangeRecord(
        partition_id=partition.index,
        topic_id=partition.topic_id,
        isr=_if_new(tuple(isr), partition.isr),
        leader=leader if has_epoch else NO_LEADER_CHANGE,
        eligible_leader_replicas=_if_new(elr, partition.elr),
        last_known_elr=_if_new(last_known, partition.last_known_elr),
        replicas=_if_new(assigned.replicas, present.replicas),
        directories=_if_new(assigned.directories, present.directories),
        adding_replicas=_if_new(assigned.adding, present.adding),
        removing_replicas=_if_new(assigned.removing, present.removing),
        leader_recovery_state=recovery,
    )
    said = (record.isr, record.eligible_leader_replicas, record.last_known_elr, record.replicas, record.directories)
    more = (record.adding_replicas, record.removing_replicas)
    has_said = recovery != NO_RECOVERY_CHANGE or any(one is not None for one in (*said, *more))
    return record if has_epoch or has_said else None


def _if_new(value: tuple[T, ...], before: tuple[T, ...]) -> list[T] | None:
    """Returns the value of a field that changes; None if it stays."""
    return list(value) if value != before else None


def _eligible(partition: Partition, isr: Collection[int], terms: Terms, lost: Collection[int]) -> tuple[int, ...]:
    """Returns the eligible replicas, which have all committed records."""
    if len(isr) >= terms.min_isr:
        return ()
    left = number_order((*partition.elr, *partition.isr))
    return tuple(one for one in left if one not in isr and one not in lost)


def _elected(
    partition: Partition, replicas: tuple[int, ...], isr: Collection[int], elr: Collection[int], terms: Terms
) -> tuple[int, bool]:
    """Returns the leader among these replicas, and whether it has all committed records."""
    may_lead = terms.may_lead
    clean = isr or elr  # those that were eligible when that was switched off lead, too
    fit = [one for one in replicas if one in clean and may_lead(one)]
    if terms.kind is Kind.PREFERRED and replicas[0] in fit:
        return replicas[0], True
    if partition.leader in fit:
        return partition.leader, True
    if fit:
        return fit[0], True
    last = partition.last_known_elr
    if terms.has_elr and not clean and len(last) == 1 and may_lead(last[0]):
        return last[0], False
    if terms.kind is Kind.UNCLEAN:
        for one in replicas:
            if may_lead(one):
                return one, False
    return NO_LEADER, True
