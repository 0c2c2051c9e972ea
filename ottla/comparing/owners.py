"""Who has which partition of a consumer group, by what one broker has told its members (KIP-848).

A broker gives a partition to a member when the one that had it has said that it has given it back, or is no member any
more. So two members never have the same one for longer than it takes the elder to hear that its membership is over. An
elder that is told twice after that that all is well proves that the broker has given the partition to two: the request
before the second reply came when the younger had it already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from .latest import Latest

MEMBERS_MAX: Final = 10_000
Group = str
Partition = tuple[bytes, int]
"""A topic id and a number."""


class Twice(NamedTuple):
    """A partition that a broker has given to two members of a group. `elder`: who had it first."""

    group: Group
    topic: bytes
    partition: int
    elder: str
    younger: str


class Owners:
    """The members of one broker's consumer groups."""

    def __init__(self) -> None:
        self._groups: Latest[Group, dict[Partition, str]] = Latest(MEMBERS_MAX)  # who was told of each last
        self._held: Latest[tuple[Group, str], set[Partition]] = Latest(MEMBERS_MAX)
        self._doubted: Latest[tuple[Group, str], set[Partition]] = Latest(MEMBERS_MAX)

    def told(self, group: Group, member: str, assigned: Mapping[bytes, Sequence[int]] | None) -> list[Twice]:
        """A member was answered without an error. `assigned`: None for as before. Returns what it is proved by this to
        share with another member, each once.
        """
        owners = self._groups.get(group)
        if owners is None:
            owners = self._groups[group] = {}
        held = self._held.get((group, member), set())
        if assigned is not None:
            before, held = held, {(topic, one) for topic, found in assigned.items() for one in found}
            self._held[group, member] = held
            _release(owners, member, before - held)
            owners.update(dict.fromkeys(held - before, member))
        shared = {one for one in held if owners.get(one, member) != member}
        proved = shared & self._doubted.get((group, member), set())
        held -= proved
        self._doubted[group, member] = shared - proved
        return [Twice(group, topic, number, member, owners[topic, number]) for topic, number in sorted(proved)]

    def gone(self, group: Group, member: str) -> None:
        """A member has left, begins again, or got an error that says it is none."""
        self._doubted.pop((group, member), None)
        _release(self._groups.get(group, {}), member, self._held.pop((group, member), set()))


def _release(owners: dict[Partition, str], member: str, partitions: set[Partition]) -> None:
    for one in partitions:
        if owners.get(one) == member:
            del owners[one]
