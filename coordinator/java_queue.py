"""Java's PriorityQueue, for assignors whose ties it decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class JavaQueue(Generic[T]):
    """A binary heap that moves its elements as Java's does, so that the same one of several least comes first."""

    def __init__(self, weight: Callable[[T], float], elements: Iterable[T] = ()) -> None:
        self._weight = weight
        self._heap: list[T] = []
        for one in elements:
            self.add(one)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, one: T) -> None:
        heap, weight = self._heap, self._weight(one)
        heap.append(one)
        place = len(heap) - 1
        while place > 0:
            above = (place - 1) // 2
            if weight >= self._weight(heap[above]):
                break
            heap[place] = heap[above]
            place = above
        heap[place] = one

    def poll(self) -> T:
        """Takes out the least element. Raises IndexError: there is none."""
        heap = self._heap
        last = heap.pop()
        if not heap:
            return last
        found = heap[0]
        self._sink(last)
        return found

    def _sink(self, one: T) -> None:
        """Puts an element at the top, and lets it down to its place."""
        heap, weight, place = self._heap, self._weight(one), 0
        half = len(heap) // 2
        while place < half:
            below = 2 * place + 1
            right = below + 1
            if right < len(heap) and self._weight(heap[below]) > self._weight(heap[right]):
                below = right
            if weight <= self._weight(heap[below]):
                break
            heap[place] = heap[below]
            place = below
        heap[place] = one
