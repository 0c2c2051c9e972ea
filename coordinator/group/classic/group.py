"""A classic group: its five states, its members, and the requests that wait.

The progress of a rebalance is not in the log: which members have joined, which have to sync, which replies are parked.
It is soft state of the group object, lost with the process as in Kafka. The log holds the group as of its last
completed rebalance. When an append fails, the journal takes back what its batch changed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from ....protocol import messages
from ....protocol.errors import ApiError, Errors, MalformedMessage
from ... import epochs
from ...format import CoordinatorRecord
from ...hashing import java_order
from ...journaled import Journaled, JournaledDict
from ..consumer_protocol import PROTOCOL_TYPE, subscribed_topics
from .member import ClassicMember, Protocols, metadata_of

if TYPE_CHECKING:
    from .member import JoinAnswer, SyncAnswer


class State(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


BEFORE: dict[State, frozenset[State]] = {
    State.EMPTY: frozenset((State.PREPARING_REBALANCE,)),
    State.PREPARING_REBALANCE: frozenset((State.STABLE, State.COMPLETING_REBALANCE, State.EMPTY)),
    State.COMPLETING_REBALANCE: frozenset((State.PREPARING_REBALANCE,)),
    State.STABLE: frozenset((State.COMPLETING_REBALANCE,)),
    State.DEAD: frozenset(State),
}


@dataclass(slots=True)
class ClassicGroup(Journaled):
    """One group. `protocol_type` None: a simple group, which only has offsets."""

    kind: ClassVar[str] = "classic"
    may_expire: ClassVar[bool] = True

    id: str
    state: State = State.EMPTY
    previous: State = State.DEAD
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    state_since_ms: int | None = None
    members: JournaledDict[str, ClassicMember] = field(init=False)
    static_members: JournaledDict[str, str] = field(init=False)
    pending: JournaledDict[str, None] = field(init=False)
    pending_sync: JournaledDict[str, None] = field(init=False)
    subscribed: frozenset[str] | None = None
    new_member_added: bool = False
    last_join_ms: int = 0  # when a new member last joined, in monotonic time
    # by member: requests that wait, those that have not been in a generation yet, and what the leader gave to each
    joins: JournaledDict[str, JoinAnswer] = field(init=False)
    syncs: JournaledDict[str, SyncAnswer] = field(init=False)
    newcomers: JournaledDict[str, None] = field(init=False)
    assignments: Mapping[str, bytes] = field(default_factory=dict)
    empty_assignments: int = 0  # how many times in a row the leader assigned nothing and the members joined again
    protocol_counts: dict[str, int] = field(init=False)  # how many members support each protocol

    def __post_init__(self) -> None:
        self.members = JournaledDict(self.journal)
        self.static_members = JournaledDict(self.journal)
        self.joins, self.syncs = JournaledDict(self.journal), JournaledDict(self.journal)
        self.newcomers = JournaledDict(self.journal)
        self.pending = JournaledDict(self.journal)
        self.pending_sync = JournaledDict(self.journal)
        self.protocol_counts = JournaledDict(self.journal)

    # state

    def become(self, state: State, now_ms: int) -> None:
        if self.state not in BEFORE[state]:
            raise AssertionError(f"group {self.id} cannot go from {self.state.value} to {state.value}")
        self.previous, self.state = self.state, state
        self.state_since_ms = now_ms

    def state_name(self, as_of: int | None = None) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    def is_kept(self, config: Callable[[str], object]) -> bool:
        return False

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == PROTOCOL_TYPE

    def can_rebalance(self) -> bool:
        return self.state in BEFORE[State.PREPARING_REBALANCE]

    # members

    def add(self, member: ClassicMember) -> None:
        member.journal = self.journal
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        self._count(member.protocols, 1)
        self.pending.pop(member.id, None)

    def remove(self, *member_ids: str) -> None:
        """Removes members, and ids with which no member has joined."""
        gone = self.members.remove_all(member_ids)
        counts: dict[Protocols, int] = {}
        for member in gone.values():
            counts[member.protocols] = counts.get(member.protocols, 0) + 1
        for protocols, count in counts.items():
            self._count(protocols, -count)
        self.static_members.remove_all(m.instance_id for m in gone.values() if m.instance_id is not None)
        if self.leader in member_ids:
            self.leader = next(iter(self.members), None)
        for of_members in (self.joins, self.syncs, self.newcomers, self.pending, self.pending_sync):
            if of_members:
                of_members.remove_all(member_ids)

    def replace_static(self, instance_id: str, old_id: str, new_id: str) -> ClassicMember:
        """A static member joined again with another id; requests that wait with the old id are answered with
        FENCED_INSTANCE_ID."""
        old = self.members.pop(old_id)
        fenced = int(Errors.FENCED_INSTANCE_ID)
        self.answer_join(
            old, messages.JoinGroupResponse(error_code=fenced, member_id=old_id, protocol_type=None, protocol_name=None)
        )
        self.answer_sync(old, messages.SyncGroupResponse(error_code=fenced, assignment=b""))
        new = ClassicMember(
            new_id,
            instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocol_type,
            old.protocols,
            journal=self.journal,
        )
        self.members[new_id] = new
        self.newcomers.pop(old_id, None)
        assignments = dict(self.assignments)
        assignments[new_id] = assignments.pop(old_id, b"")
        self.assignments = assignments
        if self.leader == old_id:
            self.leader = new_id
        self.static_members[instance_id] = new_id
        return new

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Raises ApiError(UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID)."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise ApiError(Errors.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise ApiError(Errors.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise ApiError(Errors.UNKNOWN_MEMBER_ID)
        return self.members[member_id]

    def update(
        self,
        member: ClassicMember,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        if member.protocols != protocols:
            self._count(member.protocols, -1)
            self._count(protocols, 1)
            member.protocols = protocols
        if (member.rebalance_timeout_ms, member.session_timeout_ms) != (rebalance_timeout_ms, session_timeout_ms):
            member.rebalance_timeout_ms, member.session_timeout_ms = rebalance_timeout_ms, session_timeout_ms

    # requests that wait

    def park_join(self, member: ClassicMember, answer: JoinAnswer) -> None:
        """A member's JoinGroup waits for the rebalance. An earlier one of the same member is dropped."""
        self.joins[member.id] = answer

    def answer_join(self, member: ClassicMember, response: messages.JoinGroupResponse) -> None:
        """Sends the reply to the member's JoinGroup, if one waits."""
        answer = self.joins.pop(member.id, None)
        if answer is not None:
            answer(response)

    def answer_sync(self, member: ClassicMember, response: messages.SyncGroupResponse) -> None:
        answer = self.syncs.pop(member.id, None)
        if answer is not None:
            answer(response)

    def take_joins(self) -> Mapping[str, JoinAnswer]:
        """Returns the answers to JoinGroups by member, which do not wait any more; no member is new any more."""
        taken, self.joins = self.joins, JournaledDict(self.journal)
        self.newcomers = JournaledDict(self.journal)
        return taken

    def take_syncs(self) -> Mapping[str, SyncAnswer]:
        """Returns the answers to SyncGroups by member, which do not wait any more."""
        taken, self.syncs = self.syncs, JournaledDict(self.journal)
        return taken

    def have_all_joined(self) -> bool:
        return not self.pending and len(self.joins) == len(self.members)

    def has_satisfied_heartbeat(self, member_id: str) -> bool:
        """A member that waits for a reply needs no heartbeat, except for a new member, whose JoinGroup may wait for
        long.
        """
        return member_id not in self.newcomers and (member_id in self.joins or member_id in self.syncs)

    def rebalance_timeout_ms(self) -> int:
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Elects a member that has joined as leader if the present leader has not;
        returns whether there is a leader.
        """
        if self.leader is None:
            return False
        if self.leader in self.joins:
            return True
        for member_id in self.members:
            if member_id in self.joins:
                self.leader = member_id
                return True
        return False

    # protocols

    def _count(self, protocols: Protocols, change: int) -> None:
        for name, _ in protocols:
            count = self.protocol_counts.get(name, 0) + change
            if count:
                self.protocol_counts[name] = count
            else:
                self.protocol_counts.pop(name, None)

    def is_common(self, protocol: str) -> bool:
        """Whether every member supports a protocol."""
        return self.protocol_counts.get(protocol, 0) == len(self.members)

    def supports(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Whether a member of this type and with these protocols may join."""
        names = list(protocols)
        if self.state is State.EMPTY:
            return bool(protocol_type) and bool(names)
        return self.protocol_type == protocol_type and any(self.is_common(name) for name in names)

    def select_protocol(self) -> str:
        """Each member votes for the first of its protocols that all support; the most votes win."""
        if len(self.protocol_counts) == 1:
            return next(iter(self.protocol_counts))
        votes = Counter(next(name for name, _ in m.protocols if self.is_common(name)) for m in self.members.values())
        return max(java_order(votes), key=lambda name: votes[name])

    def next_generation(self, now_ms: int) -> None:
        self.generation = epochs.after(self.generation)
        protocol, subscribed = self.select_protocol() if self.members else None, self.subscribed
        if protocol != self.protocol:
            self.protocol = protocol
        if not self.members:
            self.empty_assignments = 0
        found = self.compute_subscribed()
        if found != subscribed:
            self.subscribed = found
        self.become(State.COMPLETING_REBALANCE if self.members else State.EMPTY, now_ms)

    def compute_subscribed(self) -> frozenset[str] | None:
        """Returns the topics of all members; None if the group does not use the protocol of consumers or its metadata
        is malformed.
        """
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        try:
            said = dict.fromkeys(m.protocols for m in self.members.values())  # mostly the same
            return frozenset().union(*(subscribed_topics(metadata_of(one, self.protocol)) for one in said))
        except MalformedMessage:
            return None

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed if self.subscribed is not None else self.uses_consumer_protocol

    # offsets, and the end of the group

    def has_readable_offsets(self, member_id: str | None, epoch: int, as_of: int | None) -> bool:
        return self.state is not State.DEAD

    def offset_ages_from(self, commit_ms: int) -> int | None:
        if self.protocol_type is None:
            return commit_ms
        if self.state is State.EMPTY:
            return commit_ms if self.state_since_ms is None else self.state_since_ms
        if self.uses_consumer_protocol and self.subscribed is not None and self.state is State.STABLE:
            return commit_ms
        return None

    def check_delete(self) -> None:
        if self.state is State.DEAD:
            raise ApiError(Errors.GROUP_ID_NOT_FOUND)
        if self.state is not State.EMPTY:
            raise ApiError(Errors.NON_EMPTY_GROUP)

    def check_delete_offsets(self) -> None:
        if self.state is State.DEAD:
            raise ApiError(Errors.GROUP_ID_NOT_FOUND)
        if self.state is not State.EMPTY and not self.uses_consumer_protocol:
            raise ApiError(Errors.NON_EMPTY_GROUP)

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        in_transaction: bool = False,
    ) -> None:
        """Raises ApiError: the member may not commit offsets."""
        if self.state is State.DEAD:
            raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE)
        if generation < 0 and self.state is State.EMPTY:
            return
        if generation >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise ApiError(Errors.ILLEGAL_GENERATION)
        else:
            raise ApiError(Errors.UNKNOWN_MEMBER_ID)
        if self.state is State.COMPLETING_REBALANCE and not in_transaction:
            raise ApiError(Errors.REBALANCE_IN_PROGRESS)

    # records

    def record(self, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
        """The group's record, with the assignments that its members are to have."""
        key, value = self.record_without_members()
        value.members = list(self.recorded_members(assignments))
        return key, value

    def record_without_members(self) -> tuple[messages.GroupMetadataKey, messages.GroupMetadataValue]:
        return messages.GroupMetadataKey(group=self.id), messages.GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=-1 if self.state_since_ms is None else self.state_since_ms,
        )

    def recorded_members(
        self, assignments: Mapping[str, bytes]
    ) -> Iterator[messages.GroupMetadataValue.MemberMetadata]:
        """Yields the members as they are in the group's record."""
        made = messages.GroupMetadataValue.MemberMetadata
        for m in self.members.values():
            yield made(
                member_id=m.id,
                group_instance_id=m.instance_id,
                client_id=m.client_id,
                client_host=m.client_host,
                rebalance_timeout=m.rebalance_timeout_ms,
                session_timeout=m.session_timeout_ms,
                subscription=m.metadata(self.protocol),
                assignment=assignments.get(m.id, b""),
            )

    def empty_record(self) -> CoordinatorRecord:
        """Returns the record of a group that is about to get its first member."""
        since = -1 if self.state_since_ms is None else self.state_since_ms
        value = messages.GroupMetadataValue(
            protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=since
        )
        return messages.GroupMetadataKey(group=self.id), value

    def tombstones(self) -> list[CoordinatorRecord]:
        return [(messages.GroupMetadataKey(group=self.id), None)]
