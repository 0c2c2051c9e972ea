"""How soon a page shows what has changed: half a second, of which the question and the drawing need a part."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import ottla.ui
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
