"""The bytes of a connection that have come behind the request in hand."""

from __future__ import annotations

from ...protocol.frames import PREFIX

KEYS_MAX = 16  # of requests that are looked at
PRIVATE_BYTES = 4 << 10


def fresh_buffer(
    private: bytearray | None, view: memoryview, start: int, filled: int, ahead_bytes: int, is_busy: bool
) -> bytearray | None:
    """Returns a new private buffer that begins with the bytes between `start` and `filled`; None if the one that is
    there has the right size.

    A new one has the size of the frame, but at most four times that of the bytes received. A frame that has to wait
    (`is_busy`) only gets `ahead_bytes` behind it.
    """
    left = filled - start
    wanted, size = left + ahead_bytes, 0
    if not is_busy:
        size = int.from_bytes(view[start : start + PREFIX], "big") + PREFIX if left >= PREFIX else 0
        wanted = max(left + 1, min(size, max(4 * left, ahead_bytes)))
    most = max(4 * wanted, 4 * size, PRIVATE_BYTES)
    if private is not None and min(wanted, 2 * left) <= len(private) <= most:
        return None
    made = bytearray(max(wanted, PRIVATE_BYTES))
    made[:left] = view[start:filled]
    return made
