"""After requests that come without a pause the loop polls its sockets for a while before it sleeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from ottla.broker.net.listening import AGAIN_NS, INTERRUPTED_NS, REST_MAX_NS, REST_MIN_NS, IdlePoll
from ottla.protocol import messages as m

from ..support.connected import ConnectedWorld

WINDOW_NS = 100_000
A_TURN_NS = 1_000


class _Loop:
    """A machine whose turns take a microsecond. `polls`: what it was asked for at the end of turns."""

    def __init__(self) -> None:
        self.time_ns = 5_000_000_000
        self.polls = 0
        self._due: list[Callable[[], None]] = []

    def work_ns(self) -> int:
        return self.time_ns

    def at_end_of_turn(self, call: Callable[[], None]) -> None:
        self._due.append(call)

    def turn(self, took_ns: int = A_TURN_NS) -> bool:
        """Returns whether the loop polls; if not it would sleep."""
        if not self._due:
            return False
        due, self._due = self._due, []
        self.time_ns += took_ns
        self.polls += len(due)
        for call in due:
            call()
        return True

    def until_it_sleeps(self) -> int:
        """Returns how many turns the loop polls."""
        polls = 0
        while self.turn():
            polls += 1
            assert polls < 10_000
        return polls


class _Asking:
    """A connection that asks."""

    def __init__(self, loop: _Loop, poll: IdlePoll) -> None:
        self._loop, self._poll = loop, poll
        self._served_ns = 0

    def ask(self, takes_ns: int = 30_000) -> None:
        asked_ns = self._poll.now_ns()
        self._loop.time_ns += takes_ns
        self._served_ns = self._poll.served(self._served_ns, asked_ns)


def _asking(window_us: int = WINDOW_NS // 1000) -> tuple[_Loop, _Asking]:
    loop = _Loop()
    return loop, _Asking(loop, IdlePoll(cast(Any, loop), window_us))


def test_a_request_that_comes_alone_lets_the_loop_sleep() -> None:
    loop, one = _asking()
    for _ in range(3):
        one.ask()
        assert loop.until_it_sleeps() == 0
        loop.time_ns += WINDOW_NS


@pytest.mark.parametrize("window_us", [100, 2000])
def test_after_a_second_request_within_the_window_the_loop_polls_for_as_long_and_then_sleeps(window_us: int) -> None:
    loop, one = _asking(window_us)
    one.ask()
    loop.time_ns += window_us * 1000 - 1
    one.ask()
    assert loop.until_it_sleeps() == window_us
    assert loop.until_it_sleeps() == 0


def test_requests_that_come_while_it_polls_let_it_poll_on_in_one_chain_of_turns() -> None:
    loop, one = _asking()
    one.ask()
    for _ in range(10):
        one.ask()
        assert all(loop.turn() for _ in range(60))
    assert loop.until_it_sleeps() == WINDOW_NS // A_TURN_NS - 60
    assert loop.polls == 10 * 60 + 40


def test_connections_that_take_turns_have_gaps_of_their_own() -> None:
    loop = _Loop()
    poll = IdlePoll(cast(Any, loop), WINDOW_NS // 1000)
    one, other = _Asking(loop, poll), _Asking(loop, poll)
    for _ in range(3):
        one.ask()
        loop.time_ns += WINDOW_NS // 2
        other.ask()
        loop.time_ns += WINDOW_NS // 2
        assert loop.until_it_sleeps() == 0


def _interrupted(loop: _Loop, one: _Asking) -> None:
    """The loop polls, and is not served for so long."""
    one.ask()
    one.ask()
    assert loop.turn()
    assert loop.turn(INTERRUPTED_NS + 1)
    assert not loop.turn()


def _rest(loop: _Loop, one: _Asking) -> int:
    """Returns for how long requests let the loop sleep at once."""
    began_ns = loop.time_ns
    while not loop.turn():
        one.ask()
    assert loop.until_it_sleeps() == WINDOW_NS // A_TURN_NS - 1
    return loop.time_ns - began_ns


def test_while_others_want_the_processor_the_loop_sleeps_at_once() -> None:
    """For longer each time that it is interrupted again soon."""
    loop, one = _asking()
    rests = []
    for _ in range(12):
        _interrupted(loop, one)
        rests.append(_rest(loop, one))
    expected = [min(REST_MIN_NS << number, REST_MAX_NS) for number in range(12)]
    assert all(wanted <= rest < wanted + 2 * WINDOW_NS for rest, wanted in zip(rests, expected, strict=True))


def test_an_interruption_now_and_then_is_a_short_rest() -> None:
    loop, one = _asking()
    for _ in range(3):
        _interrupted(loop, one)
        assert REST_MIN_NS <= _rest(loop, one) < REST_MIN_NS + 2 * WINDOW_NS
        loop.time_ns += AGAIN_NS


def test_a_request_that_takes_long_is_no_interruption() -> None:
    loop, one = _asking()
    one.ask()
    one.ask()
    assert loop.turn()
    one.ask(INTERRUPTED_NS + 1)
    assert loop.until_it_sleeps() == WINDOW_NS // A_TURN_NS


def test_a_window_of_0_lets_the_loop_never_poll() -> None:
    loop, one = _asking(0)
    one.ask()
    one.ask()
    assert loop.until_it_sleeps() == 0


@pytest.mark.parametrize(("pause_ns", "polls"), [(WINDOW_NS - 1, 100), (WINDOW_NS, 0)])
def test_a_connection_tells_when_it_was_asked_and_served(pause_ns: int, polls: int) -> None:
    world, loop = ConnectedWorld(), _Loop()
    world.poll = IdlePoll(cast(Any, loop), WINDOW_NS // 1000)
    client = world.connect()
    client.ask("ApiVersions", 0, m.ApiVersionsRequest())
    loop.time_ns += pause_ns
    client.ask("ApiVersions", 0, m.ApiVersionsRequest())
    assert loop.until_it_sleeps() == polls
