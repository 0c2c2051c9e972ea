"""A classic group: its five states, its members, and who waits for what.

What a rebalance does on its way is not in the log: who has joined, who has still to sync, whose reply is parked. It is soft state of
the group object, lost with the process as in Kafka. The log holds the group as of its last completed rebalance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ...protocol import codec, messages, schema
from ...protocol.errors import ApiError, Errors, MalformedMessage
from ..format import CoordinatorRecord
from ..hashing import java_order
from .consumer import PROTOCOL_TYPE

TYPE = "classic"
Answer = Callable[[Any], None]
Protocols = tuple[tuple[str, bytes], ...]


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
class ClassicMember:
    """A member, and its parked JoinGroup and SyncGroup."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    join: Answer | None = None
    sync: Answer | None = None
    is_new: bool = False

    def metadata(self, protocol: str | None) -> bytes:
        return next((data for name, data in self.protocols if name == protocol), b"")

    def has_satisfied_heartbeat(self) -> bool:
        """A new member is held to its time-out while its JoinGroup waits; any other that waits for a reply is there."""
        if self.is_new:
            return False
        return self.join is not None or self.sync is not None


@dataclass(slots=True)
class ClassicGroup:
    """One group. `protocol_type` None: a simple group, which only has offsets."""

    id: str
    state: State = State.EMPTY
    previous: State = State.DEAD
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    state_since_ms: int | None = None
    members: dict[str, ClassicMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    pending: dict[str, None] = field(default_factory=dict)
    pending_sync: dict[str, None] = field(default_factory=dict)
    subscribed: frozenset[str] | None = None
    new_member_added: bool = False
    last_join_ms: int = 0  # when somebody new came last, in monotonic time
    awaiting_join: int = 0  # members whose JoinGroup waits
    protocol_counts: Counter[str] = field(default_factory=Counter)  # how many members support each protocol

    # state

    def become(self, state: State, now_ms: int) -> None:
        if self.state not in BEFORE[state]:
            raise AssertionError(f"group {self.id} cannot go from {self.state.value} to {state.value}")
        self.previous, self.state = self.state, state
        self.state_since_ms = now_ms

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def is_simple(self) -> bool:
        """A group that only has offsets: nobody ever joined it."""
        return self.protocol_type is None and self.state is State.EMPTY and not self.pending

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == PROTOCOL_TYPE

    def can_rebalance(self) -> bool:
        return self.state in BEFORE[State.PREPARING_REBALANCE]

    # members

    def add(self, member: ClassicMember) -> None:
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        self.protocol_counts.update(name for name, _ in member.protocols)
        self.pending.pop(member.id, None)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self.protocol_counts.subtract(name for name, _ in member.protocols)
            if member.join is not None:
                self.awaiting_join -= 1
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending.pop(member_id, None)
        self.pending_sync.pop(member_id, None)

    def replace_static(self, instance_id: str, old_id: str, new_id: str) -> ClassicMember:
        """A static member came back under another id; whatever waits under the old one is fenced."""
        old = self.members.pop(old_id)
        fenced = int(Errors.FENCED_INSTANCE_ID)
        self.answer_join(old, messages.JoinGroupResponse(error_code=fenced, member_id=old_id, protocol_type=None, protocol_name=None))
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
            old.assignment,
        )
        self.members[new_id] = new
        if self.leader == old_id:
            self.leader = new_id
        self.static_members[instance_id] = new_id
        return new

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """ApiError(UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID)."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise ApiError(Errors.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise ApiError(Errors.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise ApiError(Errors.UNKNOWN_MEMBER_ID)
        return self.members[member_id]

    def update(self, member: ClassicMember, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int) -> None:
        self.protocol_counts.subtract(name for name, _ in member.protocols)
        self.protocol_counts.update(name for name, _ in protocols)
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    # who waits

    def park_join(self, member: ClassicMember, answer: Answer | None) -> None:
        """A member's JoinGroup waits for the rebalance; one of its own that waited before is forgotten."""
        self.awaiting_join += (answer is not None) - (member.join is not None)
        member.join = answer

    def answer_join(self, member: ClassicMember, response: Any) -> bool:
        """Sends a parked JoinGroup its reply; False where none waits."""
        answer = member.join
        self.park_join(member, None)
        if answer is None:
            return False
        answer(response)
        return True

    def answer_sync(self, member: ClassicMember, response: Any) -> bool:
        answer, member.sync = member.sync, None
        if answer is None:
            return False
        answer(response)
        return True

    def have_all_joined(self) -> bool:
        return not self.pending and self.awaiting_join == len(self.members)

    def rebalance_timeout_ms(self) -> int:
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Makes somebody who joined the leader where the present one did not; whether there is one then."""
        if self.leader is None:
            return False
        if self.members[self.leader].join is not None:
            return True
        for member in self.members.values():
            if member.join is not None:
                self.leader = member.id
                return True
        return False

    # protocols

    def candidates(self) -> list[str]:
        """The protocols that every member supports."""
        return [name for name, count in self.protocol_counts.items() if count == len(self.members)]

    def supports(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Whether a member of this type and with these protocols may join."""
        names = list(protocols)
        if self.state is State.EMPTY:
            return bool(protocol_type) and bool(names)
        return self.protocol_type == protocol_type and any(name in self.candidates() for name in names)

    def select_protocol(self) -> str:
        """Each member votes for the first of its protocols that all support; the most votes win."""
        candidates = self.candidates()
        votes = Counter(next(name for name, _ in m.protocols if name in candidates) for m in self.members.values())
        return max(java_order(votes), key=lambda name: votes[name])

    def next_generation(self, now_ms: int) -> None:
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.subscribed = self.compute_subscribed()
        self.become(State.COMPLETING_REBALANCE if self.members else State.EMPTY, now_ms)
        self.pending_sync.clear()

    def compute_subscribed(self) -> frozenset[str] | None:
        """The topics of all members, where the group's metadata can be understood; else None."""
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        try:
            return frozenset(t for m in self.members.values() for t in subscription(m.metadata(self.protocol)).topics)
        except MalformedMessage:
            return None

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed if self.subscribed is not None else self.uses_consumer_protocol

    # checks

    def check_commit(self, member_id: str, instance_id: str | None, generation: int, in_transaction: bool = False) -> None:
        """ApiError where a commit may not be made."""
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

    def record(self, assignments: dict[str, bytes]) -> CoordinatorRecord:
        """The group's record, with the assignments that its members are to have."""
        v = messages.GroupMetadataValue
        members = [
            v.MemberMetadata(
                member_id=m.id,
                group_instance_id=m.instance_id,
                client_id=m.client_id,
                client_host=m.client_host,
                rebalance_timeout=m.rebalance_timeout_ms,
                session_timeout=m.session_timeout_ms,
                subscription=m.metadata(self.protocol),
                assignment=assignments.get(m.id, b""),
            )
            for m in self.members.values()
        ]
        value = v(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=-1 if self.state_since_ms is None else self.state_since_ms,
            members=members,
        )
        return messages.GroupMetadataKey(group=self.id), value

    def empty_record(self) -> CoordinatorRecord:
        """The record of a group that somebody is about to be the first member of."""
        since = -1 if self.state_since_ms is None else self.state_since_ms
        value = messages.GroupMetadataValue(protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=since)
        return messages.GroupMetadataKey(group=self.id), value

    def assignments(self) -> dict[str, bytes]:
        return {m.id: m.assignment for m in self.members.values()}

    def tombstone(self) -> CoordinatorRecord:
        return messages.GroupMetadataKey(group=self.id), None


