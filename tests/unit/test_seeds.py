"""Seeds of a commit: all commits together have all of them."""

from __future__ import annotations

from functools import partial

import pytest

from ..support import seeds


def test_parts_of_commits_are_all_cases_together(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = seeds.spans(0, 1000, quick=10, each=25)
    parts = []
    for turn in range(4):
        monkeypatch.setattr(seeds, "_turn", partial(int, turn))
        first, *others = seeds.in_turn(cases)
        assert first == cases[0]
        assert len(others) == 10
        parts += others
    assert sorted(parts, key=cases.index) == cases[1:]


def test_all_cases_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_SEEDS", "all")
    cases = seeds.spans(0, 1000, quick=10)
    assert seeds.in_turn(cases) == cases
