"""What a live verdict and the verdict on a trace may say differently: rules that measure time, and times."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from ottla.verdict.examiner import Examiner
from ottla.verdict.report import ClientReport

from ..support import verdict_client_cases, verdict_group_cases
from ..support.verdict_cases import CASES
from ..support.verdict_reports import measuring, timeless, unlike
from ..support.verdict_script import Script

WITH_CASES = verdict_client_cases, verdict_group_cases
RATES = 0, 1, 100
"""Of time, as clocks that are read one after the other could have it at the worst."""


def reports(id: str, is_right: bool, rate: int) -> list[ClientReport]:
    """What is said of a client for whom time passes at a rate."""
    script, examiner = Script(), Examiner()
    CASES[id](script, is_right)
    for event in script.events:
        event.mono_us *= rate
        examiner.feed(event)
    return list(examiner.report())


@cache
def changed() -> frozenset[str]:
    """The rules that say something else of a client at one of the rates."""
    return frozenset(
        rules[0]["id"]
        for id in CASES
        for is_right in (True, False)
        for rules in zip(*(one["rules"] for rate in RATES for one in reports(id, is_right, rate)), strict=True)
        if any(_outcome(one) != _outcome(rules[0]) for one in rules)
    )


def _outcome(rule: Any) -> object:
    return rule["outcome"], rule["kept"], rule["failed"]


@pytest.mark.long
def test_the_rules_that_measure_time_are_known() -> None:
    assert changed() == measuring()


def test_reports_are_alike_though_times_differ() -> None:
    slow, fast = (reports("KIP-580.back-off", False, rate) for rate in (1, 0))
    assert slow != fast
    assert timeless(slow) == timeless(fast)
    assert unlike(slow, fast) == []


@pytest.mark.parametrize("id", ["KIP-848.epoch-echoed", "KIP-98.sequences-in-order"])
def test_reports_with_another_outcome_are_unlike(id: str) -> None:
    differences = unlike(reports(id, True, 1), reports(id, False, 1))
    assert id in str(differences)


def test_reports_on_other_clients_are_unlike() -> None:
    (client,) = reports("KIP-580.back-off", True, 1)
    assert unlike([client], [{**client, "host": "10.0.0.2"}])
    assert unlike([client], [])
