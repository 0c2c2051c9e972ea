"""Unexpected exceptions: counted, logged with a traceback, and isolated from other work.

Everything that runs on behalf of others (callbacks of a `Later`, waiters of a partition, timers, flushes) is called
through `guarded`, so that a failure affects nothing else. The count is per process, like the log.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator

logger = logging.getLogger("ottla.org.apache.kafka.server.fault.LoggingFaultHandler")
WAYS_MAX = 1000
_ways: Counter[tuple[type, tuple[tuple[str, int], ...]]] = Counter()  # occurrences by exception type and lines
_total: Counter[str] = Counter()


def count() -> int:
    """Returns the number of unexpected exceptions in this process."""
    return _total["bugs"]


def report(what: str, error: BaseException) -> None:
    """Counts a bug. Logs the traceback the first time for the same lines of code, and one line after that."""
    _total["bugs"] += 1
    way = (type(error), tuple(_lines_of(error)))
    if way not in _ways and len(_ways) >= WAYS_MAX:
        _ways.clear()
    _ways[way] += 1
    if _ways[way] == 1:
        logger.error("%s failed", what, exc_info=error)
    else:
        logger.error("%s failed: %s: %s (%d times since the start)", what, type(error).__name__, error, _ways[way])


def guarded(what: str, call: Callable[..., object], *arguments: object) -> bool:
    """Calls something whose failure must not affect the caller; returns False if it failed."""
    try:
        call(*arguments)
    except Exception as error:
        report(what, error)
        return False
    return True


def _lines_of(error: BaseException) -> Iterator[tuple[str, int]]:
    """Yields the lines of code that an exception passed through."""
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next
