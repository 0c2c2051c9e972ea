"""Long lists in pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest
from typing import Annotated

from .shapes import Range, Size

PAGE_MAX = 10_000
SORTED_SHARE = 20


@dataclass(frozen=True)
class Page:
    """A part of a list that is sorted by name."""

    limit: Annotated[int | None, "How many elements at most; all without it.", Range(1, PAGE_MAX)] = None
    after: Annotated[str | None, "Only what comes after this name: `next` of the page before.", Size(1)] = None

    def of(self, names: Iterable[str]) -> tuple[list[str], str | None]:
        """Returns the names of the page, sorted, and what `after` is for the next page; None for the last one."""
        after = self.after
        left = list(names) if after is None else [name for name in names if name > after]
        if self.limit is None:
            return sorted(left), None
        # a heap is faster than to sort where few of many are wanted
        found = nsmallest(self.limit + 1, left) if self.limit < len(left) // SORTED_SHARE else sorted(left)
        return found[: self.limit], found[self.limit - 1] if len(found) > self.limit else None
