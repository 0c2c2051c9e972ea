"""How soon a page shows what has changed: half a second, of which the question and the drawing need a part."""

from __future__ import annotations

import ast
import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nicegui import ui

import ottla.ui
from ottla.lab_client import LabRefused
from ottla.ui import live
from ottla.ui.pages import metrics

MOST_S = 0.4
NEVER_CHANGES = "openapi.json"


def test_what_may_change_is_asked_for_often_enough() -> None:
    pages = Path(str(ottla.ui.__file__)).parent.rglob("*.py")
    calls = [node for path in pages for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    given = {
        ast.unparse(one.value)
        for call in calls
        for one in call.keywords
        if one.arg == "every_s" and NEVER_CHANGES not in ast.unparse(call)
    }
    assert given == {"EVERY_S"}  # that of the page of metrics, and everywhere else the one by default
    assert live.EVERY_S < metrics.EVERY_S <= MOST_S


def test_a_slow_answer_is_not_asked_for_all_the_time() -> None:
    began = time.monotonic() - 2.0
    assert live.pause_s(began) >= 2.0 * live.SHARE
    assert live.pause_s(time.monotonic()) == live.EVERY_S
    assert live.pause_s(time.monotonic(), 0.3) == 0.3


class Answers:
    """Questions that are answered in any order, and what is shown of the answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ui, "timer", lambda *_: None)
        self.asked: list[asyncio.Future[str]] = []
        self.shown: list[str] = []
        health: Any = SimpleNamespace(is_there=lambda: None)
        self.live = live.Live(health, self._fetch, self.shown.append, absent=lambda _: self.shown.append("absent"))

    async def _fetch(self) -> str:
        self.asked.append(asyncio.get_running_loop().create_future())
        return await self.asked[-1]

    async def ask(self) -> asyncio.Task[None]:
        task = asyncio.create_task(self.live.now())
        await asyncio.sleep(0)
        return task


def test_an_answer_that_a_later_one_has_overtaken_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    async def overtaken() -> list[str]:
        answers = Answers(monkeypatch)
        tasks = [await answers.ask() for _ in range(3)]
        answers.asked[1].set_result("deleted")
        await tasks[1]
        answers.asked[0].set_result("is there")
        answers.asked[2].set_exception(LabRefused(404, "no such topic"))
        await asyncio.gather(*tasks)
        return answers.shown

    assert asyncio.run(overtaken()) == ["deleted", "absent"]


def test_what_could_not_be_shown_is_shown_when_it_is_answered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing() -> list[str]:
        answers = Answers(monkeypatch)
        shown: Any = answers.live
        monkeypatch.setattr(shown, "_show", lambda found: 1 / 0)
        first = await answers.ask()
        answers.asked[0].set_result("new")
        with pytest.raises(ZeroDivisionError):
            await first
        monkeypatch.setattr(shown, "_show", answers.shown.append)
        second = await answers.ask()
        answers.asked[1].set_result("new")
        await second
        return answers.shown

    assert asyncio.run(failing()) == ["new"]
