"""Work with Spark that is done at the same time."""

from __future__ import annotations

from threading import Barrier, Event

import pytest
from ottla.pipeline.threads import at_once


def test_results_are_in_the_order_of_the_work() -> None:
    done = Event()

    def first() -> str:
        assert done.wait(60)
        return "first"

    def second() -> str:
        done.set()
        return "second"

    assert at_once([first, second]) == ["first", "second"]


def test_two_run_at_the_same_time() -> None:
    both = Barrier(2, timeout=60)
    assert sorted(at_once([both.wait, both.wait])) == [0, 1]


def test_what_fails_first_is_raised() -> None:
    failed = Event()

    def late() -> None:
        assert failed.wait(60)
        raise ValueError("the first")

    def early() -> None:
        failed.set()
        raise ValueError("the second")

    with pytest.raises(ValueError, match="the first"):
        at_once([late, early])
