"""Waiting for several results."""

from __future__ import annotations

import gc
from functools import partial

import pytest
from ottla.broker.later import Later, failed, finished
from ottla.protocol.errors import ApiError, Errors


def test_all_are_waited_for_and_each_has_its_outcome_in_order() -> None:
    some: list[Later[int]] = [Later(), Later(), finished(3)]
    together = Later.all(some)
    refused = ApiError(Errors.INVALID_REQUEST)
    some[1].fail(refused)
    assert not together.done
    some[0].finish(1)
    assert together.get() == [1, refused, 3]


def test_nothing_to_wait_for_is_finished_at_once() -> None:
    assert Later.all([]).get() == []
    assert Later.all([finished(1), finished(2)]).get() == [1, 2]


def test_a_fault_fails_the_whole_once_all_are_done() -> None:
    some: list[Later[int]] = [failed(KeyError("a fault")), Later()]
    together = Later.all(some)
    assert not together.done
    some[1].finish(1)
    with pytest.raises(KeyError):
        together.get()


def test_who_no_longer_waits_for_all_waits_for_none() -> None:
    some: list[Later[int]] = [finished(1), Later(), Later()]
    cancelled: list[int] = []
    for number, one in enumerate(some):
        one.on_cancel = partial(cancelled.append, number)
    Later.all(some).cancel()
    assert cancelled == [1, 2]


def test_it_leaves_no_cycle_of_references() -> None:
    gc.collect()
    gc.disable()
    try:
        some: list[Later[int]] = [Later(), Later()]
        together = Later.all(some)
        for one in some:
            one.finish(0)
        assert together.done
        del some, one, together
        assert gc.collect() == 0
    finally:
        gc.enable()
