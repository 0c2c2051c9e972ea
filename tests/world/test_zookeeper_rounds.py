"""Rounds of a broker with a ZooKeeper in memory, in which tools write at the worst moment."""

from __future__ import annotations

import pytest

from ..support.kazoo_double import KazooDouble
from ..support.world import World
from ..support.zookeeper_world import (
    CHANGES,
    ROUNDS_MS,
    configure,
    create,
    delete,
    grow,
    here,
    started,
    there,
    tool_configures,
    tool_creates,
)

TOPIC = "/brokers/topics/t"
RETENTION = "retention.ms"


@pytest.fixture
def client() -> KazooDouble:
    return KazooDouble()


@pytest.fixture
def w(client: KazooDouble) -> World:
    """A broker that is registered, with a topic of one partition."""
    w = started(client)
    create(w, "t")
    w.pass_ms(ROUNDS_MS)
    assert there(client) == {"t": (1, {})}
    return w


def test_partitions_that_a_tool_adds_between_the_reading_and_the_writing_of_a_round_are_kept(
    client: KazooDouble, w: World
) -> None:
    """The broker is about to write two partitions. Its write is refused, as the node has another version then; it reads
    the node again, finds what it does not know, and writes nothing. The next round takes the tool's partitions.
    """
    by_tool = [b'{"version":1,"partitions":{"0":[7],"1":[7],"2":[7]}}']

    def add(path: str) -> None:
        if path == TOPIC and by_tool:
            client.set(path, by_tool.pop())

    client.before_set = add
    grow(w, "t", 2)
    w.pass_ms(ROUNDS_MS)
    assert not by_tool
    assert there(client) == here(w) == {"t": (3, {})}


def test_a_write_that_only_another_version_refuses_is_made_again_in_the_same_round(
    client: KazooDouble, w: World
) -> None:
    touched: list[str] = []

    def touch(path: str) -> None:
        if path == TOPIC and not touched:
            touched.append(path)
            client.set(path, client.nodes[path].value)

    client.before_set = touch
    grow(w, "t", 2)
    w.pass_ms(100)
    assert touched
    assert there(client) == {"t": (2, {})}


def test_a_configuration_that_a_tool_changes_between_the_reading_and_the_writing_of_a_round_is_kept(
    client: KazooDouble, w: World
) -> None:
    """Both have changed a key, and both changes are there afterwards."""
    configure(w, "t", retention_ms="1")
    w.pass_ms(ROUNDS_MS)
    by_tool = [{RETENTION: "1", "segment.bytes": "2000000"}]

    def change(path: str) -> None:
        if path == "/config/topics/t" and by_tool:
            tool_configures(client, "topics/t", by_tool.pop())

    client.before_set = change
    configure(w, "t", retention_ms="2")
    w.pass_ms(ROUNDS_MS)
    assert not by_tool
    assert there(client) == here(w) == {"t": (1, {RETENTION: "2", "segment.bytes": "2000000"})}


def test_what_tools_change_before_the_broker_has_a_new_session_takes_effect(client: KazooDouble, w: World) -> None:
    """The broker registers again, and shows everything; what is newer in ZooKeeper is not overwritten. Changes of more
    than a quarter of an hour ago are not announced any more.
    """
    configure(w, "t", retention_ms="1", segment_bytes="2000000")
    w.pass_ms(ROUNDS_MS)
    client.lose()
    w.pass_ms(ROUNDS_MS)
    tool_configures(client, "topics/t", {RETENTION: "5"})
    for path in [path for path in client.nodes if path.startswith(f"{CHANGES}/")]:
        del client.nodes[path]
    tool_creates(client, "t", 3)
    tool_creates(client, "more")
    client.find(expired=True)
    w.pass_ms(ROUNDS_MS)
    assert there(client) == here(w) == {"t": (3, {RETENTION: "5"}), "more": (1, {})}
    assert client.nodes["/brokers/ids/7"].owner == client.client_id[0]


def test_topics_that_are_made_again_with_fewer_partitions_during_an_outage_have_those(
    client: KazooDouble, w: World
) -> None:
    """The node that ZooKeeper has is that of the earlier topic, whose partitions would otherwise be added."""
    grow(w, "t", 3)
    w.pass_ms(ROUNDS_MS)
    client.lose()
    delete(w, "t")
    create(w, "t")
    client.find(expired=True)
    w.pass_ms(ROUNDS_MS)
    assert there(client) == here(w) == {"t": (1, {})}
