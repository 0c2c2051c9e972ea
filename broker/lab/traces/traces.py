"""The traces of a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from ..faults.matching import Matcher, topic_names
from ..faults.possible import keys_of_requests
from ..lab import Lab
from ..shapes import Invalid
from .sink import Sink
from .tracer import TraceAsked, Tracer

TRACES_MAX: Final = 20
PREFIX: Final = "ottla.trace"


class Trace:
    """A trace that is written. `number`: by which it is asked for. `path`: of its file, empty without one."""

    def __init__(self, number: int, tracer: Tracer, path: str) -> None:
        self.number = number
        self.tracer = tracer
        self.path = path


class Traces:
    """All traces of a server."""

    def __init__(self, lab: Lab) -> None:
        self._server = lab.server
        self._broker = lab.broker
        self._traces: dict[int, Trace] = {}
        self._last = 0
        self._configured: int | None = None
        self._written: list[Tracer] | None = None  # that may have something to write

    def start_configured(self) -> None:
        """Starts the trace that the configuration asks for. Raises Invalid, or OSError if its file cannot be opened."""
        config = self._server.config
        asked = TraceAsked(
            api=",".join(config[f"{PREFIX}.apis"]) or None,
            client_id=config[f"{PREFIX}.client.id"] or None,
            principal=config[f"{PREFIX}.principal"] or None,
            group=config[f"{PREFIX}.group"] or None,
            topic=config[f"{PREFIX}.topic"] or None,
            raw=config[f"{PREFIX}.raw"],
        )
        self._configured = self._begin(asked, config[PREFIX]).number

    def start(self, asked: TraceAsked) -> Trace:
        """Starts a trace. Raises Invalid; OverflowError if there are too many, or if there is no directory for its file
        or another trace writes it; OSError if it cannot be opened.
        """
        if len(self._traces) >= TRACES_MAX:
            raise OverflowError(f"there are {TRACES_MAX} traces already")
        if asked.file is None:
            return self._begin(asked, "")
        directory = self._server.config[f"{PREFIX}.directory"]
        if not directory:
            raise OverflowError("the broker has no ottla.trace.directory for files of traces")
        if asked.file in ("", ".", "..") or "/" in asked.file or "\0" in asked.file:
            raise Invalid("file", "must be the name of a file, without a path")
        path = os.path.join(directory, asked.file)
        if any(one.path == path for one in self):
            raise OverflowError(f"another trace is written to {asked.file}")
        return self._begin(asked, path)

    def _begin(self, asked: TraceAsked, path: str) -> Trace:
        server, config = self._server, self._server.config
        keys = keys_of_requests(asked, server)
        matcher = Matcher(asked, topic_names(self._broker))
        tracer = Tracer(asked, keys, matcher, self._broker, server.machine)
        if path:
            max_bytes, backups = config[f"{PREFIX}.max.bytes"], config[f"{PREFIX}.backups"]
            tracer.sink = Sink(path, max_bytes, backups, tracer.about(), server.machine)
            self._note_written(tracer)
        self._last += 1
        trace = self._traces[self._last] = Trace(self._last, tracer, path)
        server.intercept(tracer)
        return trace

    def _note_written(self, tracer: Tracer) -> None:
        if self._written is None:
            self._written = []
            self._server.at_end(self._close)
        self._written = [one for one in self._written if one.sink is not None and not one.sink.ended.done]
        self._written.append(tracer)

    def _close(self) -> None:
        for tracer in self._written or ():
            tracer.close()

    def get(self, number: int) -> Trace:
        """Raises LookupError."""
        found = self._traces.get(number)
        if found is None:
            raise LookupError(f"there is no trace {number}")
        return found

    def stop(self, number: int) -> Trace:
        """Ends a trace; its file is closed when all is written. Raises LookupError."""
        trace = self.get(number)
        del self._traces[number]
        self._server.release(trace.tracer)
        trace.tracer.end()
        return trace

    def reset(self) -> None:
        """Ends the traces that were started since the start."""
        for number in list(self._traces):
            if number != self._configured:
                self.stop(number)

    def __iter__(self) -> Iterator[Trace]:
        return iter(self._traces.values())
