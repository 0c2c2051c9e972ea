"""What unit tests of storage begin with."""

from __future__ import annotations

import pytest

from ..support.memory_files import MemFiles


@pytest.fixture
def files() -> MemFiles:
    made = MemFiles()
    made.make_directory("/d")
    made.sync_directory("/")
    return made
