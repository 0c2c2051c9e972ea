"""What a failed comparison of large values says."""

from __future__ import annotations

import pytest

from ..support.differences import LINES_MAX, first_difference


@pytest.mark.parametrize("form", ["\n".join, list])
def test_large_values_show_their_first_difference_only(form: type) -> None:
    lines = [f"the line with the number {n}, which is like all others" for n in range(5 * LINES_MAX)]
    others = [line if n < LINES_MAX else line.replace("number", "word") for n, line in enumerate(lines)]
    head, where, *shown = first_difference(form(lines), form(others))
    assert head == f"{len(lines)} lines == {len(lines)} lines"
    assert where == f"The first difference is in line {LINES_MAX + 1}:"
    assert [line[0] for line in shown] == [" "] * 3 + ["-"] * 3 + ["+"] * 3
    assert f"number {LINES_MAX - 1}" in shown[2]
    assert f"number {LINES_MAX}" in shown[3]
    assert f"word {LINES_MAX}" in shown[6]


def test_one_that_goes_on_differs_where_the_other_ends() -> None:
    shorter = [str(n) for n in range(LINES_MAX)]
    assert first_difference("\n".join(shorter), "\n".join([*shorter, "more"]))[1:] == [
        f"The first difference is in line {LINES_MAX + 1}:",
        *(f"  {n}" for n in range(LINES_MAX - 3, LINES_MAX)),
        "+ more",
    ]


def test_small_values_and_those_whose_texts_are_equal_are_left_to_pytest() -> None:
    assert first_difference([1] * 5 * LINES_MAX, [1] * 5 * LINES_MAX) == []
    assert first_difference("one\ntwo", "one\nthree") == []
    assert first_difference([1, 2], [1, 3]) == []
    assert first_difference(b"1" * 9000, b"2" * 9000) == []
