"""What the libraries of a command log while it runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logged_from(level: int, *names: str) -> Iterator[None]:
    """Lets loggers write from a level on, such as `logging.ERROR`: the command itself says the rest. Whoever called the
    command has them back as they were.
    """
    loggers = [logging.getLogger(name) for name in names]
    before = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(level)
    try:
        yield
    finally:
        for one, was in zip(loggers, before, strict=True):
            one.setLevel(was)
