"""What holds in every test of the broker as a whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from ottla.protocol import codec
from ottla.protocol.message import Message

_came_through: list[str] = []


def _note_success_after_failure(name: str) -> None:
    plain = getattr(Message, name)

    def noted(self: Message, *arguments: Any, **more: Any) -> Any:
        failed = sys.exc_info()[1]
        result = plain(self, *arguments, **more)
        if failed is not None and sys._getframe(1).f_code.co_filename == codec.__file__:
            _came_through.append(f"{name} of {self.title}: {failed!r}")
        return result

    setattr(Message, name, noted)


for _name in ("build", "build_stream", "parse_stream"):
    _note_success_after_failure(_name)


@pytest.fixture(autouse=True)
def emitted_forms_suffice() -> Iterator[None]:
    """The checked form of a message, which is a hundred times slower, only ever says what is wrong."""
    _came_through.clear()
    yield
    assert not _came_through
