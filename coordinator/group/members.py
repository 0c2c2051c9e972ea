"""Members of consumer groups (KIP-848), and the step that takes one of them nearer to its target assignment."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from .environment import Partitions, Target

STABLE, UNREVOKED_PARTITIONS, UNRELEASED_PARTITIONS, UNKNOWN = 0, 1, 2, 127
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """What a member that speaks the classic protocol in a consumer group said of itself."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a consumer group, as the records tell it. `rebalance_timeout_ms` -1 is unknown."""

    id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: int = STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None
    assigned: Partitions = field(default_factory=dict)
    revoking: Partitions = field(default_factory=dict)

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state == STABLE and self.epoch == target_epoch

    def subscription(self) -> tuple[Any, ...]:
        """What a member metadata record holds."""
        return (
            self.instance_id,
            self.rack_id,
            self.rebalance_timeout_ms,
            self.client_id,
            self.client_host,
            self.topic_names,
            self.topic_regex,
            self.server_assignor,
            self.classic,
        )

    def current(self) -> tuple[Any, ...]:
        """What a current assignment record holds."""
        return self.epoch, self.previous_epoch, self.state, self.assigned, self.revoking


def with_metadata(member: Member, value: Any) -> Member:
    """The member with what a ConsumerGroupMemberMetadataValue says."""
    classic = value.classic_member_metadata
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
        topic_regex=value.subscribed_topic_regex,
        server_assignor=value.server_assignor,
        classic=classic and ClassicMetadata(classic.session_timeout_ms, tuple((p.name, bytes(p.metadata)) for p in classic.supported_protocols)),
    )


def _with_epochs(found: Any, default: int) -> Partitions:
    """Partitions of a record; where no epochs were written, or too few, the member's own stands for all."""
    out: Partitions = {}
    for topic in found:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(default, 0)] * len(topic.partitions)
        out[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return out


def with_current(member: Member, value: Any) -> Member:
    """The member with what a ConsumerGroupCurrentMemberAssignmentValue says."""
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=value.state,
        assigned=_with_epochs(value.assigned_partitions, value.member_epoch),
        revoking=_with_epochs(value.partitions_pending_revocation, value.member_epoch),
    )


def metadata_value(member: Member) -> Any:
    m = messages.ConsumerGroupMemberMetadataValue
    value = m(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None,
    )
    if member.classic is not None:
        protocols = [m.ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.classic.protocols]
        value.classic_member_metadata = m.ClassicMemberMetadata(session_timeout_ms=member.classic.session_timeout_ms, supported_protocols=protocols)
    return value


def current_value(member: Member) -> Any:
    v = messages.ConsumerGroupCurrentMemberAssignmentValue

    def topics(partitions: Partitions) -> list[Any]:
        return [
            v.TopicPartitions(topic_id=topic, partitions=sorted(of), assignment_epochs=[of[p] for p in sorted(of)])
            for topic, of in partitions.items()
        ]

    return v(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=topics(member.assigned),
        partitions_pending_revocation=topics(member.revoking),
    )


class Reconciliation:
    """The next step of one member towards its target (CurrentAssignmentBuilder).

    `owned` is what the member says it owns: (topic id, partition) pairs, or None where it did not say. `owner_epoch` tells the
    epoch of a partition's present owner, -1 for none. `subscribed` holds the ids of the topics that the member may have.
    """

    def __init__(
        self,
        member: Member,
        target_epoch: int,
        target: Target,
        owner_epoch: Any,
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
        """The member after the step; the same object where nothing changes. ApiError(FENCED_MEMBER_EPOCH)."""
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
                "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
            )
        return self._towards_target(self.target_epoch)

    def _still_owns(self, partitions: Partitions) -> bool:
        if self.owned is None:
            return True
        return any(partition in partitions.get(topic, ()) for topic, partition in self.owned)

    def _moved(self, epoch: int, state: int, assigned: Partitions, revoking: Partitions) -> Member:
        return replace(self.member, epoch=epoch, previous_epoch=self.member.epoch, state=state, assigned=assigned, revoking=revoking)

    def _drop_unsubscribed(self) -> Member:
        """Within the same target: what the member is no longer subscribed to is taken from it."""
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
