"""Says in words what a timer will call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MethodType

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
        elif isinstance(call, MethodType) and isinstance(call.__self__, Alarm):
            call = call.__self__.call
        else:
            break
    name = getattr(call, "__qualname__", type(call).__qualname__).replace(".<locals>", "").replace(".<lambda>", "")
    if isinstance(call, MethodType):
        subject = getattr(call.__self__, "name", None)
        if isinstance(subject, str):
            return f"{name} of {subject}"
    return name


def _is_event(func: Callable[..., object]) -> bool:
    return isinstance(func, MethodType) and isinstance(func.__self__, Turn | Round)