def from_record(group_id: str, value: Any) -> ClassicGroup:
    """The group as its record tells it: empty or stable."""
    group = ClassicGroup(
        group_id,
        State.STABLE if value.members else State.EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol=value.protocol,
        leader=value.leader,
        state_since_ms=None if value.current_state_timestamp == -1 else value.current_state_timestamp,
    )
    for m in value.members:
        timeout = m.session_timeout if m.rebalance_timeout == -1 else m.rebalance_timeout
        protocols = ((value.protocol, bytes(m.subscription)),)
        group.add(
            ClassicMember(
                m.member_id,
                m.group_instance_id,
                m.client_id,
                m.client_host,
                timeout,
                m.session_timeout,
                value.protocol_type,
                protocols,
                bytes(m.assignment),
            )
        )
    group.subscribed = group.compute_subscribed()
    return group


# the embedded protocol of consumers: a version, and a message of that version or of the newest known one


def _embedded(name: str, data: bytes) -> Any:
    if len(data) < 2:
        raise MalformedMessage(name, f"{len(data)} bytes")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise MalformedMessage(name, f"version {version}")
    return codec.parse(name, min(version, schema.load(name).valid.high), data, 2)


def subscription(data: bytes) -> Any:
    """A ConsumerProtocolSubscription. MalformedMessage."""
    return _embedded("ConsumerProtocolSubscription", data)


def assignment(data: bytes) -> Any:
    """A ConsumerProtocolAssignment. MalformedMessage."""
    return _embedded("ConsumerProtocolAssignment", data)


def embedded_version(data: bytes) -> int:
    """The version that a member's metadata begins with. MalformedMessage."""
    if len(data) < 2:
        raise MalformedMessage("ConsumerProtocolSubscription", f"{len(data)} bytes")
    return min(int.from_bytes(data[:2], "big", signed=True), schema.load("ConsumerProtocolAssignment").valid.high)


def build_assignment(by_topic: dict[str, list[int]], version: int) -> bytes:
    a = messages.ConsumerProtocolAssignment
    message = a(assigned_partitions=[a.TopicPartition(topic=topic, partitions=ps) for topic, ps in by_topic.items()])
    return bytes(codec.build("ConsumerProtocolAssignment", version, message, bytearray(version.to_bytes(2, "big"))))
