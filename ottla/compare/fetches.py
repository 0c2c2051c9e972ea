"""Replies to Fetch, as the records that they bring: two brokers cut the same log into other replies, at other moments.

The records that A returned are compared with what B has at the same offsets. Where B's reply did not bring them all, B
is asked for the rest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..comparing import batches
from ..comparing.batches import Row
from ..comparing.differences import Difference, differences
from ..comparing.early import AGAIN
from ..comparing.identities import TOPIC, Identities
from ..protocol import messages as m
from ..protocol.errors import CODES, MalformedMessage

RECORDS_MAX: Final = 10  # how often B is asked for records that it does not have; it waits for them itself
READY_MAX: Final = 40  # the same, while it is not ready; it answers at once then
TOLD_MAX: Final = 2  # the same, once such a difference has been told
WAIT_MS: Final = 500
BYTES_MAX: Final = 1 << 20
BEHIND: Final = AGAIN | {CODES["OFFSET_OUT_OF_RANGE"]}
"""Errors of a broker that does not have yet what the other has."""
Partition = m.FetchResponse.PartitionData
Ask = Callable[[int, m.FetchRequest], Awaitable[m.FetchResponse | None]]
"""Sends B a request of ids of A after a pause, which is longer if it is the n-th; None where B does not answer."""


class Place(NamedTuple):
    """A partition of a reply, in ids of A. `topic` is empty where the version has ids."""

    topic: str
    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        return f"responses[{self.topic or self.topic_id.hex()}].partitions[{self.partition}]"


def partitions(reply: m.FetchResponse, identities: Identities | None = None) -> Iterator[tuple[Place, Partition]]:
    """The partitions of a reply. `identities`: for a reply of B."""
    for topic in reply.responses:
        topic_id = topic.topic_id if identities is None else identities.of_a(TOPIC, {}, topic.topic_id)
        assert isinstance(topic_id, bytes)
        for partition in topic.partitions:
            yield Place(topic.topic, topic_id, partition.partition_index), partition


@dataclass(frozen=True)
class Asking:
    """How B is asked for more. `is_told`: by path, whether a difference was told. `may_be_gone`: what A returned was
    deleted at that time.
    """

    ask: Ask
    is_told: Callable[[str], bool]
    may_be_gone: bool = False


async def compare(
    request: m.FetchRequest, a: m.FetchResponse, b: m.FetchResponse, identities: Identities, asking: Asking
) -> list[Difference]:
    """The differences of two replies; asks B for what only A has returned."""
    mine, other = dict(partitions(a)), dict(partitions(b, identities))
    found = []
    for place, partition in mine.items():
        theirs = other.get(place, Partition(partition_index=place.partition))
        try:
            wanted = batches.opened(partition.records)
            if not partition.error_code and theirs.error_code in BEHIND:
                offset = _offset(request, place, partition, wanted)
                await _await_ready(_request_from(request, place, offset), place, theirs, asking)
            there = batches.opened(theirs.records)
            if wanted and not theirs.error_code:
                await _fill(request, place, wanted, there, theirs, asking)
            if wanted and not theirs.error_code:
                found += _compared(place, wanted, there, identities)
        except MalformedMessage:
            _compare_bytes(place, partition, theirs, found)
        if theirs.error_code in BEHIND and asking.may_be_gone:
            theirs.error_code = partition.error_code
        if place not in other and theirs.error_code != partition.error_code:
            found.append(Difference(f"{place}.error_code", partition.error_code, theirs.error_code))
    shared = mine.keys() & other.keys()
    _drop(a, shared, None)
    _drop(b, shared, identities)
    named = {one.current_leader.leader_id for one in other.values()}
    b.node_endpoints = [one for one in b.node_endpoints if one.node_id in named]
    return found + differences(a, b, identities)


def _offset(request: m.FetchRequest, place: Place, partition: Partition, wanted: dict[int, Row]) -> int:
    """An offset that A has: that of the request, unless its session knows it."""
    asked = (
        one.fetch_offset
        for topic in request.topics
        for one in topic.partitions
        if (topic.topic, topic.topic_id, one.partition) == place
    )
    return next(asked, min(wanted, default=partition.high_watermark))


async def _await_ready(request: m.FetchRequest, place: Place, theirs: Partition, asking: Asking) -> None:
    """Asks until B has no error of those that pass, and puts what it has then into its first reply."""
    for number in range(TOLD_MAX if asking.is_told(f"{place}.error_code") else READY_MAX):
        reply = await asking.ask(number, request)
        if reply is None:
            return
        for _, partition in partitions(reply):
            if partition.error_code not in BEHIND:
                for name in theirs.__slots__:
                    setattr(theirs, name, getattr(partition, name))
                return


def _compare_bytes(place: Place, a: Partition, b: Partition, found: list[Difference]) -> None:
    """Message sets of old versions: only as far as both replies have them."""
    mine, other = (bytes(one.records or b"") for one in (a, b))
    size = min(len(mine), len(other))
    if mine[:size] != other[:size]:
        found.append(Difference(f"{place}.records", mine, other))


def _compared(place: Place, wanted: dict[int, Row], there: dict[int, Row], identities: Identities) -> list[Difference]:
    between = {offset: row for offset, row in there.items() if min(wanted) <= offset <= max(wanted)}
    found = []
    for offset in sorted({*wanted, *between}):
        one, other = wanted.get(offset, "<absent>"), between.get(offset, "<absent>")
        for difference in differences(one, other, identities):
            path = f"{place}.records[{offset}]"
            found.append(
                Difference(f"{path}.{difference.path}" if difference.path else path, difference.a, difference.b)
            )
    return found


async def _fill(
    request: m.FetchRequest,
    place: Place,
    wanted: dict[int, Row],
    there: dict[int, Row],
    theirs: Partition,
    asking: Asking,
) -> None:
    """Adds to what B returned what it has at A's offsets."""
    for _ in range(TOLD_MAX if asking.is_told(f"{place}.records[0]") else RECORDS_MAX):
        missing = wanted.keys() - there.keys()
        if not missing:
            return
        reply = await asking.ask(0, _request_from(request, place, min(missing)))
        if reply is None:
            return
        for _, partition in partitions(reply):
            if partition.error_code:
                theirs.error_code = partition.error_code
                return
            there.update(batches.opened(partition.records))


def _request_from(request: m.FetchRequest, place: Place, offset: int) -> m.FetchRequest:
    """Asks for one partition, outside of any session."""
    partition = m.FetchRequest.FetchPartition(
        partition=place.partition, fetch_offset=offset, partition_max_bytes=BYTES_MAX
    )
    topic = m.FetchRequest.FetchTopic(topic=place.topic, topic_id=place.topic_id, partitions=[partition])
    return m.FetchRequest(
        max_wait_ms=WAIT_MS,
        min_bytes=1,
        max_bytes=BYTES_MAX,
        isolation_level=request.isolation_level,
        session_id=0,
        session_epoch=-1,
        topics=[topic],
    )


def _drop(reply: m.FetchResponse, shared: set[Place], identities: Identities | None) -> None:
    """Takes out what has been compared, and partitions without an error that only one reply has: a reply of a session
    has those with news.
    """
    kept = {place for place, one in partitions(reply, identities) if place in shared or one.error_code}
    places = iter([place for place, _ in partitions(reply, identities)])
    for topic in reply.responses:
        topic.partitions = [one for one in topic.partitions if next(places) in kept]
        for partition in topic.partitions:
            partition.records = None
    reply.responses = [topic for topic in reply.responses if topic.partitions]
