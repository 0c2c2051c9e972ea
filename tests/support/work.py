"""How much work a call does, counted and not timed: the bytecodes that Python executes, and the comparisons that C
makes.

A loop in C (`x in list`, `list.count`, `sorted`) is one bytecode. It is seen all the same, as `counting` replaces the
strings, numbers and bytes of a message by equal ones whose comparisons count.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

COMPARISON = 10  # what one counts, in bytecodes
# Files in memory are a double, whose cost is its own, and the codec's functions have tests of their own.
NOT_COUNTED = (
    "/tests/support/memory_files.py",
    "/tests/support/work.py",
    "/tests/support/world.py",
    "/protocol/wire.py",
    "<string>",
    "<compiled",
)


class _Tally:
    count = 0


def _compared(name: str, of: type) -> Callable[[Any, Any], Any]:
    plain = getattr(of, name)

    def method(self: Any, other: Any) -> Any:
        _Tally.count += COMPARISON
        return plain(self, other)

    return method


class Text(str):
    __slots__ = ()
    __hash__ = str.__hash__
    __eq__, __ne__, __lt__ = (_compared(name, str) for name in ("__eq__", "__ne__", "__lt__"))


class Number(int):
    __slots__ = ()
    __hash__ = int.__hash__
    __eq__, __ne__, __lt__ = (_compared(name, int) for name in ("__eq__", "__ne__", "__lt__"))


class Octets(bytes):
    __slots__ = ()
    __hash__ = bytes.__hash__
    __eq__, __ne__, __lt__ = (_compared(name, bytes) for name in ("__eq__", "__ne__", "__lt__"))


_COUNTED: dict[type, Callable[[Any], Any]] = {str: Text, int: Number, bytes: Octets}


def counting(value: Any) -> Any:
    """A message, a list or a value with all that is in it, where comparisons count."""
    made = _COUNTED.get(type(value))
    if made is not None:
        return made(value)
    if isinstance(value, list):
        value[:] = [counting(one) for one in value]
    elif hasattr(value, "unknown_tags"):
        for name in value.__slots__:
            setattr(value, name, counting(getattr(value, name)))
    return value


def work_of(call: Callable[[], Any]) -> int:
    """Runs `call`; returns how many bytecodes and comparisons that took."""

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            _Tally.count += 1
        return local

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename.endswith(NOT_COUNTED) or frame.f_code.co_filename.startswith("<"):
            return None
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        return local

    before, collects = sys.gettrace(), gc.isenabled()
    _Tally.count = 0
    gc.disable()  # the ends of what earlier tests have left would count
    sys.settrace(entered)
    try:
        call()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return _Tally.count
