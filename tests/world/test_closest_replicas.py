"""Clients read from followers: from version 11 on of Fetch, and where the leader sends them by their rack (KIP-392)."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.config.config import ConfigError
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, fetch_message, produce_message, values
from ..support.node_world import cluster, happens, produce, state
from ..support.topic_world import set_policy
from ..support.world import World

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LAG_MS = 30_000


@pytest.fixture
def w() -> World:
    found = cluster(ottla_nodes_racks="a,b,c", replica_selector_class=SELECTOR)
    for value in (b"1", b"2"):
        assert produce(found, 1, value=value).error_code == 0
    return found


def fetch(w: World, node: int, offset: int = 0, rack: str = "", version: int = 11, **fields: Any) -> Any:
    message = fetch_message("t", offset, 0)
    message.rack_id = rack
    for name, value in fields.items():
        setattr(message, name, value)
    return w.at(node, "Fetch", version, message).responses[0].partitions[0]


def told(w: World, node: int, *args: Any, **named: Any) -> tuple[str, int, list[bytes | None]]:
    """The error, the preferred replica, and the records."""
    found = fetch(w, node, *args, **named)
    return Errors(found.error_code).name, found.preferred_read_replica, values(found.records or b"")


BOTH: list[bytes | None] = [b"1", b"2"]


@pytest.mark.parametrize(("rack", "replica"), [("", -1), ("a", -1), ("b", 2), ("c", 3), ("elsewhere", -1)])
def test_the_leader_sends_a_client_to_a_replica_in_its_rack(w: World, rack: str, replica: int) -> None:
    assert told(w, 1, 0, rack) == ("NONE", replica, BOTH if replica < 0 else [])
    found = fetch(w, 1, 0, rack, isolation_level=1)
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (2, 2, 0)
    assert found.aborted_transactions == ([] if replica < 0 else None)


def test_a_follower_serves_what_it_has(w: World) -> None:
    assert told(w, 2, rack="b") == ("NONE", -1, BOTH)
    assert told(w, 2, rack="c") == ("NONE", -1, BOTH), "only leaders choose"
    assert told(w, 2, 2) == ("NONE", -1, [])
    assert told(w, 2, 3) == ("OFFSET_OUT_OF_RANGE", -1, [])


@pytest.mark.parametrize("version", [4, 10, 11, 12])
def test_clients_of_old_versions_read_from_leaders_only(w: World, version: int) -> None:
    assert told(w, 2, version=version)[0] == ("NONE" if version >= 11 else "NOT_LEADER_OR_FOLLOWER")
    assert told(w, 1, 0, "b", version) == ("NONE", 2 if version >= 11 else -1, [] if version >= 11 else BOTH)


def test_replicas_do_not_read_from_followers(w: World) -> None:
    assert told(w, 2, replica_id=3)[0] == "NOT_LEADER_OR_FOLLOWER"
    assert told(w, 2, replica_id=-2) == ("NONE", -1, BOTH)


def test_the_leader_gives_a_replica_what_is_not_committed(w: World) -> None:
    """Also in a session; and who is no replica gets nothing."""
    happens(w, "hold", 2)
    message = fetch_message("t", 2, 0)
    message.replica_id, message.session_epoch = 3, 0
    opened = w.at(1, "Fetch", 11, message)
    assert produce(w, 1, value=b"3", acks=1).error_code == 0
    assert told(w, 1, 2) == ("NONE", -1, [])
    assert told(w, 1, 2, replica_id=2) == ("NONE", -1, [b"3"])
    assert told(w, 1, 2, replica_id=2, isolation_level=1) == ("NONE", -1, [b"3"]), "followers have no isolation"
    assert fetch(w, 1, 2, replica_id=2).high_watermark == 2, "it moves nothing"
    message.session_id, message.session_epoch, message.topics = opened.session_id, 1, []
    assert values(w.at(1, "Fetch", 11, message).responses[0].partitions[0].records) == [b"3"]
    for stranger in (1, 7):
        assert told(w, 1, 2, replica_id=stranger) == ("NOT_LEADER_OR_FOLLOWER", -1, [])


def test_the_follower_knows_the_epoch(w: World) -> None:
    message = fetch_message("t", 0, 0)
    message.topics[0].partitions[0].current_leader_epoch = 1
    assert w.at(2, "Fetch", 11, message).responses[0].partitions[0].error_code == Errors.UNKNOWN_LEADER_EPOCH


def test_a_node_without_a_replica_serves_nothing(w: World) -> None:
    message = fetch_message("one", 0, 0)
    assert w.at(2, "Fetch", 11, message).responses[0].partitions[0].error_code == Errors.NOT_LEADER_OR_FOLLOWER


def test_a_follower_does_not_know_of_what_it_did_not_fetch(w: World) -> None:
    happens(w, "hold", 2)
    assert produce(w, 1, value=b"3", acks=1).error_code == 0
    assert told(w, 1) == ("NONE", -1, BOTH), "it waits for the follower, which is in sync"
    w.pass_ms(2 * LAG_MS)
    assert state(w)[2] == [1, 3]
    assert told(w, 1)[2] == [b"1", b"2", b"3"]
    assert told(w, 2, 2) == ("NONE", -1, [])
    assert told(w, 2, 3) == ("OFFSET_OUT_OF_RANGE", -1, [])
    assert fetch(w, 2, 2).high_watermark == 2
    assert told(w, 1, 0, "b") == ("NONE", -1, [b"1", b"2", b"3"]), "a replica out of sync is never chosen"
    happens(w, "release", 2)
    assert told(w, 1, 0, "b")[1] == 2
    assert told(w, 2)[2] == [b"1", b"2", b"3"]


def test_a_replica_in_sync_that_does_not_have_the_offset_is_not_chosen(w: World) -> None:
    happens(w, "hold", 2)
    assert produce(w, 1, value=b"3", acks=1).error_code == 0
    assert [told(w, 1, offset, "b")[1] for offset in (2, 3)] == [2, -1]


def test_a_fenced_node_is_not_chosen(w: World) -> None:
    happens(w, "fence", 2)
    assert told(w, 1, 0, "b") == ("NONE", -1, BOTH)
    happens(w, "unfence", 2)
    assert told(w, 1, 0, "b")[1] == 2


def test_without_a_selector_no_client_is_sent_away() -> None:
    w = cluster(ottla_nodes_racks="a,b,c")
    assert produce(w, 1).error_code == 0
    assert told(w, 1, 0, "b") == ("NONE", -1, [b"v"])
    assert told(w, 2, 0, "b") == ("NONE", -1, [b"v"]), "but who comes may read"


def test_another_selector_is_refused() -> None:
    with pytest.raises(ConfigError, match="RackAwareReplicaSelector"):
        cluster(replica_selector_class="org.example.Mine")


def test_uncommitted_transactions_and_aborted_ones_are_the_same_on_a_follower(w: World) -> None:
    assert fetch(w, 2, isolation_level=1).aborted_transactions == []
    assert fetch(w, 2, isolation_level=1).last_stable_offset == 2


def test_a_fetch_that_waits_at_a_follower_gets_what_comes(w: World) -> None:
    waits = waiting(w, 2, 2)
    assert not waits.done
    assert produce(w, 1, value=b"3").error_code == 0
    assert values(waits.reply.responses[0].partitions[0].records) == [b"3"]


def test_a_fetch_waits_at_a_follower_until_that_has_the_records(w: World) -> None:
    happens(w, "hold", 2)
    assert produce(w, 1, value=b"3", acks=1).error_code == 0
    w.pass_ms(2 * LAG_MS)
    waits = waiting(w, 2, 2)
    assert produce(w, 1, value=b"4").error_code == 0
    assert not waits.done, "the leader's high watermark moved, the follower's did not"
    happens(w, "release", 2)
    assert values(waits.reply.responses[0].partitions[0].records) == [b"3", b"4"]


def test_a_fetch_that_waits_at_the_leader_is_sent_to_a_replica_that_joins(w: World) -> None:
    happens(w, "fence", 2)
    waits = waiting(w, 1, 2, "b")
    assert not waits.done
    happens(w, "unfence", 2)
    assert waits.reply.responses[0].partitions[0].preferred_read_replica == 2


def waiting(w: World, node: int, offset: int, rack: str = "") -> Any:
    """A Fetch that waits for a record."""
    message = fetch_message("t", offset, 0)
    message.rack_id, message.max_wait_ms, message.min_bytes = rack, 500_000, 1
    before, w.dispatcher = w.dispatcher, w.dispatchers[node]
    answer = w.send("Fetch", 11, message)
    w.dispatcher = before
    return answer


def test_sessions_at_leader_and_follower(w: World) -> None:
    """The leader says it again in each fetch; the follower tells what is new, also when it had fallen behind."""

    def ask(node: int, session: int, epoch: int, named: bool = True) -> Any:
        message = fetch_message("t", 2, 0)
        message.rack_id, message.session_id, message.session_epoch = "b", session, epoch
        if not named:
            message.topics = []
        return w.at(node, "Fetch", 11, message)

    first = ask(1, 0, 0)
    assert first.responses[0].partitions[0].preferred_read_replica == 2
    again = ask(1, first.session_id, 1, named=False)
    assert again.responses[0].partitions[0].preferred_read_replica == 2
    opened = ask(2, 0, 0)
    assert ask(2, opened.session_id, 1, named=False).responses == []
    happens(w, "hold", 2)
    assert produce(w, 1, value=b"3", acks=1).error_code == 0
    w.pass_ms(2 * LAG_MS)
    assert ask(2, opened.session_id, 2, named=False).responses == []
    happens(w, "release", 2)
    assert values(ask(2, opened.session_id, 3, named=False).responses[0].partitions[0].records) == [b"3"]


def test_offsets_are_the_leaders_to_tell_but_for_debuggers(w: World) -> None:
    r = m.ListOffsetsRequest

    def listed(replica: int) -> tuple[str, int]:
        wanted = r.ListOffsetsTopic(name="t", partitions=[r.ListOffsetsPartition(partition_index=0, timestamp=-1)])
        found = w.at(2, "ListOffsets", 7, r(replica_id=replica, topics=[wanted])).topics[0].partitions[0]
        return Errors(found.error_code).name, found.offset

    happens(w, "hold", 2)
    assert produce(w, 1, value=b"3", acks=1).error_code == 0
    assert listed(-1) == ("NOT_LEADER_OR_FOLLOWER", -1)
    assert listed(-2) == ("NONE", 2)


def test_a_new_replica_serves_what_it_has_already(w: World) -> None:
    set_policy(w, "two", "held")
    message = produce_message("two", batch(b"v"), 0, 1)
    w.at(3, "Produce", 10, message)
    a = m.AlterPartitionReassignmentsRequest
    parts = [a.ReassignablePartition(partition_index=0, replicas=[3, 1])]
    w.ask("AlterPartitionReassignments", 1, a(topics=[a.ReassignableTopic(name="two", partitions=parts)]))
    found = w.at(1, "Fetch", 11, fetch_message("two", 0, 0)).responses[0].partitions[0]
    assert (found.error_code, found.high_watermark, len(found.records or b"")) == (0, 0, 0)
