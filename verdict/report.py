"""The report: what of each client is passed, failed or not exercised, as text and as JUnit XML. As JSON it is what
`Examiner.report` yields; `html_report` and `badge` have the other forms.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypedDict

from ..protocol.text import printable
from .rule import Examination, Severity

Outcome = Literal["passed", "failed", "not exercised"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("passed", "failed", "not exercised")
SHOWN_CHARACTERS_MAX: Final = 2000  # of a text that a peer chose


class EvidenceReport(TypedDict):
    """An event. `exchange`: the number of request and reply in the trace; null for a refused frame."""

    connection: int
    exchange: int | None
    at_ms: int
    what: str
    message: str


class FailureReport(TypedDict):
    words: str
    evidence: list[EvidenceReport]


class RuleReport(TypedDict):
    """A rule on a client. `kept`, `failed`: how often; `failures`: the first ones."""

    id: str
    examination: Examination
    severity: Severity
    outcome: Outcome
    kept: int
    failed: int
    what: str
    why: str
    link: str
    failures: list[FailureReport]


class ClientReport(TypedDict):
    """A client: what it says of itself, and the address that it comes from."""

    client_id: str | None
    software: str
    software_version: str
    host: str
    rules: list[RuleReport]


def name_of(client: ClientReport) -> str:
    software = f"{client['software']} {client['software_version']}"
    return f"{client['client_id'] or '-'} ({software}, {client['host']})"


def counts(rules: Iterable[RuleReport]) -> dict[Outcome, int]:
    """How many rules have each outcome."""
    found = Counter(one["outcome"] for one in rules)
    return {one: found[one] for one in OUTCOMES}


class Together:
    """What several clients have done together: a rule is failed if one of them failed it. The failures are those of
    the first that failed.
    """

    def __init__(self) -> None:
        self.clients = 0
        self._rules: dict[str, RuleReport] = {}

    def add(self, client: ClientReport) -> None:
        self.clients += 1
        for one in client["rules"]:
            before = self._rules.get(one["id"])
            self._rules[one["id"]] = one if before is None else _together(before, one)

    def reports(self) -> list[RuleReport]:
        return list(self._rules.values())


def _together(a: RuleReport, b: RuleReport) -> RuleReport:
    both = a.copy()
    both["kept"], both["failed"] = a["kept"] + b["kept"], a["failed"] + b["failed"]
    both["outcome"] = "failed" if both["failed"] else "passed" if both["kept"] else "not exercised"
    both["failures"] = a["failures"] or b["failures"]
    return both


def shortened(text: str, characters_max: int = SHOWN_CHARACTERS_MAX) -> str:
    """Returns a text with unprintable characters escaped, and its end cut off if it is long."""
    cut = text if len(text) <= characters_max else f"{text[: characters_max - 1]}…"
    return printable(cut)


def has_failed(clients: Iterable[ClientReport], strict: bool = False) -> bool:
    """Whether a rule is failed whose failure is an error; with `strict` a warning is one."""
    return any(
        one["outcome"] == "failed" and (strict or one["severity"] == "error")
        for client in clients
        for one in client["rules"]
    )


def lines(clients: Iterable[ClientReport], every: bool = False) -> Iterator[str]:
    """Yields the report for people: failures with their evidence, and with `every` each rule."""
    for client in clients:
        summary = ", ".join(f"{count} {outcome}" for outcome, count in counts(client["rules"]).items())
        yield printable(f"{name_of(client)}: {summary}")
        for one in client["rules"]:
            if one["outcome"] == "failed":
                yield from _failed(one)
            elif every:
                yield f"  {one['outcome']:13}  {one['id']}"


def _failed(one: RuleReport) -> Iterator[str]:
    yield f"  {'FAILED' if one['severity'] == 'error' else 'failed'}         {one['id']} ({one['severity']})"
    yield f"    {one['what']} {one['why']} {one['link']}"
    for failure in one["failures"]:
        yield f"    - {printable(failure['words'])}"
        yield from (f"        {printable(evidence_line(seen))}" for seen in failure["evidence"])
    if more := times_more(one):
        yield f"    {more}"


def times_more(one: RuleReport) -> str:
    """Says how often a rule failed beyond the failures that are shown; empty if never."""
    more = one["failed"] - len(one["failures"])
    return f"and {more} times more" if more else ""


def evidence_line(seen: EvidenceReport) -> str:
    """An event of the evidence as a line of text, which may have unprintable characters."""
    where = f"connection {seen['connection']}"
    if seen["exchange"] is not None:
        where += f", exchange {seen['exchange']}"
    return f"{where}: {seen['what']} {seen['message']}".rstrip()


def junit(clients: Iterable[ClientReport]) -> str:
    """The report as JUnit XML: a suite for each client, a case for each rule. A failed warning is a passed case with
    output.
    """
    root = ET.Element("testsuites", name="ottla verdict")
    for client in clients:
        found = client["rules"]
        suite = ET.SubElement(
            root,
            "testsuite",
            name=printable(name_of(client)),
            tests=str(len(found)),
            failures=str(sum(one["outcome"] == "failed" and one["severity"] == "error" for one in found)),
            skipped=str(sum(one["outcome"] == "not exercised" for one in found)),
        )
        for one in found:
            _case(suite, one)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, one: RuleReport) -> None:
    case = ET.SubElement(suite, "testcase", classname=one["examination"], name=one["id"])
    if one["outcome"] == "not exercised":
        ET.SubElement(case, "skipped", message="not exercised")
    elif one["outcome"] == "failed":
        words = one["failures"][0]["words"] if one["failures"] else ""
        text = "\n".join(printable(line) for line in _failed(one))
        if one["severity"] == "error":
            ET.SubElement(case, "failure", message=printable(words)).text = text
        else:
            ET.SubElement(case, "system-out").text = text
