"""Interprets the records of one group in order: which member owned which partition and when, and when rebalances began
and ended. Pure.

Classic groups write a record once a generation is complete; its state timestamp is the time when the members had
joined. Consumer, share and streams groups (KIP-848, KIP-932, KIP-1071) write each step: the epoch that begins a
rebalance, and each member's transition to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, NotRequired, TypedDict

from ...protocol import codec, schema
from ...protocol.errors import MalformedMessage

STABLE = {"consumer": 0, "share": 0, "streams": 1}
"""The state of a member that has its target, in the records of each kind."""
KINDS = {"ConsumerGroup": "consumer", "ShareGroup": "share", "StreamsGroup": "streams"}

# what is read of keys and values of the view `internal`


class ClassicMember(TypedDict):
    member_id: str
    client_id: str
    assignment: str


class ClassicGroup(TypedDict):
    generation: int
    current_state_timestamp: NotRequired[int]
    members: list[ClassicMember]


class Epoch(TypedDict):
    epoch: int


class AssignmentEpoch(TypedDict):
    assignment_epoch: int


class MemberKey(TypedDict):
    member_id: str


class MemberMetadata(TypedDict):
    client_id: str


class TopicPartitions(TypedDict):
    topic_id: str
    partitions: list[int]


class Tasks(TypedDict):
    subtopology_id: str
    partitions: list[int]


class MemberAssignment(TypedDict):
    member_epoch: int
    state: int
    assigned_partitions: NotRequired[list[TopicPartitions] | None]
    partitions_pending_revocation: NotRequired[list[TopicPartitions] | None]
    active_tasks: NotRequired[list[Tasks] | None]
    active_tasks_pending_revocation: NotRequired[list[Tasks] | None]


@dataclass
class Change:
    """A partition gets another owner; None means no owner."""

    time_ms: int
    epoch: int
    topic: str  # a topic name; in groups of the newer kinds the topic id as hex
    partition: int
    owner: str | None
    client_id: str | None


@dataclass
class Rebalance:
    """From the decision to rebalance until all members have their target assignment."""

    epoch: int
    start_ms: int
    end_ms: int
    members: int
    partitions: int
    moved: int


@dataclass
class Timeline:
    """The timeline of one group. All of it is plain data,
    so that it can be stored between the micro-batches of a stream.
    """

    kind: str = "classic"
    epoch: int = -1
    assignment_epoch: int = -1
    clients: dict[str, str] = field(default_factory=dict)
    members: dict[str, list[int]] = field(default_factory=dict)  # epoch and state; -1 if no record has them
    owners: dict[str, str] = field(default_factory=dict)  # by `topic/partition`
    began_ms: int = -1  # of the rebalance in progress
    before: dict[str, str] = field(default_factory=dict)
    # partitions of members that left, which begins the next rebalance
    left: dict[str, str] = field(default_factory=dict)

    @classmethod
    def loads(cls, text: str) -> Timeline:
        return cls(**json.loads(text))

    def dumps(self) -> str:
        return json.dumps(asdict(self))

    def feed(self, type_: str, key: Any, value: Any, time_ms: int) -> list[Change | Rebalance]:
        """Returns the changes by one record. `key` and `value` are those of the view `internal`."""
        if type_ == "GroupMetadata":
            return self._classic(value, time_ms)
        for prefix, kind in KINDS.items():
            if type_.startswith(prefix):
                handler = _STEPS.get(type_.removeprefix(prefix))
                if handler is not None:
                    self.kind = kind
                    return handler(self, key, value, time_ms)
        return []

    # classic groups

    def _classic(self, value: ClassicGroup | None, time_ms: int) -> list[Change | Rebalance]:
        self.kind = "classic"
        members = [] if value is None else value["members"]
        self.clients = {one["member_id"]: one["client_id"] for one in members}
        owned = {place: one["member_id"] for one in members for place in _assigned(one["assignment"])}
        generation = self.epoch if value is None else value["generation"]
        is_next = generation != self.epoch
        before, self.epoch = dict(self.owners), generation
        out = self._become(owned, time_ms)
        if is_next and value is not None and (members or before):
            stated = value.get("current_state_timestamp", -1)
            start = stated if 0 <= stated <= time_ms else time_ms
            out.append(Rebalance(generation, start, time_ms, len(members), len(owned), _moved(before, owned)))
        return out

    # groups of the newer kinds

    def _metadata(self, key: object, value: Epoch | None, time_ms: int) -> list[Change | Rebalance]:
        if value is None:
            self.members.clear()
            self.clients.clear()
            self.began_ms = -1
            return self._become({}, time_ms)
        if value["epoch"] != self.epoch:
            self.epoch = value["epoch"]
            if self.began_ms < 0:
                self.began_ms, self.before = time_ms, {**self.left, **self.owners}
        return self._settled(time_ms)

    def _member(self, key: MemberKey, value: MemberMetadata | None, time_ms: int) -> list[Change | Rebalance]:
        if value is None:
            self.clients.pop(key["member_id"], None)
            return []
        self.clients[key["member_id"]] = value["client_id"]
        self.members.setdefault(key["member_id"], [-1, -1])
        return []

    def _target(self, key: object, value: AssignmentEpoch | None, time_ms: int) -> list[Change | Rebalance]:
        self.assignment_epoch = -1 if value is None else value["assignment_epoch"]
        return self._settled(time_ms)

    def _current(self, key: MemberKey, value: MemberAssignment | None, time_ms: int) -> list[Change | Rebalance]:
        member = key["member_id"]
        owned = {place: owner for place, owner in self.owners.items() if owner != member}
        if value is None:
            self.members.pop(member, None)
            self.left |= {place: owner for place, owner in self.owners.items() if owner == member}
        else:
            self.members[member] = [value["member_epoch"], value["state"]]
            owned |= dict.fromkeys(_places(value), member)
        return [*self._become(owned, time_ms), *self._settled(time_ms)]

    def _settled(self, time_ms: int) -> list[Change | Rebalance]:
        """A rebalance is over when every member has the epoch of the group."""
        waiting = self.assignment_epoch != self.epoch or any(
            one != [self.epoch, STABLE[self.kind]] for one in self.members.values()
        )
        if self.began_ms < 0 or (self.members and waiting):
            return []
        moved = _moved(self.before, self.owners)
        done = Rebalance(self.epoch, self.began_ms, time_ms, len(self.members), len(self.owners), moved)
        self.began_ms, self.before, self.left = -1, {}, {}
        return [done]

    # both

    def _become(self, owned: dict[str, str], time_ms: int) -> list[Change | Rebalance]:
        out: list[Change | Rebalance] = []
        for place in sorted(self.owners.keys() | owned.keys()):
            owner = owned.get(place)
            if owner != self.owners.get(place):
                topic, _, partition = place.rpartition("/")
                client_id = None if owner is None else self.clients.get(owner)
                out.append(Change(time_ms, self.epoch, topic, int(partition), owner, client_id))
        self.owners = owned
        return out


_STEPS: dict[str, Callable[[Timeline, Any, Any, int], list[Change | Rebalance]]] = {
    "Metadata": Timeline._metadata,
    "MemberMetadata": Timeline._member,
    "TargetAssignmentMetadata": Timeline._target,
    "CurrentMemberAssignment": Timeline._current,
}


def _moved(before: dict[str, str], after: dict[str, str]) -> int:
    return sum(1 for place, owner in before.items() if after.get(place, owner) != owner)


def _places(value: MemberAssignment) -> list[str]:
    """Returns the partitions that a member holds: assigned ones, and those that it must still revoke."""
    held = [*(value.get("assigned_partitions") or ()), *(value.get("partitions_pending_revocation") or ())]
    tasks = [*(value.get("active_tasks") or ()), *(value.get("active_tasks_pending_revocation") or ())]
    return [
        *(f"{one['topic_id']}/{partition}" for one in held for partition in one["partitions"]),
        *(f"{one['subtopology_id']}/{partition}" for one in tasks for partition in one["partitions"]),
    ]


def _assigned(assignment: str) -> list[str]:
    """Returns the partitions in a leader's assignment, if it is of the consumer protocol."""
    data = bytes.fromhex(assignment)
    if len(data) < 2:
        return []
    valid = schema.load("ConsumerProtocolAssignment").valid
    version = min(int.from_bytes(data[:2], "big"), valid.high)  # later versions have the same prefix
    try:
        found = codec.parse("ConsumerProtocolAssignment", version, data, 2)
    except MalformedMessage:
        return []
    return [f"{one.topic}/{partition}" for one in found.assigned_partitions for partition in one.partitions]
