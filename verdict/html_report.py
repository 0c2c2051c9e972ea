"""The report as a page of HTML that needs nothing else: no script, no font, no image, nothing of a network.

What peers chose, such as client ids and what is in their frames, comes into the page only as the text of an element:
ElementTree escapes it. A policy in the page forbids scripts, so that even a mistake here could run none. The filter is
a choice that style sheets look at.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from .html_style import STYLE
from .report import OUTCOMES, ClientReport, FailureReport, RuleReport, counts, evidence_line, shortened, times_more
from .rule import EXAMINATIONS, Examination

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What a browser may do with the page."""
CELL_CHARACTERS_MAX: Final = 60  # of a name in the overview
SHOWN: Final = {"all": "all", "failed": "failed", "passed": "passed", "not-exercised": "not exercised"}
HEAD: Final = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Verdict on Kafka clients</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>Verdict on Kafka clients</h1>
"""
OVERVIEW: Final = """<div class="scrolls" tabindex="0" role="region" aria-label="Clients">
<table class="overview">
<caption>Clients, and how many rules of the protocol each has kept</caption>
"""
ROWS_AT_ONCE: Final = 50
TAIL: Final = "</main>\n</body>\n</html>\n"


def html(clients: Iterable[ClientReport]) -> Iterator[str]:
    """Yields the page in pieces: an empty one for each client as it is counted, then its parts."""
    found = []
    for client in clients:
        found.append(client)
        yield ""
    yield HEAD
    if not found:
        yield "<p>No client was examined.</p>\n"
    else:
        yield from _overview(found)
        yield _text(_filter())
        for number, client in enumerate(found, 1):
            yield _text(_section(number, client))
    yield TAIL


def _text(element: ET.Element) -> str:
    return ET.tostring(element, encoding="unicode", method="html") + "\n"


def _add(parent: ET.Element, tag: str, text: str = "", **attributes: str) -> ET.Element:
    """Adds an element. `class_` stands for the attribute `class`."""
    found = ET.SubElement(parent, tag, {name.rstrip("_"): value for name, value in attributes.items()})
    found.text = shortened(text)
    return found


def _overview(clients: list[ClientReport]) -> Iterator[str]:
    yield OVERVIEW
    heads = ET.Element("tr")
    for name in ("Client id", "Software", "Version", "Address", *(one.capitalize() for one in OUTCOMES)):
        _add(heads, "th", name, scope="col")
    yield f"<thead>{_text(heads)}</thead>\n<tbody>\n"
    for first in range(0, len(clients), ROWS_AT_ONCE):
        rows = enumerate(clients[first : first + ROWS_AT_ONCE], first + 1)
        yield "".join(_text(_overview_row(number, client)) for number, client in rows)
    yield "</tbody></table></div>\n"


def _overview_row(number: int, client: ClientReport) -> ET.Element:
    row = ET.Element("tr")
    name = shortened(client["client_id"] or "(none)", CELL_CHARACTERS_MAX)
    _add(_add(row, "th", scope="row"), "a", name, href=f"#client-{number}")
    for text in (client["software"], client["software_version"], client["host"]):
        _add(row, "td", shortened(text, CELL_CHARACTERS_MAX))
    for outcome, count in counts(client["rules"]).items():
        _add(row, "td", str(count), class_=f"number {_class(outcome)}" if count else "number")
    return row


def _filter() -> ET.Element:
    found = ET.Element("fieldset")
    _add(found, "legend", "Show rules that are")
    for key, words in SHOWN.items():
        label = _add(found, "label")
        chosen = {"checked": "checked"} if key == "all" else {}
        choice = ET.SubElement(
            label, "input", {"type": "radio", "name": "show", "value": key, "id": f"show-{key}", **chosen}
        )
        choice.tail = f" {words}"
    return found


def _section(number: int, client: ClientReport) -> ET.Element:
    section = ET.Element("section", {"id": f"client-{number}", "aria-labelledby": f"name-{number}"})
    _add(section, "h2", client["client_id"] or "(no client id)", id=f"name-{number}")
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts(client["rules"]).items())
    software = f"{client['software']} {client['software_version']}"
    _add(section, "p", f"{shortened(software)} at {client['host']}: {summary}.")
    labels = {"tabindex": "0", "role": "region", "aria-labelledby": f"name-{number}"}
    table = _add(ET.SubElement(section, "div", {"class": "scrolls", **labels}), "table", class_="rules")
    _add(table, "caption", "Rules by examination")
    heads = _add(_add(table, "thead"), "tr")
    for name in ("Outcome", "Rule", "What a client does, and why", "Kept", "Broken"):
        _add(heads, "th", name, scope="col")
    in_order = sorted(client["rules"], key=lambda one: list(EXAMINATIONS).index(one["examination"]))
    for examination, rules in groupby(in_order, lambda one: one["examination"]):
        body = _add(table, "tbody")
        _add(_add(body, "tr", class_="examination"), "th", _named(examination), scope="rowgroup", colspan="5")
        for one in rules:
            _row(body, one)
    return section


def _named(examination: Examination) -> str:
    return f"{examination}: {EXAMINATIONS[examination]}"


def _class(outcome: str) -> str:
    return outcome.replace(" ", "-")


def _row(body: ET.Element, one: RuleReport) -> None:
    kind = f"{_class(one['outcome'])} {one['severity']}"
    row = _add(body, "tr", class_=kind)
    words = "warning" if one["outcome"] == "failed" and one["severity"] == "warning" else one["outcome"]
    _add(_add(row, "td"), "span", words, class_="outcome")
    _add(_add(row, "th", scope="row"), "a", one["id"], href=one["link"], rel="noreferrer")
    cell = _add(row, "td")
    _add(cell, "p", one["what"])
    _add(cell, "p", one["why"], class_="why")
    for failure in one["failures"]:
        _failure(cell, failure)
    if more := times_more(one):
        _add(cell, "p", more)
    _add(row, "td", str(one["kept"] or ""), class_="number")
    _add(row, "td", str(one["failed"] or ""), class_="number")


def _failure(cell: ET.Element, failure: FailureReport) -> None:
    details = _add(cell, "details")
    _add(details, "summary", failure["words"])
    frames = _add(details, "ol")
    for seen in failure["evidence"]:
        _add(_add(frames, "li"), "code", evidence_line(seen))
