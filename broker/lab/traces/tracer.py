"""A trace: what is recorded for its file, and the last events of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import metadata
from typing import Annotated, Final

from ....protocol.text import Json
from ...broker import Broker
from ...machine import MachineTime
from ..faults.matching import Match, Matcher
from . import writer
from .client import Wanted
from .events import Raw
from .recorder import Recorder
from .ring import Ring
from .sink import END_SECONDS, Sink

EVERYTHING: Final = Match()


@dataclass(frozen=True, kw_only=True)
class TraceAsked(Match):
    """Which requests are traced, and where to."""

    file: Annotated[
        str | None, "The name of a new file in `ottla.trace.directory`; without it only the last events are kept."
    ] = None
    raw: Annotated[
        Raw, "`frames`: with the bytes of each frame in base64, but not of those with secrets; `secrets`: of all."
    ] = "none"


class Tracer(Recorder):
    """A trace. `keys`: of the APIs that are traced, None for all. `sink`: None to keep only the last events."""

    order = 0

    def __init__(
        self,
        asked: TraceAsked,
        keys: tuple[int, ...] | None,
        matcher: Matcher,
        broker: Broker,
        machine: MachineTime,
    ) -> None:
        self.given = asked
        self.sink: Sink | None = None
        self.ring = Ring()
        self.bytes = 0
        self.filters: dict[str, Json] = {
            one.name: getattr(asked, one.name)
            for one in fields(Match)
            if getattr(asked, one.name) != getattr(EVERYTHING, one.name)
        }
        self._shows_all, self._shows_refused = not self.filters, asked.raw == "secrets"
        wanted = Wanted(
            None if keys is None else frozenset(keys),
            matcher if self.filters.keys() - {"api"} else None,
            has_raw=asked.raw != "none",
        )
        super().__init__(wanted, broker, machine)

    def about(self) -> dict[str, Json]:
        """What the first line of each file says that does not change."""
        config = self._broker.config
        return {
            "broker": f"ottla {_version()}",
            "cluster_id": self._broker.cluster_id,
            "node_id": config.node_id,
            "raw": self.given.raw,
            "filters": self.filters or None,
        }

    def head(self) -> bytes:
        """The first line of a file that would begin now."""
        return writer.head(self.about(), self._schedule.now_ms(), self._work_ns(), self._wall_ms())

    def _has_room(self) -> bool:
        return self.sink is None or self.sink.has_room()

    def _made(self, block: bytes, count: int, has_room: bool, is_large: bool) -> None:
        self.ring.add(block, count, is_large)
        if self.sink is not None and has_room:
            self.bytes += len(block)
            self.sink.put(block)

    def end(self) -> None:
        """Nothing more is recorded."""
        self.flush()
        if self.sink is not None:
            self.sink.end()

    def when_ended(self, call: Callable[[], None]) -> None:
        """Calls, after `end`, when all is written."""
        if self.sink is None:
            call()
        else:
            self.sink.ended.when_done(lambda _: call())

    def close(self) -> None:
        """Waits until all is written. Call it when the loop does not serve any more."""
        self.flush()
        if self.sink is not None:
            self.sink.close(END_SECONDS)


def _version() -> str:
    try:
        return metadata.version("ottla")
    except metadata.PackageNotFoundError:
        return "unknown"
