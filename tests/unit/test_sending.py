"""Replies that are sent in pieces, with records that are read meanwhile."""

from __future__ import annotations

import pytest
from ottla.broker.net.sending import SegmentTooShort, Sending
from ottla.broker.replies import Reply


class Records:
    """Records that are read later. `missing`: bytes that the file has lost since then."""

    def __init__(self, data: bytes, missing: int = 0) -> None:
        self.data = data
        self.left = data[: len(data) - missing]
        self.is_released = False

    def __len__(self) -> int:
        return len(self.data)

    def __bytes__(self) -> bytes:
        return self.data

    def read(self, start: int, length: int) -> bytes:
        return self.left[start : start + length]

    def release(self) -> None:
        assert not self.is_released
        self.is_released = True


@pytest.mark.parametrize("length", [1, 2, 3, 5, 100])
def test_pieces_are_the_whole_in_order(length: int) -> None:
    first, second, third = (Records(data) for data in (b"one", b"twotwo", b"3"))
    out = Sending(Reply(bytearray(b"<,>"), [(1, first), (1, second), (3, third)]))
    found: list[bytes] = []
    while out:
        pieces = out.read(length)
        assert all(len(one) <= max(length, 2) for one in pieces)
        found += map(bytes, pieces)
    assert b"".join(found) == b"<" + b"onetwotwo" + b",>" + b"3"
    assert first.is_released
    assert second.is_released
    assert third.is_released


def test_records_are_released_as_soon_as_they_are_read_and_the_others_at_the_end() -> None:
    first, second = Records(b"one"), Records(b"two")
    out = Sending(Reply(bytearray(b"<>"), [(1, first), (1, second)]))
    assert list(map(bytes, out.read(5))) == [b"<", b"one", b"t"]
    assert (first.is_released, second.is_released) == (True, False)
    out.release()
    assert second.is_released
    assert not out


def test_a_file_that_has_become_shorter_ends_the_reply() -> None:
    out = Sending(Reply(bytearray(b"<>"), [(1, Records(b"records", missing=3))]))
    out.read(5)
    with pytest.raises(SegmentTooShort):
        out.read(5)
