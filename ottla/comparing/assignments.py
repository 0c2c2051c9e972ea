"""What members are assigned by a second broker: each broker tells it in a reply of its own moment, and once.

Where a reply of the first broker has an assignment, the member asks again until the second has given it as much. What
it is told earlier is kept until then.

Which partitions a member gets is each broker's choice. So B is not told which ones the member owns at A: a member that
owns what A has told it owns at B what B has told it, and one that is still giving partitions back says nothing to B.
While one member waits at B, the others of its consumer group ask again too, because a broker gives a partition away
only when the member that had it says that it has given it back. So B's members are never later than A's, but may have
all that they are to get while A's are still waiting for one another: in a group of several, more is no difference. It
cannot stay so, because then another member has less. That one broker gives a partition to two members is seen without
the other (`owners.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..protocol import messages as m
from ..protocol import schema
from ..protocol.messages import struct_class
from ..protocol.structs import Struct
from .differences import Difference
from .identities import MEMBER, MEMBER_EPOCH, TOPIC, Identities, fields_of
from .latest import Latest
from .owners import Owners, Twice

Plain = dict[str, object]
MEMBERS_MAX: Final = 10_000
OTHERS_MAX: Final = 50  # members of a group that ask again while one waits
CONSUMER: Final = "ConsumerGroupHeartbeat"
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    CONSUMER: ("assignment",),
    "ShareGroupHeartbeat": ("assignment",),
    "StreamsGroupHeartbeat": ("active_tasks", "standby_tasks", "warmup_tasks"),
}
"""The fields of a reply that say what a member is to have; null means as before."""
OF_ONE: Final = "one member"
Owned = list[int]
"""How many partitions of each topic, or tasks of each subtopology: which ones depends on ids and on who came first."""
Key = tuple[str, str, str]
Group = tuple[str, str]
Partitions = dict[bytes, list[int]]
"""By topic."""


class Heartbeat(NamedTuple):
    """A request, and A's reply to it, both in plain form. `number`: what `answered` has returned for the reply; 0 if
    the replies of A are not known before those of B.
    """

    api: str
    request: Plain
    reply: Plain
    number: int = 0


@dataclass(slots=True)
class _Member:
    """What each broker has told a member last."""

    said: dict[str, Owned] = field(default_factory=dict)
    told: dict[str, Owned] = field(default_factory=dict)  # by B
    epoch: int = 0
    epoch_of_b: int = 0
    id_of_b: str = ""
    partitions: Partitions = field(default_factory=dict)  # in topic ids of A
    partitions_of_b: Partitions | None = None  # in topic ids of B; None if B has told nothing


class Assignments:
    """What members were told, by their ids of A."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._members: Latest[Key, _Member] = Latest(MEMBERS_MAX)
        self._groups: Latest[Group, dict[Key, None]] = Latest(MEMBERS_MAX)
        self._owners_of_a, self._owners_of_b = Owners(), Owners()
        self._twice: list[Difference] = []
        self._changes: Latest[Key, int] = Latest(MEMBERS_MAX)  # how often A has told a member something, or it has left

    def note(self, api: str, request: Struct | None) -> None:
        """A request came: A may have taken the member into its group, and another one's reply may come earlier."""
        if isinstance(request, m.ConsumerGroupHeartbeatRequest) and request.member_id and request.member_epoch >= 0:
            self._joined((api, request.group_id, request.member_id))

    def answered(self, api: str, request: Struct | None, reply: Struct | None) -> int:
        """A has answered a heartbeat; returns the number of what it tells."""
        asked, said = (dict(fields_of(one) or ()) for one in (request, reply))
        key = api, str(asked.get("group_id")), str(asked.get("member_id") or said.get("member_id"))
        if api == CONSUMER:
            self._told_by_a(key, asked, said)
        tells = any(said.get(name) is not None for name in FIELDS[api])
        if tells or _number(asked.get("member_epoch")) < 0:
            self._changes[key] = self._changes.get(key, 0) + 1
        return self._changes.get(key, 0)

    def _told_by_a(self, key: Key, asked: Mapping[str, object], said: Mapping[str, object]) -> None:
        _, group, member = key
        if said.get("error_code") or _number(asked.get("member_epoch")) <= 0:
            self._owners_of_a.gone(group, member)
        if not said.get("error_code") and _number(asked.get("member_epoch")) >= 0:
            assignment = said.get("assignment")
            assigned = None if assignment is None else _partitions(dict(fields_of(assignment) or ()))
            for one in self._owners_of_a.told(group, member, assigned):
                self._twice.append(Difference(_path(one), _of_both(one), OF_ONE))

    def twice(self) -> list[Difference]:
        """What a broker was found to have given to two members of a consumer group since this was asked last."""
        found, self._twice = self._twice, []
        return found

    def prepare(self, api: str, request: Struct, message: Struct) -> None:
        """Makes of the partitions that a member owns at A those that it owns at B. `message`: the same request, in ids
        of B.
        """
        if not isinstance(request, m.ConsumerGroupHeartbeatRequest):
            return
        assert isinstance(message, m.ConsumerGroupHeartbeatRequest)
        key = api, request.group_id, request.member_id
        one = self._members.get(key)
        if request.member_epoch <= 0:
            self._leave(key)
        elif request.topic_partitions and one is not None:
            owned = {row.topic_id: sorted(row.partitions) for row in request.topic_partitions if row.partitions}
            message.topic_partitions = _rows(one.partitions_of_b) if owned == one.partitions else None

    def take(self, beat: Heartbeat, now: Plain) -> None:
        """Notes what both have told; B in this reply."""
        key = _key(beat)
        if _number(beat.request.get("member_epoch")) < 0:
            return
        one = self._joined(key)
        one.said.update(_told(beat.api, beat.reply))
        one.epoch = _number(beat.reply.get("member_epoch"))
        if beat.reply.get("assignment") is not None:
            one.partitions = _partitions(beat.reply["assignment"])
        self._take_b(key, one, now)

    def take_other(self, key: Key, now: Plain) -> None:
        """Notes B's reply to one of `others`."""
        if now.get("error_code") or key not in self._members:
            self._leave(key)
        else:
            self._take_b(key, self._members[key], now)

    def _take_b(self, key: Key, one: _Member, now: Plain) -> None:
        one.told.update(_told(key[0], now))
        one.epoch_of_b = _number(now.get("member_epoch"))
        one.id_of_b = str(now.get("member_id") or self._identities.of_b(MEMBER, {}, key[2]))
        assigned = None if now.get("assignment") is None else _partitions(now["assignment"])
        if assigned is not None:
            one.partitions_of_b = assigned
        if key[0] == CONSUMER:
            for found in self._owners_of_b.told(key[1], key[2], assigned):
                self._twice.append(Difference(_path(found), OF_ONE, _of_both(found)))
        self._identities.match(MEMBER_EPOCH, {"group_id": key[1], "member_id": key[2]}, one.epoch, one.epoch_of_b)

    def is_behind(self, beat: Heartbeat) -> bool:
        """Whether A's reply has an assignment, and B has not told as much yet."""
        return any(self._is_less(beat, name, owned) for name, owned in _given(beat).items())

    def again(self, beat: Heartbeat) -> Struct:
        """A heartbeat for B in which nothing has changed, but the member has what B has told it."""
        return _request(_key(beat), self._members[_key(beat)])

    def others(self, beat: Heartbeat) -> Iterator[tuple[Key, Struct]]:
        """The same of the other members of a consumer group."""
        key = _key(beat)
        if beat.api == CONSUMER:
            for other in list(self._groups.get(key[:2]) or ())[-OTHERS_MAX:]:
                one = self._members.get(other)
                if other != key and one is not None and one.epoch_of_b > 0:
                    yield other, _request(other, one)

    def settle(self, beat: Heartbeat, now: Plain) -> tuple[Plain, Plain]:
        """Returns both replies, with assignments as they can be compared: only where A's has one."""
        key, fields = _key(beat), FIELDS[beat.api]
        if now.get("error_code"):
            self._owners_of_b.gone(*key[1:])
        self._learn(beat)
        said, left = ({name: one for name, one in of.items() if name not in fields} for of in (beat.reply, now))
        for name, owned in _given(beat).items():
            said[name] = owned
            left[name] = self._known(key, name) if self._is_less(beat, name, owned) else owned
        return said, left

    def _is_less(self, beat: Heartbeat, name: str, owned: Owned) -> bool:
        """Whether B has told a member less than A; of a member that is alone, whether it is not the same. One partition
        less is as much where another member has more. What A has told does not count any more once it has told
        something else: brokers do not compute an assignment at the same time after a member has joined.
        """
        key = _key(beat)
        known = self._known(key, name)
        if beat.number < self._changes.get(key, 0):
            return False
        others = [self._members.get(one) for one in self._groups.get(key[:2]) or () if one != key]
        if known == owned or key[0] != CONSUMER or not others:
            return known != owned
        has_more = any(one is not None and _sum(one.told, name) > _sum(one.said, name) for one in others)
        return sum(owned) - sum(known) > (1 if has_more else 0)

    def _known(self, key: Key, name: str) -> Owned:
        one = self._members.get(key)
        return [] if one is None else one.told.get(name, [])

    def _joined(self, key: Key) -> _Member:
        one = self._members.get(key) or _Member()
        self._members[key] = one
        group = self._groups.get(key[:2]) or {}
        self._groups[key[:2]] = group
        group[key] = None
        return one

    def _leave(self, key: Key) -> None:
        self._owners_of_b.gone(*key[1:])
        self._members.pop(key, None)
        group = self._groups.get(key[:2])
        if group is not None:
            group.pop(key, None)

    def _learn(self, beat: Heartbeat) -> None:
        """A topic that only an assignment has named yet stands for the one that B has named."""
        ids, one = self._identities, self._members.get(_key(beat))
        there = (one.partitions_of_b if one is not None else None) or {}
        mine = [of for of in _partitions(beat.reply.get("assignment")) if not ids.knows_a(TOPIC, of)]
        others = [of for of in there if not ids.knows_b(TOPIC, of)]
        if len(mine) == len(others) == 1:
            ids.match(TOPIC, {}, mine[0], others[0])


