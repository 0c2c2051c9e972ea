"""Producer ids: each node gets blocks of them from the controller, and asks for the next block before the current one
is used up. A node that does not reach the controller goes on with its block.
"""

from __future__ import annotations

import contextlib

from ...protocol.errors import ApiError, Errors
from ..turn import Turn
from .controller import MetadataController

PREFETCH_AT = 0.9  # of a block


class ProducerIds:
    """Assigns producer ids, each of them once per cluster."""

    def __init__(self, turn: Turn, metadata: MetadataController, node_id: int) -> None:
        self.turn = turn
        self.metadata = metadata
        self.node_id = node_id
        self._next = self._end = 0
        self._ahead: tuple[int, int] | None = None  # the next block
        self._prefetch_from = 0
        self._fetching = False

    def take(self) -> int:
        """Returns a producer id. Raises ApiError(COORDINATOR_LOAD_IN_PROGRESS) while there is none."""
        if self._next >= self._prefetch_from and self._ahead is None and not self._fetching:
            self.turn.background(self._fetch_ahead())
        if self._next >= self._end:
            if self._ahead is None:
                raise ApiError(Errors.COORDINATOR_LOAD_IN_PROGRESS)
            self._begin(*self._ahead)
        found = self._next
        self._next += 1
        return found

    async def ensure(self) -> None:
        """Returns when `take` has an id. Raises ApiError: the controller has none, or there is no controller."""
        while self._next >= self._end and self._ahead is None:
            if self.metadata.quorum.missing is not None or not self.metadata.is_reached:
                raise ApiError(Errors.COORDINATOR_LOAD_IN_PROGRESS)
            if self._fetching:
                await self.turn.pause(1)
            else:
                await self._fetch()

    def _begin(self, first: int, end: int) -> None:
        self._ahead = None
        self._next, self._end = first, end
        self._prefetch_from = first + int((end - first) * PREFETCH_AT)

    async def _fetch_ahead(self) -> None:
        with contextlib.suppress(ApiError):  # the controller is stopping; the next `take` asks again
            await self._fetch()

    async def _fetch(self) -> None:
        metadata = self.metadata
        self._fetching = True
        try:
            known = metadata.image.brokers.get(self.node_id)
            node_id, epoch = self.node_id, -1 if known is None else known.epoch
            first, count = await metadata.submit(lambda: metadata.controller.allocate_producer_ids(node_id, epoch))
            self._ahead = first, first + count
        finally:
            self._fetching = False
