"""What members are assigned by a second broker: each broker tells it in a reply of its own moment, and once.

Where a reply of the first broker has an assignment, the member asks again until the second has given it the same. What
it is told earlier is kept until then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ..protocol import schema
from ..protocol.messages import struct_class
from ..protocol.structs import Struct
from .identities import MEMBER, TOPIC, Identities
from .latest import Latest

Plain = dict[str, object]
MEMBERS_MAX: Final = 10_000
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "ConsumerGroupHeartbeat": ("assignment",),
    "ShareGroupHeartbeat": ("assignment",),
    "StreamsGroupHeartbeat": ("active_tasks", "standby_tasks", "warmup_tasks"),
}
"""The fields of a reply that say what a member is to have; null means as before."""
Owned = list[int]
"""How many partitions of each topic, or tasks of each subtopology: which ones depends on ids and on who came first."""
Key = tuple[str, str, str]


class Heartbeat(NamedTuple):
    """A request, and A's reply to it, both in plain form."""

    api: str
    request: Plain
    reply: Plain


class Assignments:
    """What B told each member last, in ids of A."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._now: Latest[Key, dict[str, Owned]] = Latest(MEMBERS_MAX)
        self._topics: Latest[Key, set[bytes]] = Latest(MEMBERS_MAX)  # of B

    def take(self, beat: Heartbeat, now: Plain) -> None:
        """Notes what B has told in a reply."""
        fields = FIELDS.get(beat.api, ())
        told = {name: _owned(now[name]) for name in fields if now.get(name) is not None}
        self._now[_key(beat)] = {**self._now.get(_key(beat), {}), **told}
        for name in told:
            self._topics[_key(beat)] = _topics(now[name])

    def is_behind(self, beat: Heartbeat) -> bool:
        """Whether A's reply has an assignment, and B has not told the same yet."""
        told = self._told(beat)
        known = self._now.get(_key(beat), {})
        return any(known.get(name) != owned for name, owned in told.items())

    def again(self, beat: Heartbeat, now: Plain) -> Struct:
        """A heartbeat in which nothing has changed, with the epoch that the member has now."""
        loaded = schema.load(f"{beat.api}Request")
        made: Struct = struct_class(loaded, loaded.root)()
        member = now.get("member_id") or self._identities.of_b(MEMBER, {}, beat.request.get("member_id"))
        values = {
            "group_id": beat.request.get("group_id"),
            "member_id": member,
            "member_epoch": now.get("member_epoch"),
        }
        for name, value in values.items():
            setattr(made, name, value)
        return made

    def settle(self, beat: Heartbeat, now: Plain) -> tuple[Plain, Plain]:
        """Returns both replies, with assignments as they can be compared: only where A's has one."""
        told, known = self._told(beat), self._now.get(_key(beat), {})
        self._learn(beat)
        fields = FIELDS[beat.api]
        said, left = ({name: one for name, one in of.items() if name not in fields} for of in (beat.reply, now))
        for name, owned in told.items():
            said[name] = owned
            left[name] = known.get(name, [])
        return said, left

    def _learn(self, beat: Heartbeat) -> None:
        """A topic that only an assignment has named yet stands for the one that B has named."""
        ids = self._identities
        mine = [one for one in _topics(beat.reply.get("assignment")) if not ids.knows_a(TOPIC, one)]
        others = [one for one in self._topics.get(_key(beat), ()) if not ids.knows_b(TOPIC, one)]
        if len(mine) == len(others) == 1:
            ids.match(TOPIC, {}, mine[0], others[0])

    def _told(self, beat: Heartbeat) -> dict[str, Owned]:
        """What A has assigned; nothing where A has given nothing yet, because B may be further by then."""
        named = ((name, beat.reply.get(name)) for name in FIELDS.get(beat.api, ()))
        return {name: owned for name, value in named if value is not None and (owned := _owned(value))}


def _key(beat: Heartbeat) -> Key:
    request, reply = beat.request, beat.reply
    return beat.api, str(request.get("group_id")), str(request.get("member_id") or reply.get("member_id"))


def _owned(value: object) -> Owned:
    rows = value.get("topic_partitions", []) if isinstance(value, dict) else value
    found = [len(one.get("partitions", ())) for one in rows] if isinstance(rows, list) else []
    return sorted(count for count in found if count)


def _topics(value: object) -> set[bytes]:
    rows = value.get("topic_partitions", []) if isinstance(value, dict) else ()
    return {bytes.fromhex(str(one["topic_id"])) for one in rows if "topic_id" in one}
