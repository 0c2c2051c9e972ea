"""The page about well-known clients: it is made of its data and of the findings, and both know the rules there are."""

from __future__ import annotations

import json
from functools import cache

from ottla.verdict.rules import all_rules

from ..clients.verdict_page import DATA, PAGE, SIGNS, Examined, findings, page

AGAIN = "run `make verdicts`"


@cache
def data() -> list[Examined]:
    found: list[Examined] = json.loads(DATA.read_text())
    return found


def failed(one: Examined) -> set[str]:
    return {id for id, outcome in one["rules"].items() if outcome in ("failed", "warning")}


def test_the_data_has_eight_clients_with_versions_and_outcomes() -> None:
    assert len({one["name"] for one in data()}) == len(data()) >= 8
    for one in data():
        assert set(one) == set(Examined.__annotations__)
        assert one["version"][0].isdigit()
        assert set(one["rules"].values()) <= set(SIGNS)
        assert sum(outcome == "passed" for outcome in one["rules"].values()) >= 10
        assert set(one["failures"]) == failed(one)
        assert all(one["failures"].values())


def test_the_data_has_the_rules_that_there_are() -> None:
    rules = {one.about.id: one.about for one in all_rules()}
    for one in data():
        assert set(one["rules"]) <= set(rules), AGAIN
        for id in failed(one):
            assert (one["rules"][id] == "warning") == (rules[id].severity == "warning"), AGAIN


def test_what_failed_was_compared_with_the_clients_source() -> None:
    for one in data():
        found = findings().get(one["name"], {})
        assert failed(one) <= set(found)
        assert {id for id in set(found) - failed(one) if not found[id].get("at_times")} == set()
    assert set(findings()) <= {one["name"] for one in data()}
    for found in findings().values():
        for finding in found.values():
            assert finding["does"].endswith(".")
            assert "`" in finding["where"]


def test_the_page_is_made_of_its_data() -> None:
    assert PAGE.read_text() == page(data(), findings()), AGAIN
