"""The committed offsets of one group, by topic and partition.

The members of a group commit the same partitions again and again. So what one request commits for some partitions of a
topic is kept as it came (`Commits`), and the next request for the same partitions replaces it as a whole, in a time
that does not depend on how many they are. What is written for some of these partitions alone takes them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast

from ...timeline import Timeline, TimelineDict
from ..format import CommitKeys, Commits, Key, Stored

TOGETHER_MIN: Final = 3  # fewer take less memory one by one
TOGETHER_MAX: Final = 64  # a step that takes the commits of several requests apart stays short


class OffsetsOfGroup:
    """What a group has committed. It can be read as of an earlier offset, and is rolled back by its timeline."""

    __slots__ = ("_each", "_together")

    def __init__(self, timeline: Timeline) -> None:
        # a commit, or the partitions together with which it was committed: then all of these have the same value
        self._each: TimelineDict[Key, Stored | CommitKeys] = TimelineDict(timeline)
        # the offset in the log of the first one, and the commits
        self._together: TimelineDict[CommitKeys, tuple[int, Commits]] = TimelineDict(timeline)

    def put_all(self, offset: int, commits: Commits) -> None:
        """Puts the commits of a request, which cannot be older than those that are there. `offset`: of the first."""
        of = commits.of
        if type(commits) is not Commits or not TOGETHER_MIN <= len(of.keys) <= TOGETHER_MAX:
            return self._put_apart(commits.stored(offset))  # those with metadata have it twice
        known = self._each.get(of.keys[0])
        if isinstance(known, CommitKeys) and (known is of or known.keys == of.keys):
            self._together[known] = (offset, commits)
            return
        together = dict.fromkeys(of.keys, of)
        self._take_apart(together)
        self._each.update(together)
        self._together[of] = (offset, commits)

    def _put_apart(self, values: Mapping[Key, Stored]) -> None:
        self._take_apart(values)
        self._each.update(values)

    def put(self, key: Key, value: Stored) -> None:
        """Puts a commit, unless what is there comes later in the log."""
        before = self._each.get(key)
        if isinstance(before, CommitKeys):
            self._take_apart((key,))
            before = self[key]
        if before is None or before[0] < value[0]:
            self._each[key] = value

    def put_each(self, values: Mapping[Key, Stored]) -> None:
        """Like `put` for each pair."""
        self._take_apart(values)
        before = cast("Mapping[Key, Stored]", self._each.at())
        self._each.update({at: one for at, one in values.items() if at not in before or one[0] > before[at][0]})

    def pop(self, key: Key) -> None:
        """Removes a commit, if it is there."""
        self._take_apart((key,))
        self._each.pop(key)

    def _take_apart(self, keys: Iterable[Key]) -> None:
        """Keeps the commits of some partitions, and all that were committed together with them, one by one."""
        if not len(self._together):
            return
        known = map(self._each.get, keys)
        for of in dict.fromkeys(one for one in known if isinstance(one, CommitKeys)):
            offset, commits = self._together[of]
            self._each.update(commits.stored(offset))
            self._together.pop(of)

    def __getitem__(self, key: Key) -> Stored:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def get(self, key: Key, as_of: int | None = None) -> Stored | None:
        """Returns the present commit of a partition, or the one at the snapshot of `as_of`."""
        found = self._each.get(key, None, as_of)
        if not isinstance(found, CommitKeys):
            return found
        written = self._together.get(found, None, as_of)
        assert written is not None
        return written[1].stored_at(written[0], found.place_of(key[1]))

    def at(self, as_of: int | None = None) -> Mapping[Key, Stored]:
        """Returns all present commits, or those at the snapshot of `as_of`, to be read before anything changes."""
        if as_of is None and not len(self._together):
            return cast("Mapping[Key, Stored]", self._each.at())
        found: dict[Key, Stored] = {}
        together: dict[CommitKeys, dict[Key, Stored]] = {}
        for key, one in self._each.items(as_of):
            if not isinstance(one, CommitKeys):
                found[key] = one
                continue
            of = together.get(one)
            if of is None:
                written = self._together.get(one, None, as_of)
                assert written is not None
                of = together[one] = written[1].stored(written[0])
            found[key] = of[key]
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._each

    def __len__(self) -> int:
        return len(self._each)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._each)
