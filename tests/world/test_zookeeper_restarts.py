"""A broker changes while ZooKeeper cannot be reached, and is started again before it heard of ZooKeeper.

Afterwards both have what the broker acknowledged, and what tools wrote meanwhile.
"""

from __future__ import annotations

import pytest
from ottla.broker.zookeeper import agreed
from ottla.broker.zookeeper.agreed import FILE

from ..support.kazoo_double import KazooDouble
from ..support.world import World
from ..support.zookeeper_world import (
    ROUNDS_MS,
    configure,
    create,
    delete,
    grow,
    here,
    restarted,
    started,
    there,
    tool_configures,
    tool_creates,
)

RETENTION, SEGMENT = "retention.ms", "segment.bytes"
JOURNAL = f"/data/{FILE}"


@pytest.fixture
def w(client: KazooDouble) -> World:
    """A broker that is registered, with a topic."""
    w = started(client)
    create(w, "t", retention_ms="1")
    w.pass_ms(ROUNDS_MS)
    assert there(client) == {"t": (1, {RETENTION: "1"})}
    return w


def agree(w: World, client: KazooDouble) -> dict[str, tuple[int, dict[str, str]]]:
    """Returns the topics of the broker, which ZooKeeper has too."""
    w.pass_ms(ROUNDS_MS)
    assert there(client) == here(w)
    return here(w)


def test_topics_and_partitions_that_are_created_meanwhile_are_shown(client: KazooDouble, w: World) -> None:
    client.lose()
    create(w, "new", 2, segment_bytes="2000000")
    grow(w, "t", 4)
    again = restarted(w, client)
    assert agree(again, client) == {"new": (2, {SEGMENT: "2000000"}), "t": (4, {RETENTION: "1"})}


def test_a_topic_that_is_deleted_meanwhile_is_removed(client: KazooDouble, w: World) -> None:
    create(w, "kept")
    w.pass_ms(ROUNDS_MS)
    client.lose()
    delete(w, "t")
    again = restarted(w, client)
    assert agree(again, client) == {"kept": (1, {})}


def test_a_topic_that_is_made_again_meanwhile_has_nothing_of_the_earlier_one(client: KazooDouble, w: World) -> None:
    """Not its partitions, not its configuration; and a tool that wanted the earlier one deleted has what it wanted."""
    grow(w, "t", 3)
    w.pass_ms(ROUNDS_MS)
    client.lose()
    delete(w, "t")
    create(w, "t", segment_bytes="2000000")
    with client.tool():
        client.create("/admin/delete_topics/t")
    again = restarted(w, client)
    assert agree(again, client) == {"t": (1, {SEGMENT: "2000000"})}
    assert "/admin/delete_topics/t" not in client.nodes


@pytest.mark.parametrize("config", [{RETENTION: "2"}, {}, {SEGMENT: "2000000"}], ids=repr)
def test_a_configuration_that_is_changed_meanwhile_is_shown(
    client: KazooDouble, w: World, config: dict[str, str]
) -> None:
    client.lose()
    configure(w, "t", **config)
    again = restarted(w, client)
    assert agree(again, client) == {"t": (1, config)}


def test_what_tools_change_meanwhile_takes_effect(client: KazooDouble, w: World) -> None:
    """Unless the broker has acknowledged another value of the same key."""
    create(w, "other", retention_ms="1", segment_bytes="2000000")
    w.pass_ms(ROUNDS_MS)
    client.lose()
    configure(w, "t", retention_ms="2")
    tool_configures(client, "topics/t", {RETENTION: "3", SEGMENT: "3000000"})
    tool_configures(client, "topics/other", {RETENTION: "4"})
    tool_creates(client, "other", 2)
    tool_creates(client, "tools")
    again = restarted(w, client)
    assert agree(again, client) == {
        "other": (2, {RETENTION: "4"}),
        "t": (1, {RETENTION: "2", SEGMENT: "3000000"}),
        "tools": (1, {}),
    }


def test_a_topic_whose_creation_zookeeper_did_not_confirm_is_not_resurrected(client: KazooDouble, w: World) -> None:
    """Its node is there; the answer was lost, and the broker deleted the topic before it could read the node."""
    client.loses_answer = lambda path: path == "/brokers/topics/short"
    create(w, "short")
    w.pass_ms(100)
    assert "/brokers/topics/short" in client.nodes
    assert not client.connected
    delete(w, "short")
    again = restarted(w, client)
    assert agree(again, client) == {"t": (1, {RETENTION: "1"})}


def test_a_configuration_that_zookeeper_did_not_confirm_is_not_resurrected(client: KazooDouble, w: World) -> None:
    """It is there; the answer was lost, and the broker went back to the value of before."""
    client.loses_answer = lambda path: path == "/config/topics/t"
    configure(w, "t", retention_ms="2")
    w.pass_ms(100)
    assert b'"2"' in client.nodes["/config/topics/t"].value
    assert not client.connected
    configure(w, "t", retention_ms="1")
    again = restarted(w, client)
    assert agree(again, client) == {"t": (1, {RETENTION: "1"})}


def test_what_a_broker_took_over_from_a_tool_is_not_resurrected_either(client: KazooDouble, w: World) -> None:
    tool_creates(client, "tools", 2)
    tool_configures(client, "topics/t", {SEGMENT: "2000000"})
    assert agree(w, client) == {"t": (1, {SEGMENT: "2000000"}), "tools": (2, {})}
    client.lose()
    delete(w, "tools")
    configure(w, "t", retention_ms="1")
    again = restarted(w, client)
    assert agree(again, client) == {"t": (1, {RETENTION: "1"})}


def test_a_new_broker_takes_what_zookeeper_has(client: KazooDouble, w: World) -> None:
    """Its directory is empty, so nothing in ZooKeeper was deleted by it."""
    client.end()
    fresh = started(client, ottla_cluster_id=w.broker.cluster_id)
    assert agree(fresh, client) == {"t": (1, {RETENTION: "1"})}


def test_a_zookeeper_that_has_lost_its_data_gets_all_of_it(client: KazooDouble, w: World) -> None:
    """A tool's topic is newer than what was lost, although the broker deleted one of that name meanwhile."""
    create(w, "kept")
    w.pass_ms(ROUNDS_MS)
    client.lose()
    delete(w, "t")
    for path in [path for path in client.nodes if path]:
        del client.nodes[path]
    tool_creates(client, "t", 2)
    again = restarted(w, client)
    assert agree(again, client) == {"kept": (1, {}), "t": (2, {})}


def test_a_journal_whose_end_is_torn_counts_up_to_there(client: KazooDouble, w: World) -> None:
    client.lose()
    delete(w, "t")
    torn = w.files.read(JOURNAL) + b'["topic","t'
    w.files.replace(JOURNAL, torn)
    again = restarted(w, client)
    create(again, "u")
    again.pass_ms(ROUNDS_MS)
    client.lose()
    delete(again, "u")
    third = restarted(again, client)
    assert agree(third, client) == {}


def test_the_journal_does_not_grow_with_the_number_of_changes(
    client: KazooDouble, w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 100 lines that are no more true it is written again, for which 1,000 changes would take long here."""
    monkeypatch.setattr(agreed, "LINES_SPARE", 100)
    for number in range(250):
        configure(w, "t", retention_ms=str(number))
        w.pass_ms(20)
    assert agree(w, client) == {"t": (1, {RETENTION: "249"})}
    assert len(w.files.read(JOURNAL).splitlines()) < 110
