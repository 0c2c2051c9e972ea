"""Replies of the lab as JSON in pieces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from ottla.broker.lab.encode import ELEMENTS_AT_ONCE, PIECE_BYTES, pieces


@dataclass
class Pair:
    """A value with an iterator in it."""

    name: str
    rows: Iterator[int]


def parsed(value: object) -> Any:
    return json.loads(b"".join(pieces(value)))


@pytest.mark.parametrize("count", [0, 1, 2, ELEMENTS_AT_ONCE, 5 * ELEMENTS_AT_ONCE + 3])
def test_an_iterator_is_a_list(count: int) -> None:
    rows = [{"name": f"n{one}", "of": b"\1\2"} for one in range(count)]
    plain = [{"name": f"n{one}", "of": "0102"} for one in range(count)]
    assert parsed({"rows": iter(rows), "next": None}) == {"rows": plain, "next": None}
    assert parsed(iter(rows)) == plain


def test_iterators_within_iterators() -> None:
    def rows() -> Iterator[object]:
        for one in range(70):
            yield {"plain": one}
            if one % 7 == 0:
                yield {"inner": iter([one, one + 1]), "none": iter(())}
                yield Pair(str(one), iter([one]))

    expected: list[object] = []
    for one in range(70):
        expected.append({"plain": one})
        if one % 7 == 0:
            expected += [{"inner": [one, one + 1], "none": []}, {"name": str(one), "rows": [one]}]
    assert parsed({"rows": rows()}) == {"rows": expected}


def test_a_piece_is_not_much_larger_than_its_size_whatever_the_elements_are() -> None:
    element = "x" * (PIECE_BYTES // 2)
    mixed = (one for _ in range(20) for one in [*["small"] * 100, *[element] * 10])
    largest = max(map(len, pieces(mixed)))
    assert largest < PIECE_BYTES + (ELEMENTS_AT_ONCE + 1) * len(element)
    assert sorted(map(len, pieces(iter([element] * 200))))[-1] <= 2 * PIECE_BYTES


def test_an_element_is_made_when_its_turn_comes() -> None:
    made: list[int] = []

    def rows() -> Iterator[str]:
        for one in range(10_000):
            made.append(one)
            yield "x" * 100

    before = 0
    for _ in pieces(rows()):
        assert len(made) - before <= PIECE_BYTES // 100 + 2 * ELEMENTS_AT_ONCE
        before = len(made)
    assert before == 10_000


def test_what_has_no_form_in_json_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no form in JSON"):
        list(pieces({"rows": iter([object()])}))
