"""Loggers are quiet while a command runs, and afterwards as they were."""

from __future__ import annotations

import logging
from contextlib import suppress

import pytest

from ottla.command_logs import logged_from


def test_loggers_are_as_before_also_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    one, other = (logging.getLogger(f"ottla.command-{name}") for name in ("one", "other"))
    other.setLevel(logging.DEBUG)
    with suppress(SystemExit), logged_from(logging.ERROR, one.name, other.name):
        for logger in (one, other):
            logger.warning("within")
            logger.error("failed")
        raise SystemExit
    one.warning("afterwards")
    assert [record.message for record in caplog.records] == ["failed", "failed", "afterwards"]
    assert (one.level, other.level) == (logging.NOTSET, logging.DEBUG)
