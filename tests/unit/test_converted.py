"""What a reply has of converted messages, which are in pieces."""

from __future__ import annotations

import pytest
from ottla.broker.emulation.converted import Converted

PIECES = [b"", b"abc", b"d", b"", b"efghi"]
WHOLE = b"abcdefghi"


@pytest.mark.parametrize("bytes_max", [0, 2, 3, 4, 9, 100])
def test_pieces_are_read_as_the_bytes_that_they_make(bytes_max: int) -> None:
    converted, expected = Converted(PIECES, bytes_max), WHOLE[:bytes_max]
    assert (len(converted), bytes(converted)) == (len(expected), expected)
    for start in range(len(expected) + 1):
        for length in range(len(WHOLE) + 2):
            assert converted.read(start, length) == expected[start : start + length]


def test_no_pieces_are_no_bytes() -> None:
    assert (len(Converted((), 9)), bytes(Converted((), 9))) == (0, b"")
