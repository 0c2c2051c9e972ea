"""The page of the documentation about well-known clients, made of what `verdicts` has found and of the findings that
people have compared with the clients' sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NotRequired, TypedDict

import yaml

from ..support.sources import ROOT

DATA = ROOT / "docs" / "reference" / "clients.json"
PAGE = ROOT / "docs" / "reference" / "clients.md"
FINDINGS = ROOT / "tests" / "clients" / "verdict_findings.yaml"
SIGNS = {"passed": "✓", "failed": "✗", "warning": "!", "not exercised": ""}
INTRODUCTION = """\
# The verdict on well-known clients

What clients do by [the rules of the verdict](verdict.md). Each produced with idempotence, consumed in groups whose
members came and went, and did transactions, as far as it has them, on a broker of its own. The reports of the broker
and of its trace are equal. `make verdicts` makes this page and its data (`clients.json`) again.

A rule that no request gave an occasion for is not exercised: no fault was added. A warning is a failed rule that costs
something, and breaks nothing.
"""


class Examined(TypedDict):
    """A client. `rules`: the outcome of each; `failures`: the words of the first failure."""

    name: str
    language: str
    version: str
    rules: dict[str, str]
    failures: dict[str, str]


class Finding(TypedDict):
    """What a client does instead, and where its code says so. `at_times`: if the rule fails in some runs only."""

    does: str
    where: str
    at_times: NotRequired[bool]


def findings() -> dict[str, dict[str, Finding]]:
    """By client and rule."""
    found: dict[str, dict[str, Finding]] = yaml.safe_load(FINDINGS.read_text())
    return found


def page(data: list[Examined], found: dict[str, dict[str, Finding]]) -> str:
    return "\n".join([*_head(data), *_failures(data, found), *_matrix(data)]) + "\n"


def _head(data: list[Examined]) -> Iterator[str]:
    yield INTRODUCTION
    yield "| client | language | version | passed | failed | warnings | not exercised |"
    yield "|---|---|---|---:|---:|---:|---:|"
    for one in data:
        counts = Counter(one["rules"].values())
        numbers = " | ".join(str(counts[outcome]) for outcome in ("passed", "failed", "warning", "not exercised"))
        yield f"| {one['name']} | {one['language']} | {one['version']} | {numbers} |"
    yield ""


def _failures(data: list[Examined], found: dict[str, dict[str, Finding]]) -> Iterator[str]:
    yield "## What was found"
    yield ""
    yield "Each finding was compared with the client's source."
    for one in data:
        found_here = found.get(one["name"], {})
        failed = [id for id, outcome in one["rules"].items() if outcome in ("failed", "warning")]
        yield ""
        yield f"### {one['name']} {one['version']}"
        yield ""
        if not failed:
            yield "No rule failed in this run."
            yield ""
        for id in dict.fromkeys((*failed, *found_here)):
            finding = found_here.get(id, Finding(does="Not looked at yet.", where="-"))
            how = "at times" if finding.get("at_times") else one["rules"][id]
            yield f"- `{id}` ({how}): {finding['does']} Where: {finding['where']}."
    yield ""


def _matrix(data: list[Examined]) -> Iterator[str]:
    yield "## All rules"
    yield ""
    yield "✓ passed, ✗ failed, ! warning; empty where the rule was not exercised."
    yield ""
    yield f"| rule | {' | '.join(one['name'] for one in data)} |"
    yield f"|---|{':---:|' * len(data)}"
    for id in dict.fromkeys(id for one in data for id in one["rules"]):
        signs = " | ".join(SIGNS[one["rules"].get(id, "not exercised")] for one in data)
        yield f"| `{id}` | {signs} |"
