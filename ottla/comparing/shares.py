"""Share groups on a second broker: it has its own moment at which records are free, and counts sessions itself.

A fetch asks for as many records as the first broker's fetch got, and again until it has them, because what members do
next depends on it. Session epochs are counted here, because of the fetches in between. Acknowledgements name the
offsets that the second broker gave for those of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, TypeVar

from ..protocol import messages as m
from ..protocol.structs import Struct
from .identities import TOPIC, Identities
from .latest import Latest

Plain = dict[str, object]
STRICT: Final = 1  # the acquire mode in which a fetch gets no more records than it asks for (KIP-1206)
OFFSETS_MAX: Final = 1_000_000  # of an acknowledgement that is translated
MEMBERS_MAX: Final = 10_000
PLACES_MAX: Final = 10_000
KEPT_MAX: Final = 20_000
"""Offsets of a member in a partition: twice as many as a broker lets a group have at once. An older one that is
acknowledged names the same offset at both brokers.
"""
Member = tuple[str, str]
"""Group and member."""
Batch = TypeVar("Batch", m.ShareFetchRequest.AcknowledgementBatch, m.ShareAcknowledgeRequest.AcknowledgementBatch)
Place = tuple[str, str, str, int]
"""Group, member, topic id of A in hexadecimal digits, and partition."""


class Shares:
    """The sessions of members and the records that they have."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._epochs: Latest[Member, int] = Latest(MEMBERS_MAX)  # of the next request
        self._offsets: Latest[Place, Latest[int, int]] = Latest(PLACES_MAX)  # of A, those of B
        self._had: Latest[Place, Latest[int, int]] = Latest(PLACES_MAX)  # given by B, and not by A yet

    def prepare(self, request: Struct, said: Plain | None) -> None:
        """Changes a request, in ids of A, to what B is to get. `said`: A's reply, if it is known."""
        if not isinstance(request, m.ShareFetchRequest | m.ShareAcknowledgeRequest):
            return
        self._count(request)
        for topic in request.topics:
            for partition in topic.partitions:
                place = (*_member(request), bytes(topic.topic_id).hex(), partition.partition_index)
                known = self._offsets.get(place)
                if known:
                    batches = _translated(partition.acknowledgement_batches, known)  # type: ignore[type-var]
                    partition.acknowledgement_batches = list(batches)  # type: ignore[assignment]
        if isinstance(request, m.ShareFetchRequest) and said is not None and not request.is_renew_ack:
            _limit(request, sum(len(of) for of in _acquired(said).values()))

    def follow_up(self, request: Struct, said: Plain) -> m.ShareFetchRequest | None:
        """The next fetch of the session, for the records that are missing; None if none is."""
        assert isinstance(request, m.ShareFetchRequest)
        missing = self._missing(request, said)
        if not missing or request.share_session_epoch == -1:
            return None
        made = m.ShareFetchRequest(
            group_id=request.group_id, member_id=request.member_id, max_wait_ms=request.max_wait_ms, min_bytes=1
        )
        made.max_bytes, made.batch_size, made.share_session_epoch = request.max_bytes, request.batch_size, 1
        self._count(made)
        _limit(made, missing)
        return made

    def take(self, request: Struct, now: Plain) -> None:
        """Notes what B gave in a reply, in plain form."""
        for (topic, partition), offsets in _acquired(now, self._identities).items():
            had = _at(self._had, (*_member(request), topic, partition))
            for offset, count in offsets.items():
                had[offset] = count

    def settle(self, request: Struct, said: Plain, now: Plain) -> tuple[Plain, Plain]:
        """Returns both replies with what can be compared: errors, and how often each record was delivered. What B
        gave is at the offsets of A.
        """
        gave: dict[tuple[str, int], dict[int, int]] = {}
        for (topic, partition), offsets in _acquired(said).items():
            place = (*_member(request), topic, partition)
            had, known = _at(self._had, place), _at(self._offsets, place)
            for offset, its in zip(sorted(offsets), sorted(had), strict=False):
                if its == offset:
                    known.pop(offset, None)
                else:
                    known[offset] = its
                gave.setdefault((topic, partition), {})[offset] = had.pop(its)
        return _reduced(said, _acquired(said), None), _reduced(now, gave, self._identities)

    def offset(self, request: Struct, topic_id: bytes, partition: int, offset: int) -> int:
        """B's offset for one of A that a member has; the same if B did not give it."""
        known = self._offsets.get((*_member(request), topic_id.hex(), partition))
        return offset if known is None else known.get(offset, offset)

    def _missing(self, request: Struct, said: Plain) -> int:
        """How many records A's reply has, and B has not given yet."""
        return sum(
            max(0, len(offsets) - len(self._had.get((*_member(request), *place), ())))
            for place, offsets in _acquired(said).items()
        )

    def _count(self, request: m.ShareFetchRequest | m.ShareAcknowledgeRequest) -> None:
        member, epoch = _member(request), request.share_session_epoch
        if epoch > 0:
            request.share_session_epoch = self._epochs.get(member, epoch)
        if epoch >= 0:
            self._epochs[member] = request.share_session_epoch + 1
        else:
            self._epochs.pop(member, None)
            for known in (self._offsets, self._had):
                for place in [one for one in known if one[:2] == member]:
                    del known[place]


