"""The states of a shard, and which follows which."""

from __future__ import annotations

from enum import Enum


class State(Enum):
    INITIAL = "initial"
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.INITIAL: frozenset((State.LOADING, State.CLOSED)),
    State.LOADING: frozenset((State.ACTIVE, State.FAILED, State.CLOSED)),
    State.ACTIVE: frozenset((State.FAILED, State.CLOSED)),
    State.FAILED: frozenset((State.LOADING, State.CLOSED)),
    State.CLOSED: frozenset(),
}
