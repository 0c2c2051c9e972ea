"""What the records of one group tell, one after the other: who got which partition and when, and when a rebalance began and was over. Pure.

Classic groups write what they are once a generation is complete; that its members joined, the record's state timestamp tells. Consumer,
share and streams groups (KIP-848, KIP-932, KIP-1071) write each step: the epoch that begins a rebalance, and each member's way to it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from ...protocol import codec, schema
from ...protocol.errors import MalformedMessage

STABLE = 0
KINDS = {"ConsumerGroup": "consumer", "ShareGroup": "share", "StreamsGroup": "streams"}


@dataclass
class Change:
    """A partition's owner is another one from now on; an owner of None: nobody."""

    time_ms: int
    epoch: int
    topic: str  # a topic's name; its id, as hex, in groups of the newer kinds
    partition: int
    owner: str | None
    client_id: str | None


@dataclass
class Rebalance:
    """From when it was decided until all members had what was meant for them."""

    epoch: int
    start_ms: int
    end_ms: int
    members: int
    partitions: int
    moved: int


@dataclass
class Timeline:
    """One group. All of it is plain data, so that it can be kept between the parts of a stream."""

    kind: str = "classic"
    epoch: int = -1
    assignment_epoch: int = -1
    clients: dict[str, str] = field(default_factory=dict)
    members: dict[str, list[int]] = field(default_factory=dict)  # member epoch and state
    owners: dict[str, str] = field(default_factory=dict)  # by `topic/partition`
    began_ms: int = -1  # of the rebalance that goes on
    before: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)  # what members had that went, which begins the next rebalance

    @classmethod
    def loads(cls, text: str) -> Timeline:
        return cls(**json.loads(text))

    def dumps(self) -> str:
        return json.dumps(asdict(self))

    def feed(self, type_: str, key: Any, value: Any, time_ms: int) -> list[Change | Rebalance]:
        """What one record changes. `key` and `value` are those of the view `internal`."""
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

    def _classic(self, value: Any, time_ms: int) -> list[Change | Rebalance]:
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

    def _metadata(self, key: Any, value: Any, time_ms: int) -> list[Change | Rebalance]:
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

    def _member(self, key: Any, value: Any, time_ms: int) -> list[Change | Rebalance]:
        if value is None:
            self.clients.pop(key["member_id"], None)
            return []
        self.clients[key["member_id"]] = value["client_id"]
        self.members.setdefault(key["member_id"], [-1, STABLE])
        return []

    def _target(self, key: Any, value: Any, time_ms: int) -> list[Change | Rebalance]:
        self.assignment_epoch = -1 if value is None else value["assignment_epoch"]
        return self._settled(time_ms)

    def _current(self, key: Any, value: Any, time_ms: int) -> list[Change | Rebalance]:
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
        """A rebalance is over when every member is where the group is."""
        waiting = self.assignment_epoch != self.epoch or any(one != [self.epoch, STABLE] for one in self.members.values())
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


_STEPS = {
    "Metadata": Timeline._metadata,
    "MemberMetadata": Timeline._member,
    "TargetAssignmentMetadata": Timeline._target,
    "CurrentMemberAssignment": Timeline._current,
}


def _moved(before: dict[str, str], after: dict[str, str]) -> int:
    return sum(1 for place, owner in before.items() if after.get(place, owner) != owner)


def _places(value: Any) -> list[str]:
    """What a member holds: what is assigned, and what it has still to give away."""
    found = []
    for name in ("assigned_partitions", "partitions_pending_revocation"):
        found += [f"{one['topic_id']}/{partition}" for one in value.get(name) or () for partition in one["partitions"]]
    for name in ("active_tasks", "active_tasks_pending_revocation"):
        found += [f"{one['subtopology_id']}/{partition}" for one in value.get(name) or () for partition in one["partitions"]]
    return found


def _assigned(assignment: str) -> list[str]:
    """The partitions in what a leader assigned, where that is of the consumer protocol."""
    data = bytes.fromhex(assignment)
    if len(data) < 2:
        return []
    valid = schema.load("ConsumerProtocolAssignment").valid
    version = min(int.from_bytes(data[:2], "big"), valid.high)  # later versions begin as this one does
    try:
        found = codec.parse("ConsumerProtocolAssignment", version, data, 2)
    except MalformedMessage:
        return []
    return [f"{one.topic}/{partition}" for one in found.assigned_partitions for partition in one.partitions]
