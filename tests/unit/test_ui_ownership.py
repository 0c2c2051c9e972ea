"""Who had which partitions, as the page of a group draws it from the events of its timeline."""

from __future__ import annotations

from ottla.coordinator.group.events import Event, GroupEventView, Place, shown

from ottla.ui.pages import ownership
from ottla.ui.pages.ownership import Bar, Span, drawing, rows, spans

A0, A1 = ("a", 0), ("a", 1)


def event(at_ms: int, what: str, member: str | None = None, *places: Place) -> GroupEventView:
    return shown(Event(what, "consumer", member=member, partitions=places), at_ms, at_ms, at_ms, "log")


def test_a_partition_goes_from_one_member_to_another() -> None:
    events = [
        event(1, "assigned", "x", A0, A1),
        event(5, "must-revoke", "x", A1),
        event(7, "revoked", "x", A1),
        event(9, "assigned", "y", A1),
    ]
    assert spans(events) == [Span(*A0, "x", 1, None), Span(*A1, "x", 1, 7), Span(*A1, "y", 9, None)]


def test_a_member_that_is_removed_has_nothing_any_more() -> None:
    events = [event(1, "assigned", "x", A0), event(1, "assigned", "y", A1), event(4, "member-removed", "x")]
    assert spans(events) == [Span(*A0, "x", 1, 4), Span(*A1, "y", 1, None)]


def test_nobody_has_anything_when_the_group_has_ended() -> None:
    events = [event(1, "assigned", "x", A0), event(1, "assigned", "y", A1), event(6, "ended")]
    assert spans(events) == [Span(*A0, "x", 1, 6), Span(*A1, "y", 1, 6)]


def test_a_static_member_that_is_away_keeps_what_it_has() -> None:
    assert spans([event(1, "assigned", "x", A0), event(2, "away", "x")]) == [Span(*A0, "x", 1, None)]


def test_what_began_before_the_first_event_begins_with_it() -> None:
    assert spans([event(3, "joined", "y"), event(8, "revoked", "x", A0)]) == [Span(*A0, "x", 3, 8)]


def test_members_after_each_other_share_a_row_and_those_at_once_do_not() -> None:
    first, next_, beside = Span(*A0, "x", 1, 4), Span(*A0, "y", 4, None), Span(*A0, "z", 5, None)
    names, bars = rows([first, next_, beside])
    assert names == ["a/0", "a/0"]
    assert bars == [Bar(0, first), Bar(0, next_), Bar(1, beside)]


def test_the_chart_has_a_line_for_each_member_to_a_little_after_the_last_event() -> None:
    drawn = drawing(
        [event(1000, "assigned", "x", A0), event(9000, "revoked", "x", A0), event(9000, "assigned", "y", A0)]
    )
    points = {one["name"]: one["data"] for one in drawn.options["series"]}  # type: ignore[attr-defined]
    end = 9000 + 8000 // 20
    gap = ["-", "-"]
    assert points == {"x": [[1000, 0], [9000, 0], gap], "y": [[9000, 0], [end, 0], gap]}


def test_rows_that_are_too_many_are_counted() -> None:
    places = [("a", partition) for partition in range(ownership.ROWS_MAX + 3)]
    drawn = drawing([event(1, "assigned", "x", *places)])
    assert drawn.left_out == 3
    assert drawn.height_px == ownership.AROUND_PX + ownership.ROWS_MAX * ownership.ROW_PX


def test_there_is_no_chart_where_nobody_had_anything() -> None:
    assert drawing([]).height_px == 0
    assert drawing([event(1, "joined", "x")]).height_px == 0
