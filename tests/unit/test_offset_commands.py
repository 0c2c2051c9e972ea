"""The plan of `ottla offsets`."""

from __future__ import annotations

import pytest
from ottla.classic.balance.assignment import TopicPartition

from ottla.offset_commands import Row, planned

PLACE = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("before", "overwrite", "action"),
    [
        (None, False, "set"),
        (4, False, "set"),
        (5, False, "keep"),
        (6, False, "keep"),
        (0, False, "set"),
        (6, True, "set"),
        (5, True, "keep"),
    ],
)
def test_the_larger_offset_is_kept_unless_it_is_to_be_overwritten(
    before: int | None, overwrite: bool, action: str
) -> None:
    target = {} if before is None else {PLACE: before}
    (row,) = planned({PLACE: 5}, target, [PLACE], overwrite)
    assert (row.offset, row.before, row.action) == (5, before, action)


def test_partitions_are_in_their_order_and_those_that_do_not_exist_are_left_out() -> None:
    source = {TopicPartition("t", 10): 1, TopicPartition("t", 9): 2, TopicPartition("a", 0): 3}
    assert planned(source, {}, {TopicPartition("t", 9), TopicPartition("t", 10)}, overwrite=True) == [
        Row("a", 0, 3, None, "no partition"),
        Row("t", 9, 2, None, "set"),
        Row("t", 10, 1, None, "set"),
    ]


def test_what_only_the_target_has_stays() -> None:
    assert planned({}, {PLACE: 5}, [PLACE], overwrite=True) == []
