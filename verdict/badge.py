"""The report as a badge: a small picture in SVG that says how many rules were kept.

A rule counts once: as failed if any of the clients has failed it. Widths of letters are estimates, and `textLength`
makes the text as wide as it was taken for, so that it fits in any font.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from .report import ClientReport, RuleReport, Together, shortened

LABEL: Final = "Kafka protocol"
NAME_CHARACTERS_MAX: Final = 40
HEIGHT: Final = 20
FONT_SIZE: Final = 11
MARGIN: Final = 6
BASELINE: Final = 14
ROUND: Final = 4
NARROW, WIDE = frozenset("fijlrtI.,:;!|'()[]/ "), frozenset("mwMW%@")
GREY, GREEN, AMBER, RED = "#4f5660", "#176f2c", "#805300", "#b3261e"  # white on each has a contrast of 4.5 or more
LABEL_COLOUR: Final = "#343a42"


class _Said(NamedTuple):
    words: str
    colour: str


def badge(clients: Iterable[ClientReport]) -> Iterator[str]:
    """Yields an empty piece for each client as it is counted, then the badge: of one client, with its software as the
    label, or of several together.
    """
    label, rules = LABEL, Together()
    for client in clients:
        rules.add(client)
        if rules.clients == 1:
            label = shortened(f"{client['software']} {client['software_version']}", NAME_CHARACTERS_MAX)
        yield ""
    yield _drawn(label if rules.clients == 1 else LABEL, _said(rules.reports()))


def _said(rules: list[RuleReport]) -> _Said:
    passed = sum(one["outcome"] == "passed" for one in rules)
    errors = sum(one["outcome"] == "failed" and one["severity"] == "error" for one in rules)
    warnings = sum(one["outcome"] == "failed" and one["severity"] == "warning" for one in rules)
    if errors:
        return _Said(f"{errors} of {passed + errors + warnings} rules failed", RED)
    if warnings:
        return _Said(f"{passed} rules passed, {warnings} warning{'s' * (warnings > 1)}", AMBER)
    if passed:
        return _Said(f"{passed} rule{'s' * (passed > 1)} passed", GREEN)
    return _Said("not examined", GREY)


def _width(text: str) -> int:
    """An estimate for Verdana and its kin."""
    return round(sum(3.9 if one in NARROW else 10.4 if one in WIDE else 7.0 for one in text))


def _drawn(label: str, said: _Said) -> str:
    left, right = (_width(one) + 2 * MARGIN for one in (label, said.words))
    title = f"{label}: {said.words}"
    size = {"width": str(left + right), "height": str(HEIGHT)}
    root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "role": "img", "aria-label": title})
    ET.SubElement(root, "title").text = title
    ET.SubElement(root, "rect", {**size, "rx": str(ROUND), "fill": said.colour})
    ET.SubElement(root, "path", {"d": _left_half(left), "fill": LABEL_COLOUR})
    font = {"font-family": "Verdana, DejaVu Sans, Geneva, sans-serif", "font-size": str(FONT_SIZE), "fill": "#fff"}
    texts = ET.SubElement(root, "g", {**font, "aria-hidden": "true"})
    for x, width, text in ((0, left, label), (left, right, said.words)):
        place = {"x": str(x + MARGIN), "y": str(BASELINE), "textLength": str(width - 2 * MARGIN)}
        ET.SubElement(texts, "text", place).text = text
    return ET.tostring(root, encoding="unicode") + "\n"


def _left_half(width: int) -> str:
    """The path of a box whose corners are round on its left side."""
    r = ROUND
    return f"M{width} 0H{r}a{r} {r} 0 0 0-{r} {r}v{HEIGHT - 2 * r}a{r} {r} 0 0 0 {r} {r}H{width}z"
