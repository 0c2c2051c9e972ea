"""Says in words what a timer will call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...alarm import Alarm
from ...rounds import Round
from ...turn import Turn


def name_of(call: Callable[..., object]) -> str:
    """Returns the function or method that a timer calls, with the name of its object, such as
    `ShardHost._tick of __consumer_offsets-12`.
    """
    while True:
        if isinstance(call, partial):
            call = call.args[0] if _is_event(call.func) and call.args else call.func
        elif isinstance(alarm := _object_of(call), Alarm):
            call = alarm.call
        else:
            break
    name = getattr(call, "__qualname__", type(call).__qualname__).replace(".<locals>", "").replace(".<lambda>", "")
    subject = getattr(_object_of(call), "name", None)
    return f"{name} of {subject}" if isinstance(subject, str) else name


def _object_of(call: Callable[..., object]) -> object:
    """Returns the object of a method, also of a compiled one, whose methods have another type; None for a function."""
    return getattr(call, "__self__", None)


def _is_event(func: Callable[..., object]) -> bool:
    return isinstance(_object_of(func), Turn | Round)
