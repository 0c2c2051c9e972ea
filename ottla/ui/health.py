"""Whether the broker of a page answers, and whether the page is looked at."""

from __future__ import annotations

from nicegui import ui

from ..lab_client import LabRefused


class Health:
    """`banner`: says what is wrong. `content`: is dimmed while the broker does not answer. `chip`: a word for it."""

    def __init__(self, chip: ui.label, banner: ui.label, content: ui.element) -> None:
        self._chip, self._banner, self._content = chip, banner, content
        self._problem: str | None = None
        self._is_visible = True
        banner.set_visibility(False)

    @property
    def is_looked_at(self) -> bool:
        return self._is_visible and self._content.client.has_socket_connection

    def note_visible(self, is_visible: bool) -> None:
        self._is_visible = is_visible

    def is_there(self) -> None:
        self._say(None, "connected")

    def is_gone(self, problem: str) -> None:
        self._say(f"{problem}. What you see is what was known last; the page goes on when the broker is back.", "gone")

    def is_refused(self, error: LabRefused) -> None:
        more = " Start `ottla ui` with the variable OTTLA_LAB_TOKEN." if error.status == 401 else ""
        self._say(f"The broker refused: {error}.{more}", "refused")

    def _say(self, problem: str | None, word: str) -> None:
        if problem == self._problem and self._chip.text == word:
            return
        self._problem = problem
        self._chip.set_text(word)
        self._chip.classes(replace=f"chip chip-{word}")
        self._banner.set_visibility(problem is not None)
        self._banner.set_text(problem or "")
        self._content.classes(add="stale" if problem else "", remove="" if problem else "stale")
