"""The tables of the group coordinator: each kind of group has a row for each request, and it fits."""

from __future__ import annotations

import inspect
from types import NoneType

import pytest
from ottla.coordinator.format import group_key_names
from ottla.coordinator.group import routes, views
from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.offsets import replay as offset_replay
from ottla.coordinator.group.shard import REPLAYS
from ottla.coordinator.group.share.group import ShareGroup
from ottla.coordinator.group.streams.group import StreamsGroup

TABLES = {
    name: getattr(routes, name)
    for name in (
        "JOIN",
        "SYNC",
        "HEARTBEAT",
        "LEAVE",
        "CONSUMER_HEARTBEAT",
        "CONSUMER_LEAVE",
        "SHARE_HEARTBEAT",
        "STREAMS_HEARTBEAT",
        "STREAMS_LEAVE",
        "CHECK_COMMIT",
        "CHECK_TXN_COMMIT",
    )
}
KINDS = (NoneType, ClassicGroup, ConsumerGroup, ShareGroup, StreamsGroup)


@pytest.mark.parametrize("name", TABLES)
def test_each_kind_of_group_has_a_row_for_each_request(name: str) -> None:
    assert set(TABLES[name]) == set(KINDS)


def test_a_row_is_for_its_kind() -> None:
    """mypy checks what a row takes besides the group; here the group's own class is checked."""
    rows = [(kind, row) for table in TABLES.values() for kind, row in table.items()]
    rows += [(kind, row) for (_, kind), row in routes.TIMERS.items()]
    rows += [*routes.LOADED.items(), *routes.UNLOADED.items()]
    for kind, row in rows:
        annotation = list(inspect.signature(row).parameters.values())[1].annotation
        fits = {"None" if kind is NoneType else kind.__name__, "Group", "Group | None"}
        assert annotation in fits, f"{row.__module__}.{row.__name__} takes {annotation}, not {kind.__name__}"


def test_each_kind_of_group_is_loaded() -> None:
    assert set(routes.LOADED) == set(KINDS) - {NoneType}


@pytest.mark.parametrize("table", [views.VIEWS, views.SUMMARIES, views.SIZES])
def test_each_kind_of_group_is_shown(table: dict[type, object]) -> None:
    assert set(table) == set(KINDS) - {NoneType}


def test_each_record_of_a_kind_that_exists_is_replayed() -> None:
    assert set(group_key_names().values()) == set(REPLAYS) | set(offset_replay.REPLAYS)
