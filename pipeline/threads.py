"""Work with Spark that is done at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def at_once(works: Sequence[Callable[[], T]]) -> list[T]:
    """Returns what functions return, in their order. They run in as many threads as the machine has cores, at least
    two: one query is planned while another is computed. Raises what the first of them raises that fails; those that
    have not begun then are left out.
    """
    pool = ThreadPoolExecutor(max(2, os.cpu_count() or 1))
    try:
        return [one.result() for one in [pool.submit(work) for work in works]]
    finally:
        pool.shutdown(cancel_futures=True)