def _at(of: Latest[Place, Latest[int, int]], place: Place) -> Latest[int, int]:
    """The offsets of a place, which is the latest now."""
    of[place] = found = of.get(place) or Latest(KEPT_MAX)
    return found


def _member(request: Struct) -> Member:
    return str(getattr(request, "group_id", "")), str(getattr(request, "member_id", ""))


def _limit(request: m.ShareFetchRequest, records: int) -> None:
    request.max_records, request.share_acquire_mode = records, STRICT


def _rows(found: object) -> Iterator[Plain]:
    yield from (one for one in found if isinstance(one, dict)) if isinstance(found, list) else ()


def _partitions(reply: Plain, identities: Identities | None) -> Iterator[tuple[tuple[str, int], Plain]]:
    """The partitions of a reply. `identities`: for a reply of B, to find the topics of A."""
    for topic in _rows(reply.get("responses")):
        topic_id = bytes.fromhex(str(topic["topic_id"]))
        known = topic_id if identities is None else identities.of_a(TOPIC, {}, topic_id)
        for partition in _rows(topic["partitions"]):
            number = partition["partition_index"]
            assert isinstance(known, bytes)
            assert isinstance(number, int)
            yield (known.hex(), number), partition


def _acquired(reply: Plain, identities: Identities | None = None) -> dict[tuple[str, int], dict[int, int]]:
    """By topic and partition, the offsets that a reply gives to the member, each with its number of deliveries."""
    found: dict[tuple[str, int], dict[int, int]] = {}
    for place, partition in _partitions(reply, identities):
        for run in _rows(partition.get("acquired_records")):
            first, last, count = (int(str(run[name])) for name in ("first_offset", "last_offset", "delivery_count"))
            if last - first < OFFSETS_MAX:
                found.setdefault(place, {}).update(dict.fromkeys(range(first, last + 1), count))
    return found


def _reduced(reply: Plain, acquired: dict[tuple[str, int], dict[int, int]], identities: Identities | None) -> Plain:
    """A reply without records, and without partitions that have no news."""
    parts = {}
    for place, partition in _partitions(reply, identities):
        codes = {name: value for name, value in partition.items() if name.endswith(("error_code", "error_message"))}
        if any(codes.values()):
            parts[place] = {**codes, "current_leader": partition.get("current_leader")}
    for place, offsets in acquired.items():
        parts.setdefault(place, {})["deliveries"] = {str(one): offsets[one] for one in sorted(offsets)}
    whole = {name: value for name, value in reply.items() if name not in ("responses", "node_endpoints")}
    named = [{"name": topic, "partition_index": number, **one} for (topic, number), one in sorted(parts.items())]
    return {**whole, "partitions": named}


def _translated(batches: Iterable[Batch], known: dict[int, int]) -> Iterator[Batch]:
    """Acknowledgements of B's offsets; one that B did not give stays as it is."""
    for batch in batches:
        count = batch.last_offset - batch.first_offset + 1
        if not 0 < count <= OFFSETS_MAX or len(batch.acknowledge_types) not in (1, count):
            yield batch
            continue
        types = batch.acknowledge_types * (count if len(batch.acknowledge_types) == 1 else 1)
        offsets = (known.get(one, one) for one in range(batch.first_offset, batch.last_offset + 1))
        yield from _runs(type(batch), sorted(zip(offsets, types, strict=True)))


def _runs(kind: type[Batch], offsets: Iterable[tuple[int, int]]) -> Iterator[Batch]:
    """Offsets, each with its type, as batches of neighbours."""
    for _, run in groupby(enumerate(offsets), lambda one: one[1][0] - one[0]):
        rows = [one for _, one in run]
        types = [one for _, one in rows]
        yield kind(
            first_offset=rows[0][0],
            last_offset=rows[-1][0],
            acknowledge_types=types[:1] if len(set(types)) == 1 else types,
        )
