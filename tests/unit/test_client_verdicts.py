"""The page about well-known clients: it is made of its data and of the findings, and both know the rules there are."""

from __future__ import annotations

import json
from functools import cache

import pytest
from ottla.broker.lab.verdict.provocations import provocations
from ottla.verdict.rule import EXAMINATIONS
from ottla.verdict.rules import all_rules

from ..clients.verdict_page import (
    ADDRESSES,
    CONNECTIONS,
    DATA,
    ENDINGS,
    LOGIN,
    PAGE,
    RUNS,
    SIGNS,
    TRUNCATION,
    WORK,
    Examined,
    Run,
    failed,
    findings,
    outcomes,
    page,
)

AGAIN = "run `make verdicts`"


@cache
def data() -> list[Examined]:
    found: list[Examined] = json.loads(DATA.read_text())
    return found


def run(**rules: str) -> Run:
    found = {id.replace("_", "."): outcome.replace("_", " ") for id, outcome in rules.items()}
    return Run(rules=found, failures={}, missed=[])


def test_the_data_has_eight_clients_with_versions_and_outcomes() -> None:
    assert len({one["name"] for one in data()}) == len(data()) >= 8
    for one in data():
        assert set(one) == set(Examined.__annotations__)
        assert one["version"][0].isdigit()
        for found in one["runs"].values():
            assert set(found) == set(Run.__annotations__)
            assert set(found["rules"].values()) <= set(SIGNS)
            assert set(found["failures"]) == {
                id for id, sign in found["rules"].items() if sign in ("failed", "warning")
            }
            assert all(found["failures"].values())
        assert sum(outcome == "passed" for outcome in outcomes(one).values()) >= 10


def test_each_client_went_through_each_examination_that_it_has_something_for() -> None:
    for one in data():
        assert set(one["runs"]) | set(one["lacks"]) == set(RUNS), AGAIN
        assert set(one["runs"]) & set(one["lacks"]) == set()
        assert all(one["lacks"].values())


def test_what_was_missed_was_a_fault_of_the_examination() -> None:
    for one in data():
        for name in EXAMINATIONS:
            faults = {f"{given.fault.api} {given.fault.nth}" for given in provocations(name, 0)}
            assert set(one["runs"].get(name, run())["missed"]) <= faults, AGAIN


def test_the_data_has_the_rules_that_there_are() -> None:
    rules = {one.about.id: one.about for one in all_rules()}
    for one in data():
        assert set(outcomes(one)) == set(rules), AGAIN
        for name, found in one["runs"].items():
            of_network = dict.fromkeys((LOGIN, CONNECTIONS, ADDRESSES), "network")
            wanted = {TRUNCATION: "basic", **of_network}.get(name, name)
            assert name in (WORK, ENDINGS) or {rules[id].examination for id in found["rules"]} == {wanted}, AGAIN
        for id in failed(one):
            assert (outcomes(one)[id] == "warning") == (rules[id].severity == "warning"), AGAIN


def test_each_rule_is_exercised_by_a_client() -> None:
    rules = {one.about.id for one in all_rules()}
    exercised = {id for one in data() for id, outcome in outcomes(one).items() if outcome != "not exercised"}
    assert exercised == rules, AGAIN


def test_what_failed_was_compared_with_the_clients_source() -> None:
    for one in data():
        found = findings().get(one["name"], {})
        assert set(failed(one)) <= set(found)
        assert {id for id in set(found) - set(failed(one)) if not found[id].get("at_times")} == set()
    assert set(findings()) <= {one["name"] for one in data()}
    for found in findings().values():
        for finding in found.values():
            assert finding["does"].endswith(".")
            assert "`" in finding["where"]


def test_the_page_is_made_of_its_data() -> None:
    assert PAGE.read_text() == page(data(), findings()), AGAIN


@pytest.mark.parametrize(
    ("first", "second", "worst"),
    [
        ("passed", "failed", "failed"),
        ("failed", "passed", "failed"),
        ("warning", "passed", "warning"),
        ("not_exercised", "passed", "passed"),
    ],
)
def test_the_outcome_of_a_rule_is_the_worst_of_all_runs(first: str, second: str, worst: str) -> None:
    runs = {WORK: run(a_b=first), "basic": run(a_b=second)}
    client = Examined(name="c", language="C", version="1", lacks={}, runs=runs)
    assert outcomes(client) == {"a.b": worst}


def test_a_page_says_what_was_found_missed_and_lacking() -> None:
    known = [one.about.id for one in all_rules("basic")][:3]
    runs = {WORK: run(), "basic": Run(rules=dict(zip(known, ("passed", "failed", "warning"), strict=True)),
                                     failures={known[1]: "a", known[2]: "b"}, missed=["Fetch 4"])}  # fmt: skip
    client = Examined(name="c", language="C", version="1", lacks={"share-group": "no queues"}, runs=runs)
    text = page([client], {"c": {known[1]: {"does": "This.", "where": "`here`"}}})
    assert "| c (C) | 1 | 0/0/0 | 1/1+1!/0 |" in text
    assert "- c: `share-group` n/a: no queues; `basic` did not come to `Fetch 4`." in text
    assert f"| c | `{known[1]}` | failed | This. |" in text
    assert f"| c | `{known[2]}` | warning | Not looked at yet. |" in text
