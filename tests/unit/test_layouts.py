"""Frames that are recognized by the bits that their numbers do not have."""

from __future__ import annotations

import random
import struct

import pytest
from ottla.protocol.layouts import Layout

FORMAT = struct.Struct(">hihqi3sq")
KINDS = ("i", "qi", "q")


def frame(numbers: tuple[int, int, int, int], name: bytes = b"abc", key: int = 8) -> bytes:
    first, second, third, last = numbers
    return FORMAT.pack(key, first, 5, second, third, name, last)


def layout() -> Layout:
    return Layout(frame((0, 0, 0, 0)), frame((-1, -1, -1, -1)), KINDS)


def test_the_numbers_of_a_frame_are_read() -> None:
    chance, known = random.Random(1), layout()
    for _ in range(100):
        numbers = (
            chance.randint(-(1 << 31), (1 << 31) - 1),
            chance.randint(-(1 << 63), (1 << 63) - 1),
            chance.randint(-(1 << 31), (1 << 31) - 1),
            chance.choice((0, -1, 1, (1 << 63) - 1)),
        )
        assert known.numbers_of(memoryview(frame(numbers))) == numbers


def test_a_frame_with_another_byte_has_another_layout() -> None:
    known, whole = layout(), frame((1, 2, 3, 4))
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1
        is_number = not (at < 2 or 6 <= at < 8 or 20 <= at < 23)
        assert (known.numbers_of(changed) is not None) == is_number, at
    for other in (whole[:-1], whole + b"\0", b"", frame((1, 2, 3, 4), name=b"abd")):
        assert known.numbers_of(other) is None


@pytest.mark.parametrize("kinds", [("i", "qi"), ("i", "q", "q"), (*KINDS, "i"), ("q", "qi", "i")])
def test_numbers_that_lie_elsewhere_are_a_mistake(kinds: tuple[str, ...]) -> None:
    with pytest.raises((AssertionError, StopIteration, RuntimeError)):
        Layout(frame((0, 0, 0, 0)), frame((-1, -1, -1, -1)), kinds)
