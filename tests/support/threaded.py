"""Files that know whether a thread uses them, in a world whose threads are calls."""

from __future__ import annotations

from typing import Any

import pytest

from .memory_files import MemFiles
from .world import World


class ThreadedFiles(MemFiles):
    def __init__(self) -> None:
        super().__init__()
        self.is_thread = False


def threaded(world: World, files: ThreadedFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes in the files when the world's threads work."""
    run = world.schedule.in_thread

    def in_thread(work: Any, done: Any) -> None:
        def within() -> Any:
            files.is_thread = True
            try:
                return work()
            finally:
                files.is_thread = False

        run(within, done)

    monkeypatch.setattr(world.schedule, "in_thread", in_thread)
