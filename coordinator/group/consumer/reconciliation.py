"""The step that takes a member of a consumer group nearer to its target assignment (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ....protocol.errors import ApiError, Errors
from ...format import CoordinatorRecord
from ..environment import Partitions, Target
from ..modern import STABLE
from ..state import ShardState
from .group import ConsumerGroup
from .member import UNRELEASED_PARTITIONS, UNREVOKED_PARTITIONS, Member
from .records import current_record


def reconcile(
    shard: ShardState,
    group: ConsumerGroup,
    member: Member,
    target_epoch: int,
    target: Target,
    subscription_changed: bool,
    owned: set[tuple[bytes, int]] | None,
    records: list[CoordinatorRecord],
) -> Member:
    """Returns the member after its next step; adds its record if it changes. Raises ApiError(FENCED_MEMBER_EPOCH)."""
    if not subscription_changed and member.is_reconciled_to(target_epoch):
        return member
    subscribed = set(_topic_ids(shard, group, member))
    after = Reconciliation(
        member, target_epoch, target, group.owner_epoch, subscribed, subscription_changed, owned
    ).next()
    if after.current() == member.current():
        return after
    records.append(current_record(group.id, after))
    if not after.is_classic:
        if after.state == UNREVOKED_PARTITIONS:
            await_revocation(shard, group, after)
        else:
            shard.cancel(("rebalance", group.id, after.id))
    return after


def _topic_ids(shard: ShardState, group: ConsumerGroup, member: Member) -> frozenset[bytes]:
    image = shard.env.image
    found = (image.topic_id(name) for name in group.subscription_of(member))
    return frozenset(topic for topic in found if topic is not None)


def await_revocation(shard: ShardState, group: ConsumerGroup, member: Member) -> None:
    """A member that must revoke partitions has to report that in time, or to leave the epoch at which it had to."""
    shard.schedule(("rebalance", group.id, member.id), member.rebalance_timeout_ms, member.epoch)


class Reconciliation:
    """The next step of one member towards its target (CurrentAssignmentBuilder).

    `owned`: (topic id, partition) pairs that the member reports to own, or None if it reports nothing. `owner_epoch`
    returns the epoch of a partition's present owner, -1 for none. `subscribed`: the ids of the topics that the member
    may have.
    """

    def __init__(
        self,
        member: Member,
        target_epoch: int,
        target: Target,
        owner_epoch: Callable[[bytes, int], int],
        subscribed: set[bytes],
        subscription_changed: bool,
        owned: set[tuple[bytes, int]] | None,
    ) -> None:
        self.member = member
        self.target_epoch = target_epoch
        self.target = target
        self.owner_epoch = owner_epoch
        self.subscribed = subscribed
        self.subscription_changed = subscription_changed
        self.owned = owned

    def next(self) -> Member:
        """Returns the member after the step; the same object
        if nothing changes. Raises ApiError(FENCED_MEMBER_EPOCH).
        """
        member = self.member
        if member.state == STABLE:
            if member.epoch != self.target_epoch:
                return self._towards_target(member.epoch)
            return self._drop_unsubscribed() if self.subscription_changed else member
        if member.state == UNREVOKED_PARTITIONS:
            if self._still_owns(member.revoking):
                return self._drop_unsubscribed() if self.subscription_changed else member
            return self._towards_target(member.epoch)
        if member.state == UNRELEASED_PARTITIONS:
            return self._towards_target(member.epoch)
        if self.owned is None or self.owned:
            raise ApiError(
                Errors.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. The member must abandon all its partitions and "
                "rejoin.",
            )
        return self._towards_target(self.target_epoch)

    def _still_owns(self, partitions: Partitions) -> bool:
        if self.owned is None:
            return True
        return any(partition in partitions.get(topic, ()) for topic, partition in self.owned)

    def _moved(self, epoch: int, state: int, assigned: Partitions, revoking: Partitions) -> Member:
        return replace(
            self.member,
            epoch=epoch,
            previous_epoch=self.member.epoch,
            state=state,
            assigned=assigned,
            revoking=revoking,
        )

    def _drop_unsubscribed(self) -> Member:
        """Revokes partitions of topics to which the member is no longer subscribed, within the same target."""
        member = self.member
        gone = {topic: of for topic, of in member.assigned.items() if topic not in self.subscribed}
        if not gone:
            return member
        kept = {topic: of for topic, of in member.assigned.items() if topic in self.subscribed}
        revoking = dict(member.revoking)
        for topic, of in gone.items():
            revoking[topic] = {**revoking.get(topic, {}), **of}
        if self._still_owns(revoking):
            return self._moved(member.epoch, UNREVOKED_PARTITIONS, kept, revoking)
        return self._moved(member.epoch, member.state, kept, member.revoking)

    def _towards_target(self, epoch: int) -> Member:
        member = self.member
        kept: Partitions = {}
        revoking: Partitions = {}
        coming: Partitions = {}
        unreleased = False
        for topic in dict.fromkeys((*self.target, *member.assigned)):
            wanted = self.target.get(topic, frozenset()) if topic in self.subscribed else frozenset()
            have = member.assigned.get(topic, {})
            of_kept = {p: e for p, e in have.items() if p in wanted}
            of_revoking = {p: e for p, e in have.items() if p not in wanted}
            pending = [p for p in sorted(wanted) if p not in of_kept]
            mine = member.revoking.get(topic, ())
            free = [p for p in pending if p in mine or self.owner_epoch(topic, p) == -1]
            unreleased = unreleased or len(free) < len(pending)
            if of_kept:
                kept[topic] = of_kept
            if of_revoking:
                revoking[topic] = of_revoking
            if free:
                coming[topic] = dict.fromkeys(free, self.target_epoch)
        if revoking and self._still_owns(revoking):
            return self._moved(epoch, UNREVOKED_PARTITIONS, kept, revoking)
        for topic, of in coming.items():
            kept[topic] = {**kept.get(topic, {}), **of}
        return self._moved(self.target_epoch, UNRELEASED_PARTITIONS if unreleased else STABLE, kept, {})
