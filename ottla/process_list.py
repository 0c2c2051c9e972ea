"""Removes secrets from the command line that the system's list of processes shows to all users of a machine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

ARGUMENTS_START, ARGUMENTS_END = 45, 46  # fields of /proc/self/stat after the name of the process


def hide(settings: Iterable[str]) -> bool:
    """Overwrites the values of `key=value` arguments with asterisks; returns whether they cannot be read any more.

    The arguments lie in this process's memory, where Linux reads what `ps` shows.
    """
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[ARGUMENTS_START]), int(fields[ARGUMENTS_END])
    except (OSError, IndexError, ValueError):
        return False
    if not 0 < start < end:
        return False
    import ctypes

    shown = ctypes.string_at(start, end - start)
    for setting in map(os.fsencode, settings):
        value = setting.index(b"=") + 1
        at = shown.find(setting)
        while at >= 0:
            ctypes.memset(start + at + value, ord("*"), len(setting) - value)
            at = shown.find(setting, at + 1)
    return True