def _path(of: Twice) -> str:
    return f"groups[{of.group}].assigned[{of.topic.hex()}-{of.partition}].members"


def _of_both(of: Twice) -> list[str]:
    return [of.elder, of.younger]


def _key(beat: Heartbeat) -> Key:
    request, reply = beat.request, beat.reply
    return beat.api, str(request.get("group_id")), str(request.get("member_id") or reply.get("member_id"))


def _told(api: str, reply: Plain) -> dict[str, Owned]:
    return {name: _owned(reply[name]) for name in FIELDS.get(api, ()) if reply.get(name) is not None}


def _given(beat: Heartbeat) -> dict[str, Owned]:
    """What A has assigned; nothing where A has given nothing yet, because B may be further by then."""
    return {name: owned for name, owned in _told(beat.api, beat.reply).items() if owned}


def _owned(value: object) -> Owned:
    rows = value.get("topic_partitions", []) if isinstance(value, dict) else value
    found = [len(one.get("partitions", ())) for one in rows] if isinstance(rows, list) else []
    return sorted(count for count in found if count)


def _sum(of: dict[str, Owned], name: str) -> int:
    return sum(of.get(name, ()))


def _partitions(value: object) -> Partitions:
    """What a reply assigns, by topic id. `value`: of a message or in plain form, in which ids are hexadecimal."""
    rows = value.get("topic_partitions", []) if isinstance(value, dict) else ()
    found: Partitions = {}
    for row in rows:
        one = dict(fields_of(row) or ())
        topic, partitions = one.get("topic_id"), one.get("partitions")
        if topic is not None and isinstance(partitions, list) and partitions:
            found[topic if isinstance(topic, bytes) else bytes.fromhex(str(topic))] = sorted(partitions)
    return found


def _rows(of: Partitions | None) -> list[m.ConsumerGroupHeartbeatRequest.TopicPartitions] | None:
    row = m.ConsumerGroupHeartbeatRequest.TopicPartitions
    return None if of is None else [row(topic_id=topic, partitions=list(found)) for topic, found in of.items()]


def _request(key: Key, one: _Member) -> Struct:
    loaded = schema.load(f"{key[0]}Request")
    made: Struct = struct_class(loaded, loaded.root)()
    values = {"group_id": key[1], "member_id": one.id_of_b, "member_epoch": one.epoch_of_b}
    for name, value in values.items():
        setattr(made, name, value)
    if isinstance(made, m.ConsumerGroupHeartbeatRequest):
        made.topic_partitions = _rows(one.partitions_of_b)
    return made


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
