"""Which tests `make test` runs a second time."""

from __future__ import annotations

import pytest

from ..lanes import (
    LANES,
    LAST_CHARACTERS,
    QUICK_LANES,
    SECOND_MODULES_MAX,
    SECOND_RUNS_MAX,
    Failure,
    Outcome,
    Plan,
    for_second_run,
    last_of,
)
from ..support.sources import ROOT

CLIENT, ORACLE, BROKER = (
    "tests/clients/test_java.py::a",
    "tests/oracle/test_config.py::b",
    "tests/process/test_tls.py::c",
)
STORY = "tests/differential/test_core.py::d"


def lane(*tests: str, wrong: str = "") -> Outcome:
    return Outcome("a lane", [Failure(test, "words") for test in tests], wrong=wrong)


def chosen(*outcomes: Outcome) -> list[str]:
    return [one.test for one in for_second_run(outcomes)]


def test_tests_with_foreign_programs_get_a_second_run_if_they_are_few() -> None:
    assert chosen(lane(), lane()) == []
    assert chosen(lane(CLIENT, ORACLE), lane(BROKER)) == [CLIENT, ORACLE, BROKER]
    many = [f"{CLIENT}{number}" for number in range(SECOND_RUNS_MAX + 1)]
    assert chosen(lane(*many[:4]), lane(*many[4:-1])) == many[:-1]
    assert chosen(lane(*many[:4]), lane(*many[4:])) == []


def test_many_modules_that_fail_get_none() -> None:
    tests = [f"tests/clients/test_{number}.py::a" for number in range(SECOND_MODULES_MAX + 1)]
    assert chosen(lane(*tests[:-1])) == tests[:-1]
    assert chosen(lane(*tests)) == []


@pytest.mark.parametrize("folder", ["unit", "world", "sim"])
def test_a_deterministic_test_gets_none_and_takes_it_from_no_other(folder: str) -> None:
    assert chosen(lane(CLIENT), lane(f"tests/{folder}/test_it.py::it")) == [CLIENT]


def test_a_module_that_cannot_be_imported_gets_none() -> None:
    assert chosen(lane("tests.clients.test_java")) == []


def test_a_lane_with_something_wrong_as_a_whole_takes_it_from_no_other() -> None:
    assert chosen(lane(CLIENT), lane(wrong="ended with code 3")) == [CLIENT]


@pytest.mark.parametrize("words", ["Timeout (0:15:00)!", "Fatal Python error: Aborted"])
def test_the_end_of_a_log_names_the_test_of_its_stacks(words: str) -> None:
    frames = "  File difflib.py\n" * LAST_CHARACTERS
    shown = last_of(f"{'.' * LAST_CHARACTERS}\ntests/world/test_steps.py .\n{words}\n{frames}")
    assert f"\ntests/world/test_steps.py .\n{words}\n" in shown
    assert len(shown) == 2 * LAST_CHARACTERS


def test_the_end_of_a_log_without_stacks_is_its_last_characters() -> None:
    assert last_of("." * LAST_CHARACTERS + "FAILED") == "." * (LAST_CHARACTERS - 6) + "FAILED"


@pytest.mark.parametrize(("mode", "expected"), [("live", [STORY]), ("record", [STORY]), ("recorded", [])])
def test_a_story_gets_one_only_where_kafka_itself_tells_it(
    monkeypatch: pytest.MonkeyPatch, mode: str, expected: list[str]
) -> None:
    monkeypatch.setenv("OTTLA_ORACLE", mode)
    assert chosen(lane(STORY)) == expected


def test_what_kafka_said_is_played_unless_it_is_to_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTTLA_ORACLE", raising=False)
    assert chosen(lane(STORY)) == []


def runs(plan: Plan, module: str) -> bool:
    """Whether a lane runs a test module, by the paths that its arguments name and ignore."""
    ignored = [word.removeprefix("--ignore=") for word in plan.arguments if word.startswith("--ignore=")]
    named = [word for word in plan.arguments if word.startswith("tests/")] or ["tests"]
    lies_in = [any(f"{module}/".startswith(f"{path}/") for path in paths) for paths in (named, ignored)]
    return lies_in == [True, False]


def test_each_module_is_of_one_lane() -> None:
    modules = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]
    lanes = {module: [name for name, plan in LANES.items() if runs(plan, module)] for module in modules}
    assert {module: names for module, names in lanes.items() if len(names) != 1} == {}


def test_the_modules_that_lanes_name_are_there() -> None:
    plans = [*LANES.values(), *QUICK_LANES.values()]
    named = [word.removeprefix("--ignore=") for plan in plans for word in plan.arguments]
    assert [path for path in named if path.startswith("tests/") and not (ROOT / path).exists()] == []
