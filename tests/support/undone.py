"""Watches the coordinators of a history: an append that fails must change nothing.

While `watched` is in force, every failed append of a coordinator's shard is held against the moment before its batch:
the live state, with what is not in the log and all timers, is the same, every request that was answered meanwhile was
answered with an error, and the effects of the batch never happened.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

import pytest
from ottla.broker.shards.host import _Writer
from ottla.coordinator.group.offsets.of_group import OffsetsOfGroup
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.runtime import Runtime
from ottla.coordinator.share.shard import ShareShard
from ottla.coordinator.timeline import TimelineDict
from ottla.coordinator.transaction.shard import TransactionShard
from ottla.protocol.errors import ApiError, Errors

from .world import Answer

SHARDS = (GroupShard, ShareShard, TransactionShard)
# what is no state: the world, counts of events, assignments that are being computed and why they were not, an index
# that may name too many, and the most groups that there were, which Kafka's table keeps room for after a failed write
WORLD = {"env", "assignors", "write", "prune", "timers", "timeline", "journal", "kept_in", "_journal", "_timeline"}
METADATA = {"CreateTopicsResponse", "DeleteTopicsResponse"}  # cause writes, and do not wait for them
NOT_STATE = WORLD | {"counts", "aborted_overdue", "assigning", "assignor_failures", "groups_by_topic", "groups_most"}


def described(value: Any) -> Any:
    """A value as what can be compared: a copy of all that it holds."""
    if isinstance(value, TimelineDict | OffsetsOfGroup):
        return described(dict(value.at()))
    if isinstance(value, dict):
        return {key: described(one) for key, one in value.items()}
    if isinstance(value, Enum) or value is None or isinstance(value, int | str | bytes | frozenset):
        return value
    if isinstance(value, list | tuple | deque):
        return [described(one) for one in value]
    if isinstance(value, set):
        return frozenset(value)
    if callable(value):
        return id(value)
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())] + list(
        getattr(value, "__dict__", ())
    )
    return type(value).__name__, {name: described(getattr(value, name)) for name in names if name not in NOT_STATE}


def live_state(runtime: Runtime) -> dict[str, Any]:
    """Everything that a shard holds, and its timers' deadlines."""
    found: dict[str, Any] = described(runtime.shard)[1]
    if "offsets" in found:
        offsets = found["offsets"][1]
        offsets["by_group"] = {group: of for group, of in offsets["by_group"].items() if of}
    found["timers"] = {timer.key: timer.deadline_ms for timer in runtime.timers}
    return found


def differences(before: dict[str, Any], after: dict[str, Any], path: str = "") -> list[str]:
    """The paths at which two descriptions differ."""
    found = []
    for key in dict.fromkeys((*before, *after)):
        one, other = before.get(key, "nothing"), after.get(key, "nothing")
        while isinstance(one, tuple) and isinstance(other, tuple) and one[0] == other[0]:
            one, other = one[1], other[1]
        if isinstance(one, dict) and isinstance(other, dict):
            found += differences(one, other, f"{path}.{key}")
        elif one != other:
            found.append(f"{path}.{key}: {one!r} became {other!r}")
    return found


def has_error(reply: Any) -> bool:
    """Whether a reply has an error code anywhere."""
    if isinstance(reply, list):
        return any(has_error(one) for one in reply)
    slots = getattr(reply, "__slots__", ())
    return any(
        getattr(reply, name) != 0 if name.endswith("error_code") else has_error(getattr(reply, name)) for name in slots
    )


class Watch:
    """What was seen: appends, those of them that failed, and what was found after each of these that had not been there
    before.
    """

    def __init__(self) -> None:
        self.appends = 0
        self.failed = 0
        self.found: list[list[str]] = []
        self.plan: Callable[[int], bool] = lambda number: False  # whether the append of a number fails
        self._before: dict[Runtime, dict[str, Any]] = {}  # of the batch that is open
        self._fired: dict[Runtime, set[Any]] = {}
        self._answers: list[Answer] = []
        self._depth = 0

    def opening(self, runtime: Runtime) -> None:
        if runtime._batch is None and not self._depth:
            self._answers = (
                [] if runtime._parked else [one for one in self._answers if not one.done]
            )  # those of earlier batches may come
            self._before[runtime] = live_state(runtime)

    def reverted(self, runtime: Runtime) -> None:
        self.failed += 1
        before, after = self._before.pop(runtime, None), live_state(runtime)
        if before is None:  # its first write came in the middle of a flush
            return
        rounds = {one.key for one in runtime.timers._rounds}  # their timers are set again at the end of the event
        for key in self._fired.pop(runtime, ()):  # a timer that fired is set again, a moment later
            if key in after["timers"] or key in rounds:
                before["timers"].pop(key, None)
                after["timers"].pop(key, None)
        found = differences(before, after)
        if not isinstance(
            runtime.shard, ShareShard
        ):  # its writes go with no request, and others are answered in their turn
            replies = [one.reply for one in self._answers if one.done and one.reply is not None]
            found += [
                f"answered: {one}" for one in replies if type(one).__name__ not in METADATA and not has_error(one)
            ]
        if found:
            self.found.append(found)


@contextmanager
def watched() -> Iterator[Watch]:
    """Watches all coordinators that are there meanwhile, and fails their appends by the watch's plan."""
    watch = Watch()
    write, fire, revert, flush = Runtime.write, Runtime._fire, Runtime._revert_batch, Runtime._flush
    append, answer = _Writer.append, Answer.__init__

    def watched_write(self: Runtime, *args: Any, **more: Any) -> None:
        if not isinstance(self.shard, SHARDS):
            return write(self, *args, **more)
        watch.opening(self)
        watch._depth += 1
        try:
            write(self, *args, **more)
        finally:
            watch._depth -= 1

    def watched_fire(self: Runtime, timer: Any, now_ms: int) -> None:
        if self._batch is None:
            watch._fired.pop(self, None)
        watch._fired.setdefault(self, set()).add(timer.key)
        fire(self, timer, now_ms)

    def watched_revert(self: Runtime, *args: Any) -> None:
        revert(self, *args)
        if isinstance(self.shard, SHARDS):
            watch.reverted(self)

    def watched_flush(self: Runtime, *args: Any) -> ApiError | None:
        failed = flush(self, *args)
        if failed is None:
            watch._before.pop(self, None)
        return failed

    def watched_append(self: _Writer, batch: bytearray, now_ms: int) -> tuple[int, int]:
        watch.appends += 1
        if watch.plan(watch.appends):
            raise ApiError(Errors.NOT_ENOUGH_REPLICAS)
        return append(self, batch, now_ms)

    def watched_answer(self: Answer) -> None:
        answer(self)
        watch._answers.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runtime, "write", watched_write)
        patch.setattr(Runtime, "_fire", watched_fire)
        patch.setattr(Runtime, "_revert_batch", watched_revert)
        patch.setattr(Runtime, "_flush", watched_flush)
        patch.setattr(_Writer, "append", watched_append)
        patch.setattr(Answer, "__init__", watched_answer)
        yield watch
