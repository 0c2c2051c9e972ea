"""Rounds of a broker with a ZooKeeper in memory, in which tools write at the worst moment."""

from __future__ import annotations

import json

import pytest
from ottla.protocol import messages as m

from ..support.kazoo_double import KazooDouble, Node
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
    value,
)

TOPIC = "/brokers/topics/t"
RETENTION = "retention.ms"
BLOCK = b'{"version":1,"broker":1,"block_start":"5000","block_end":"5999"}'


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

    client.before_write = add
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

    client.before_write = touch
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

    client.before_write = change
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


def test_a_broker_of_kafka_that_becomes_the_controller_has_the_topics_to_itself(client: KazooDouble, w: World) -> None:
    """It is elected when this broker's session ends. Two controllers would overwrite each other, so this broker is only
    registered, and shows everything once it is the controller again. Nodes of the other one are left alone.
    """
    client.lose()
    client.find(expired=True)
    other = {"/brokers/ids/1": b'{"host":"127.0.0.1","port":1}', "/controller": b'{"version":1,"brokerid":1}'}
    client.nodes |= {path: Node(data, owner=99) for path, data in other.items()}
    state = "/brokers/topics/t/partitions/0/state"
    client.nodes[state].value = by_other = b'{"controller_epoch":2,"leader":-1,"version":1,"leader_epoch":1,"isr":[7]}'
    create(w, "meanwhile")
    w.pass_ms(ROUNDS_MS)
    assert client.nodes["/brokers/ids/7"].owner == client.client_id[0]
    assert {path: client.nodes[path].value for path in other} == other
    assert client.nodes[state].value == by_other
    assert list(there(client)) == ["t"]

    epoch = int(client.nodes["/controller_epoch"].value)
    del client.nodes["/controller"]
    w.pass_ms(ROUNDS_MS)
    assert value(client, "/controller")["brokerid"] == 7
    assert int(client.nodes["/controller_epoch"].value) == epoch + 1
    assert (value(client, state)["leader"], value(client, state)["controller_epoch"]) == (7, epoch + 1)
    assert there(client) == here(w) == {"meanwhile": (1, {}), "t": (1, {})}
    assert client.nodes["/brokers/ids/1"].value == other["/brokers/ids/1"]


def test_an_old_change_that_another_broker_removes_first_ends_no_round(
    client: KazooDouble, w: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Each broker removes changes that are older than a quarter of an hour."""
    old = f"{CHANGES}/config_change_0000000000"
    client.before_write = lambda path: client.delete(path) if path == old and old in client.nodes else None
    with client.tool():
        client.nodes[old] = Node(b'{"version":2,"entity_path":"topics/t"}', created_ms=1)
        tool_configures(client, "topics/t", {RETENTION: "5"})
    w.pass_ms(ROUNDS_MS)
    assert old not in client.nodes
    assert here(w) == {"t": (1, {RETENTION: "5"})}
    assert "tried again" not in caplog.text


def test_a_number_of_controllers_that_is_none_is_said_until_a_tool_mends_it(
    client: KazooDouble, w: World, caplog: pytest.LogCaptureFixture
) -> None:
    client.lose()
    client.find(expired=True)
    client.nodes["/controller_epoch"].value = b"many"
    w.pass_ms(ROUNDS_MS)
    assert "/controller_epoch: the value is not a number of controllers" in caplog.text
    assert w.broker.metrics.bugs == 0
    client.nodes["/controller_epoch"].value = b"41"
    w.pass_ms(ROUNDS_MS)
    assert client.nodes["/controller_epoch"].value == b"42"


def test_controllers_that_are_elected_at_once_have_different_numbers(client: KazooDouble, w: World) -> None:
    others = [b"41"]

    def elect(path: str) -> None:
        if path == "/controller_epoch" and others:
            client.set(path, others.pop())

    client.before_write = elect
    client.lose()
    client.find(expired=True)
    w.pass_ms(ROUNDS_MS)
    assert client.nodes["/controller_epoch"].value == b"42"


@pytest.mark.parametrize(
    ("release", "before", "after"),
    [
        ("1.1", b"", {"version": 1, "broker": 7, "block_start": "0", "block_end": "999"}),
        ("1.1", b"x", {"version": 1, "broker": 7, "block_start": "0", "block_end": "999"}),
        ("1.1", BLOCK, json.loads(BLOCK)),
        ("3.9", b"", None),
        ("3.9", BLOCK, json.loads(BLOCK)),
    ],
)
def test_the_producer_ids_that_are_given_away_are_shown(
    client: KazooDouble, release: str, before: bytes, after: dict[str, object] | None
) -> None:
    """A broker of Kafka does not start with an empty value. Those of another broker stay, and are left out here."""
    path = "/latest_producer_id_block"
    client.create(path, before)
    w = started(client, release=release)
    assert client.nodes[path].value is None if after is None else value(client, path) == after
    for _ in range(1001):
        w.ask("InitProducerId", 0, m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
    w.pass_ms(ROUNDS_MS)
    start = 7000 if before == BLOCK else 1000
    own = {"version": 1, "broker": 7, "block_start": str(start), "block_end": str(start + 999)}
    assert value(client, path) == own
