"""What members are assigned in a replay: each broker tells it in a reply of its own moment, and once.

Where a reply of the trace has an assignment, the member asks again until the broker has given it the same. What it is
told earlier than in the trace is kept until then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..comparing.identities import MEMBER, TOPIC, Identities
from ..protocol import schema
from ..protocol.messages import struct_class
from ..protocol.structs import Struct
from .exchanges import Exchange

Plain = dict[str, object]
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "ConsumerGroupHeartbeat": ("assignment",),
    "ShareGroupHeartbeat": ("assignment",),
    "StreamsGroupHeartbeat": ("active_tasks", "standby_tasks", "warmup_tasks"),
}
"""The fields of a reply that say what a member is to have; null means as before."""
Owned = frozenset[tuple[str, int]]
Key = tuple[str, str, str]


class Assignments:
    """What the broker told each member last, in ids of the trace."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._now: dict[Key, dict[str, Owned]] = {}

    def take(self, exchange: Exchange, now: Plain) -> None:
        """Notes what the broker has told in a reply."""
        fields = FIELDS.get(exchange.api, ())
        told = {name: _owned(now[name], self._identities) for name in fields if now.get(name) is not None}
        self._now.setdefault(_key(exchange), {}).update(told)

    def is_behind(self, exchange: Exchange) -> bool:
        """Whether the trace's reply has an assignment, and the broker has not told the same yet."""
        told = self._told(exchange)
        known = self._now.get(_key(exchange), {})
        return any(known.get(name) != owned for name, owned in told.items())

    def again(self, exchange: Exchange, now: Plain) -> Struct:
        """A heartbeat in which nothing has changed, with the epoch that the member has now."""
        loaded = schema.load(f"{exchange.api}Request")
        made: Struct = struct_class(loaded, loaded.root)()
        member = now.get("member_id") or self._identities.of_b(MEMBER, {}, exchange.plain_request.get("member_id"))
        values = {
            "group_id": exchange.plain_request.get("group_id"),
            "member_id": member,
            "member_epoch": now.get("member_epoch"),
        }
        for name, value in values.items():
            setattr(made, name, value)
        return made

    def settle(self, exchange: Exchange, now: Plain) -> tuple[Plain, Plain]:
        """Returns both replies, with assignments as they can be compared: only where the trace has one."""
        told, known = self._told(exchange), self._now.get(_key(exchange), {})
        fields = FIELDS[exchange.api]
        said, left = (
            {name: one for name, one in of.items() if name not in fields} for of in (exchange.plain_reply, now)
        )
        for name, owned in told.items():
            said[name] = sorted(map(list, owned))
            left[name] = sorted(map(list, known.get(name, ())))
        return said, left

    def _told(self, exchange: Exchange) -> dict[str, Owned]:
        reply = exchange.plain_reply
        return {name: _owned(reply[name], None) for name in FIELDS.get(exchange.api, ()) if reply.get(name) is not None}


def _key(exchange: Exchange) -> Key:
    request, reply = exchange.plain_request, exchange.plain_reply
    return exchange.api, str(request.get("group_id")), str(request.get("member_id") or reply.get("member_id"))


def _owned(value: object, identities: Identities | None) -> Owned:
    """Partitions or tasks, in ids of the trace."""
    rows = value.get("topic_partitions", []) if isinstance(value, dict) else value
    found: set[tuple[str, int]] = set()
    for one in rows if isinstance(rows, list) else ():
        name = str(one.get("topic_id", one.get("subtopology_id")))
        if identities is not None and "topic_id" in one:
            known = identities.of_a(TOPIC, {}, bytes.fromhex(name))
            name = known.hex() if isinstance(known, bytes) else name
        found.update((name, number) for number in one.get("partitions", ()))
    return frozenset(found)
