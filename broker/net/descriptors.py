"""File descriptors: how many the process may have, and what they are for."""

from __future__ import annotations

import contextlib
import resource

RESERVED = 16
OTHERS = 32  # of the loop, listeners, locks, logs and threads
POOLED_FILES_MAX = 4096


def raise_limit() -> None:
    """Raises the limit of open files to the system's maximum."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else 1 << 20
    with contextlib.suppress(ValueError, OSError):  # where the system refuses it, the limit stays
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def open_files_max() -> int:
    """Returns how many files the process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def shared_out(limit: int) -> tuple[int, int]:
    """Returns how many of `limit` descriptors closed segments may keep open, and how many connections there may be."""
    pooled = max(8, min(POOLED_FILES_MAX, limit // 2))
    return pooled, max(8, limit - pooled - RESERVED - OTHERS)


def connections_per_address(configured: int, connections_max: int) -> int:
    """Returns how many connections one address may have; by default three quarters of all, so that others find room."""
    return configured if configured >= 0 else max(8, connections_max * 3 // 4)
