"""Short ways to look at a page in a browser and to use it. Everything is waited for; nothing sleeps,
but for the time in which a browser is away.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from .poll import until

NOT_YET = (
    NoSuchElementException,
    StaleElementReferenceException,
    ElementNotInteractableException,
    ElementClickInterceptedException,
)
EVERY_S = 0.05
WITHIN_S = 60.0
USED = {"button", "link", "textbox", "combobox", "switch", "checkbox", "spinbutton", "searchbox"}


class Driver:
    """A browser. `url`: of the page's process."""

    def __init__(self, chrome: Chrome, url: str) -> None:
        self.chrome = chrome
        self.url = url

    def value(self, expression: str) -> object:
        """The value of an expression in the page."""
        found: object = self.chrome.execute_script(f"return {expression}")
        return found

    def open(self, path: str) -> None:
        self.chrome.get(self.url.rstrip("/") + path)

    def _until(self, condition: Callable[[], Any], what: str) -> Any:
        why: str | None = None

        def tried() -> Any:
            nonlocal why
            try:
                return condition()
            except NOT_YET as error:
                why = error.msg
                return None

        try:
            return until(tried, what, WITHIN_S, EVERY_S)
        except AssertionError as error:
            error.add_note(f"the driver said last: {why}")
            raise

    # what is seen

    def finds(self, selector: str) -> WebElement:
        found: WebElement = self._until(lambda: self.chrome.find_element(By.CSS_SELECTOR, selector), selector)
        return found

    def count(self, selector: str) -> int:
        return len(self.chrome.find_elements(By.CSS_SELECTOR, selector))

    def _text(self, selector: str) -> str:
        return str(
            self.chrome.execute_script(
                "return [...document.querySelectorAll(arguments[0])].map(one => one.innerText).join('\\n')", selector
            )
        )

    def sees(self, text: str, within: str = "body") -> None:
        """Waits until the text is there, in any case."""
        self._until(lambda: text.lower() in self._text(within).lower(), f"{text!r} in {within}")

    def lacks(self, within: str, text: str) -> None:
        """Waits until the text is not there."""
        self._until(lambda: text not in self._text(within), f"no {text!r} in {within}")

    def hides(self, selector: str) -> None:
        self._until(
            lambda: not self.chrome.find_element(By.CSS_SELECTOR, selector).is_displayed(), f"{selector} is hidden"
        )

    def _row(self, grid: str, first: str) -> list[str] | None:
        """The cells of the row of a table whose first cell has a text."""
        rows = self.chrome.execute_script(
            'return [...document.querySelectorAll(`section[aria-label="${arguments[0]}"] tbody tr`)]'
            ".map(row => [...row.cells].map(cell => cell.innerText))",
            grid,
        )
        return next((row for row in rows if row and row[0] == first), None)

    def cell(self, grid: str, first: str, column: int, text: str) -> None:
        """Waits until a cell has a text. `first`: what its row begins with; `column`: from 1."""

        def is_there() -> bool:
            row = self._row(grid, first)
            return row is not None and row[column - 1] == text

        self._until(is_there, f"{text!r} in column {column} of {first!r} in {grid}; it has {self._row(grid, first)}")

    def settles(self) -> None:
        """Waits until what was said of the last action is gone, and fonts are there."""
        self._until(lambda: self.count(".q-notification") == 0, "no notification is shown")
        self._until(lambda: self.value("document.fonts.status") == "loaded", "fonts are there")

    def holds(self, selector: str, value: str) -> None:
        """Waits until a field has a value."""
        self._until(
            lambda: self.chrome.find_element(By.CSS_SELECTOR, selector).get_property("value") == value,
            f"{value!r} in {selector}",
        )

    def has_focus(self, selector: str) -> None:
        self._until(
            lambda: self.chrome.switch_to.active_element == self.chrome.find_element(By.CSS_SELECTOR, selector),
            f"the focus is on {selector}",
        )

    # what is done

    def _click(self, find: Callable[[], WebElement], what: str) -> None:
        def clicked() -> bool:
            find().click()
            return True

        self._until(clicked, what)

    def click(self, selector: str) -> None:
        self._click(lambda: self.chrome.find_element(By.CSS_SELECTOR, selector), f"a click on {selector}")

    def act(self, name: str) -> None:
        """Presses the button with an accessible name."""
        self.click(f'button[aria-label="{name}"]')

    def confirm(self, button: str = "[data-yes]") -> None:
        """Says yes to the dialog until it is gone: one that is just opening loses a click."""
        self.finds(button)

        def is_gone() -> bool:
            shown = self.chrome.find_elements(By.CSS_SELECTOR, button)
            for one in reversed(shown):  # a second one lies over the first
                one.click()
            return not shown

        self._until(is_gone, "the dialog is gone")

    def click_cell(self, grid: str, text: str) -> None:
        self._click(lambda: self._within(grid, "button.cell", text), f"a click on {text} in {grid}")

    def follow(self, grid: str, text: str) -> None:
        self._click(lambda: self._within(grid, "a", text), f"a click on {text} in {grid}")

    def _within(self, grid: str, selector: str, text: str) -> WebElement:
        found = self.chrome.find_elements(By.CSS_SELECTOR, f'section[aria-label="{grid}"] {selector}')
        for one in found:
            if one.text == text:
                return one
        raise NoSuchElementException(text)

    def types(self, selector: str, text: str) -> None:
        """Puts a text into a field in place of what is there."""

        def typed() -> bool:
            field = self.chrome.find_element(By.CSS_SELECTOR, selector)
            field.clear()
            field.send_keys(text)
            return field.get_property("value") == text

        self._until(typed, f"{text!r} in {selector}")

    def choose(self, name: str, option: str) -> None:
        """Chooses from a list with an accessible name."""
        self._click(
            lambda: self.chrome.find_element(
                By.XPATH, f'//*[@aria-label="{name}"]/ancestor-or-self::*[contains(@class,"q-field")][last()]'
            ),
            f"a click on {name}",
        )

        def chosen() -> bool:
            for one in self.chrome.find_elements(By.CSS_SELECTOR, ".q-menu .q-item"):
                if one.text == option:
                    one.click()
                    return True
            return False

        self._until(chosen, f"{option} in {name}")

    def is_away(self, seconds: float) -> None:
        """The page's process does not hear of the browser for a time."""
        self.chrome.execute_script("window.socket.disconnect()")
        time.sleep(seconds)
        self.chrome.execute_script("window.socket.connect()")

    def keys(self, text: str) -> None:
        self.chrome.switch_to.active_element.send_keys(text)

    def escape(self) -> None:
        self.keys(Keys.ESCAPE)

    # what the browser knows

    def complaints(self) -> list[str]:
        """What the browser has complained of since it was asked last."""
        return [one["message"] for one in self.chrome.get_log("browser") if one["level"] in ("SEVERE", "WARNING")]  # type: ignore[no-untyped-call]

    def asked_elsewhere(self) -> set[str]:
        """What it has asked of others than the page's process since it was asked last."""
        messages = (json.loads(one["message"])["message"] for one in self.chrome.get_log("performance"))  # type: ignore[no-untyped-call]
        urls = {one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"}
        return {url for url in urls if url.startswith("http") and not url.startswith(self.url)}

    def nameless(self) -> list[str]:
        """What can be used and has no accessible name."""
        nodes = self.chrome.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        used = (one for one in nodes if not one.get("ignored") and one["role"]["value"] in USED)
        return [json.dumps(one) for one in used if not one.get("name", {}).get("value", "").strip()]
