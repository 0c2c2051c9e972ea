"""Replies to ShareFetch: who got which records, how often they were delivered, and what is in them.

B gets the request after A has answered it, and is asked for as many records as A gave; again, until it has given them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from ..comparing import batches
from ..comparing.batches import Row
from ..comparing.differences import Difference, differences
from ..comparing.identities import TOPIC, Identities
from ..comparing.shares import Plain, Shares
from ..protocol import messages as m
from ..protocol.codec import as_plain
from ..protocol.errors import MalformedMessage
from ..protocol.structs import Struct

SHARING: Final = frozenset(("ShareFetch", "ShareAcknowledge"))
"""APIs whose requests B gets in the order in which A has answered them."""
AGAIN_MAX: Final = 40
Ask = Callable[[int, m.ShareFetchRequest], Awaitable[m.ShareFetchResponse | None]]
"""Sends B another request after a pause, which is longer if it is the n-th; None where B does not answer."""
Rows = dict[tuple[bytes, int], dict[int, Row]]
"""By topic id of A and partition, records by their offsets."""


def plain(reply: Struct | None) -> Plain | None:
    """A reply in plain form, without its records; None if there is none."""
    if reply is None:
        return None
    held = [
        (one, one.records)
        for topic in getattr(reply, "responses", ())
        for one in topic.partitions
        if hasattr(one, "records")
    ]
    for one, _ in held:
        one.records = None
    found = as_object(reply)
    for one, data in held:
        one.records = data
    return found


def as_object(message: Struct | None) -> Plain:
    """A message in plain form."""
    found = as_plain(message)
    assert isinstance(found, dict)
    return found


async def compare(
    shares: Shares, sent: Struct, a: m.ShareFetchResponse, b: m.ShareFetchResponse, identities: Identities, ask: Ask
) -> list[Difference]:
    """The differences of two replies; asks B for what only A has given."""
    said, now = plain(a) or {}, plain(b) or {}
    try:
        mine, theirs = _rows(a, None), _rows(b, identities)
        shares.take(sent, now)
        for number in range(0 if b.error_code else AGAIN_MAX):
            request = shares.follow_up(sent, said)
            more = None if request is None else await ask(number, request)
            if more is None:
                break
            shares.take(sent, plain(more) or {})
            for place, rows in _rows(more, identities).items():
                theirs.setdefault(place, {}).update(rows)
    except MalformedMessage as error:
        return [Difference("responses.records", "<records>", f"<{error}>")]
    found = differences(*shares.settle(sent, said, now), identities)
    return found + _of_records(shares, sent, a, mine, theirs, identities)


def _rows(reply: m.ShareFetchResponse, identities: Identities | None) -> Rows:
    """The records of a reply. `identities`: for a reply of B. Raises MalformedMessage."""
    found: Rows = {}
    for topic in reply.responses:
        topic_id = topic.topic_id if identities is None else identities.of_a(TOPIC, {}, topic.topic_id)
        assert isinstance(topic_id, bytes)
        for one in topic.partitions:
            found[topic_id, one.partition_index] = batches.opened(one.records)
    return found


def _of_records(
    shares: Shares, sent: Struct, a: m.ShareFetchResponse, mine: Rows, theirs: Rows, identities: Identities
) -> list[Difference]:
    """Where the records that both have given differ."""
    found = []
    for topic in a.responses:
        for one in topic.partitions:
            place = topic.topic_id, one.partition_index
            for run in one.acquired_records:
                for offset in range(run.first_offset, run.last_offset + 1):
                    other = theirs.get(place, {}).get(shares.offset(sent, *place, offset))
                    row = mine[place].get(offset)
                    if row is None or other is None:
                        continue
                    where = f"responses[{topic.topic_id.hex()}].partitions[{one.partition_index}].records[{offset}]"
                    for each in differences(row, other, identities):
                        found.append(Difference(f"{where}.{each.path}", each.a, each.b))
    return found
