"""The bytes of a connection that have come behind the request in hand."""

from __future__ import annotations

from ...protocol.frames import PREFIX

KEYS_MAX = 16  # of requests that are looked at


def wanted_bytes(view: memoryview, start: int, filled: int, ahead_bytes: int, is_busy: bool) -> tuple[int, int]:
    """Returns the size for a new private buffer, the frame's but at most four times the bytes received, and that of
    the frame, for which a buffer that is there is kept. A frame that has to wait (`is_busy`) only gets
    `ahead_bytes` behind it.
    """
    left = filled - start
    if is_busy:
        return left + ahead_bytes, 0
    size = int.from_bytes(view[start : start + PREFIX], "big") + PREFIX if left >= PREFIX else 0
    return max(left + 1, min(size, max(4 * left, ahead_bytes))), size
