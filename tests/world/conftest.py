"""What holds in every test of the broker as a whole."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ottla.protocol import codec
from ottla.protocol.message import Message

from ..support.kazoo_double import KazooDouble


@pytest.fixture(autouse=True)
def emitted_forms_suffice(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The checked form of a message, which is a hundred times slower, only ever says what is wrong."""
    came_through: list[str] = []

    def noting(name: str) -> Callable[..., Any]:
        plain = getattr(Message, name)

        def noted(self: Message, *arguments: Any, **more: Any) -> Any:
            failed = sys.exc_info()[1]
            result = plain(self, *arguments, **more)
            if failed is not None and sys._getframe(1).f_code.co_filename == codec.__file__:
                came_through.append(f"{name} of {self.title}: {failed!r}")
            return result

        return noted

    for name in ("build", "build_stream", "parse_stream"):
        monkeypatch.setattr(Message, name, noting(name))
    yield
    assert not came_through


@pytest.fixture
def client() -> KazooDouble:
    """A client of a ZooKeeper in memory."""
    return KazooDouble()
