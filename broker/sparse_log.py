"""Warnings that a peer could cause thousands of times: one line per kind and interval,
with the number of suppressed lines.
"""

from __future__ import annotations

import logging

from .clock import Schedule

logger = logging.getLogger("ottla.kafka.server.KafkaApis")
INTERVAL_NS = 10_000_000_000


class SparseLog:
    """Warnings by kind. `kind` is one of a few constants, never chosen by a peer."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._quiet: dict[str, tuple[int, int]] = {}  # until when the kind is suppressed, and how many lines were

    def warning(self, kind: str, text: str, *arguments: object) -> None:
        now = self._schedule.work_ns()
        until, left_out = self._quiet.get(kind, (0, 0))
        if now < until:
            self._quiet[kind] = until, left_out + 1
            return
        self._quiet[kind] = now + INTERVAL_NS, 0
        suffix = f" ({left_out} more of this kind since the last line)" if left_out else ""
        logger.warning(text + "%s", *arguments, suffix)
