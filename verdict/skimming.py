"""Passes over the lines of clients that another share examines, without reading their JSON.

Two processes examine one trace, each a share of its clients. Each has to see all lines, but of most lines of the
other's clients it is enough to know whose they are: an examiner concludes nothing from the second and following
requests of a connection that stays with such a client. A broker writes the fields of a connection as one text, which is
the same in all lines until something of it changes. Lines that were written otherwise are read, which is slower.
"""

from __future__ import annotations

from typing import Final

from .events import Closed, Event, Opened, Request
from .examiner import Examiner

_CONNECTION: Final = b',"connection":'
_AFTER: Final = b',"exchange":'
_NAMES: Final = (b'"client_id":', b'"software":', b'"software_version":')
_API_VERSIONS: Final = b'"api":"ApiVersions"'
_START_MAX: Final = 120  # where the text begins at most
_API_MAX: Final = 60  # after it


class Skimmer:
    """Knows the texts of connections that are with clients of other shares."""

    def __init__(self, examiner: Examiner) -> None:
        self._examiner = examiner
        self._current: dict[int, bytes] = {}  # by connection: the text of the last request that was taken
        self._others: set[bytes] = set()  # of those, the ones of other shares

    def may_skip(self, line: bytes) -> bool:
        """Whether a line changes nothing."""
        start = line.find(_CONNECTION, 0, _START_MAX)
        end = line.find(_AFTER, start)
        if start < 0 or end < 0 or line[start:end] not in self._others:
            return False
        return line.find(_API_VERSIONS, end, end + _API_MAX) < 0  # which may name the client

    def took(self, line: bytes, kind: object, event: Event | None) -> None:
        """Notes a line that was taken. `kind`: what it says of itself; `event`: what it was for the rules."""
        if isinstance(event, Request):
            start = line.find(_CONNECTION, 0, _START_MAX)
            end = line.find(_AFTER, start)
            self._asked(event.connection, line[start:end] if 0 <= start < end else b"")
        elif isinstance(event, Opened | Closed):
            self._others.discard(self._current.pop(event.connection, b""))
        elif kind in ("trace", "dropped", "damaged"):  # connections may have new numbers, or be forgotten
            self._current.clear()
            self._others.clear()

    def _asked(self, connection: int, text: bytes) -> None:
        self._others.discard(self._current.get(connection, b""))
        self._current[connection] = text
        if self._examiner.is_of_others(connection) and all(name in text for name in _NAMES):
            self._others.add(text)
