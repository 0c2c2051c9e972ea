"""Replies that wait for the high watermark, and calls into the code of others,
whose exceptions must not reach the runtime.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator

from ..protocol.errors import ApiError
from .batch import Parked, Reply


class Bugs:
    """Counts exceptions that nothing expected, and reports each with the name of what failed."""

    def __init__(self) -> None:
        self.count = 0
        self.on_bug: Callable[[str, Exception], None] | None = None

    def note(self, name: str, bug: Exception) -> None:
        self.count += 1
        if self.on_bug is not None:
            self.on_bug(name, bug)

    def run(self, call: Callable[[], None]) -> None:
        """Runs an effect. An exception is a bug of whoever asked for the effect."""
        try:
            call()
        except Exception as bug:
            self.note("effect", bug)

    def answer(self, on_done: Reply, reply: object, error: ApiError | None) -> None:
        """Answers a write. An exception is a bug of whoever waits for the answer."""
        try:
            on_done(reply, error)
        except Exception as bug:
            self.note("reply", bug)


class ParkedReplies:
    """Writes whose records are in the log and are not committed yet, in the order of the log.

    A write that is answered before its turn (its deadline has passed, or its client is gone) stays in the queue until
    such writes are more than half of the queue. So the queue is in proportion to what waits.
    """

    def __init__(self, bugs: Bugs) -> None:
        self._bugs = bugs
        self._queue: deque[Parked] = deque()
        self._by_deadline: list[tuple[int, int, Parked]] = []  # a heap
        self._count = 0  # of all writes that had a deadline: orders those with the same deadline
        self._answered = 0  # how many writes in the queue were answered before their turn

    def __len__(self) -> int:
        """How many writes are held, answered ones too."""
        return len(self._queue)

    def waiting(self) -> Iterator[Parked]:
        """The writes that have no answer yet."""
        return (one for one in self._queue if one.on_done is not None)

    def park(self, writes: list[Parked], offset: int) -> None:
        """Their replies wait until the high watermark is at `offset`."""
        for one in writes:
            one.offset = offset
            if one.deadline_ms is not None:
                self._count += 1
                heapq.heappush(self._by_deadline, (one.deadline_ms, self._count, one))
        self._queue += writes

    def release(self, high_watermark: int) -> None:
        """Sends the replies that wait for the high watermark or an earlier offset, in order."""
        queue = self._queue
        while queue and queue[0].offset <= high_watermark:
            parked = queue.popleft()
            if parked.on_done is None:
                self._answered -= 1
            else:
                self.finish(parked, None)
        self._drop_answered()

    def take_all(self) -> list[Parked]:
        """Removes and returns all."""
        taken = list(self._queue)
        self._queue.clear()
        self._by_deadline.clear()
        self._answered = 0
        return taken

    def finish(self, parked: Parked, error: ApiError | None) -> None:
        """Answers a write, unless it has its answer."""
        on_done, parked.on_done = parked.on_done, None
        if on_done is None:
            return
        on_committed, parked.on_committed = parked.on_committed, None
        if on_committed is not None:
            self._bugs.run(lambda: on_committed(error))
        self._bugs.answer(on_done, None if error else parked.reply, error)

    def time_out(self, late: list[Parked], error: ApiError) -> None:
        """Answers writes that `late` returned with an error."""
        for parked in late:
            if parked.on_done is not None:
                self._answered += 1
                self.finish(parked, error)
        self._drop_answered()

    def forget(self, parked: Parked) -> None:
        """Nothing waits for the answer of a write any more."""
        if parked.on_done is not None:
            parked.on_done = parked.on_committed = None
            self._answered += 1
            self._drop_answered()

    def _drop_answered(self) -> None:
        if not self._queue:
            self._by_deadline.clear()
            self._answered = 0
        elif self._answered * 2 > len(self._queue):
            self._queue = deque(self.waiting())
            self._answered = 0

    def late(self, now_ms: int) -> list[Parked]:
        """Returns the writes whose deadline has passed, each write once."""
        heap, found = self._by_deadline, []
        while heap and heap[0][0] <= now_ms:
            parked = heapq.heappop(heap)[2]
            if parked.on_done is not None:
                found.append(parked)
        return found

    def next_deadline_ms(self) -> int | None:
        """Returns the earliest deadline of a write that has no answer yet."""
        heap = self._by_deadline
        while heap and heap[0][2].on_done is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def since_ms(self) -> list[int]:
        """Returns when the writes were made that have no answer yet."""
        return [one.since_ms for one in self.waiting()]
