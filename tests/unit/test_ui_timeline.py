"""What the page of a group shows of a timeline, of which it asks for what is new."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from ottla.coordinator.group.events import Event, GroupEventView, shown

from ottla.ui.pages import timeline


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The numbers of the events in each table that is shown, on a page without a browser."""
    found: list[list[int]] = []
    grid = SimpleNamespace(show=lambda rows: found.append([row["number"] for row in rows]))
    for name, stub in (("ui", MagicMock()), ("chart", MagicMock()), ("Grid", lambda *_, **__: grid)):
        monkeypatch.setattr(timeline, name, stub)
    return found


def told(*numbers: int, last: int) -> Any:
    events: list[GroupEventView] = [
        shown(Event("joined", "consumer", member=f"m{one}"), one, one, one, "log") for one in numbers
    ]
    return {"group": "g", "events": events, "last": last, "left_out": False}


def test_the_events_of_a_broker_that_has_started_again_are_shown_from_the_first_on(tables: list[list[int]]) -> None:
    page: Any = timeline.Timeline(MagicMock(), "g")
    page._show(told(8, 9, last=9))
    page._show(told(last=9))
    page._show(told(last=0))
    assert page._last == 0, "all is asked for again"
    page._show(told(1, 2, last=2))
    assert (tables, page._last) == ([[9, 8], [], [2, 1]], 2)
