"""Replicas stay where they were when the process ends, and lead with what they have after the next start."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.replica import replica_ends
from ottla.broker.replica.followers import Reach
from ottla.protocol import messages as m

from ..support.node_world import cluster, create, happens, produce, records, state
from ..support.topic_world import set_policy
from ..support.world import World

LAG_MS = 30_000
FILE = f"/data/{replica_ends.FILE}"


def again(w: World, clean: bool = True, **settings: str) -> World:
    """The next start; after a crash of the process, whose files stay, if it was not stopped."""
    if clean:
        assert w.broker.stop() is None
    return World(w.files, 1, **{"ottla_nodes": "3", **settings})


def ends(w: World, name: str = "s") -> dict[int, int]:
    partition = w.broker.partitions.get(name, 0)
    assert partition.replica_set is not None
    views = partition.replica_set.views(partition.end_offset, partition.followers_reach.end)
    return {node: end for node, end, _ in views}


def behind(unclean: str = "true") -> World:
    """Node 1 left when the log had one record; now it has three, and node 1 is out of sync."""
    w = cluster()
    create(w, "s", [2, 3, 1], unclean_leader_election_enable=unclean)
    for node in (None, 1, None):
        assert produce(w, 2, topic="s").error_code == 0
        if node is not None:
            happens(w, "stop", node)
            assert produce(w, 2, topic="s").error_code == 0
    assert state(w, 0, "s") == (2, 0, [2, 3], [], [])
    assert ends(w) == {2: 4, 3: 4, 1: 2}
    return w


def test_a_replica_that_was_behind_leads_with_what_it_had() -> None:
    w = again(behind(), ottla_nodes="1")
    w.pass_ms(10)
    assert state(w, 0, "s")[0] == 1
    assert records(w, 1, topic="s") == [b"v", b"v"]
    (loss,) = w.broker.replicas.leaders.losses
    assert (loss.first_offset, loss.end_offset, loss.committed) == (2, 4, 2)


def test_a_replica_that_was_behind_catches_up() -> None:
    w = again(behind(), ottla_high_watermark="s:held")
    assert ends(w)[1] == 2
    set_policy(w, "s", "immediate")
    w.pass_ms(1000)
    assert ends(w) == {2: 4, 3: 4, 1: 4}
    assert state(w, 0, "s")[2] == [1, 2, 3]
    w = again(w, ottla_nodes="1")
    assert len(records(w, 1, topic="s")) == 4, "it had caught up"


def test_a_replica_without_leader_stays_where_it_was() -> None:
    w = again(behind("false"), ottla_nodes="1")
    assert (state(w, 0, "s")[0], ends(w)) == (-1, {2: 4, 3: 4, 1: 2})
    w = again(w)
    w.pass_ms(10)
    assert (state(w, 0, "s")[0], len(records(w, 2, topic="s"))) == (2, 4)


def test_a_replica_in_sync_that_was_behind_leads_with_what_is_committed() -> None:
    w = cluster()
    create(w, "s", [2, 1])
    assert produce(w, 2, topic="s").error_code == 0
    happens(w, "hold", 1)
    assert produce(w, 2, topic="s", acks=1).error_code == 0
    w = again(w, ottla_nodes="1")
    assert (state(w, 0, "s")[0], records(w, 1, topic="s"), ends(w)) == (1, [b"v"], {2: 1, 1: 1})


@pytest.mark.parametrize(("stays", "left"), [(True, 2), (False, 4)], ids=["out of sync", "in sync again"])
def test_after_a_crash_a_replica_out_of_sync_is_where_it_was(stays: bool, left: int) -> None:
    w = behind()
    if not stays:
        happens(w, "begin", 1)
        w.pass_ms(10)
        assert state(w, 0, "s")[2] == [1, 2, 3]
        happens(w, "stop", 2)
        happens(w, "stop", 3)
    w = again(w, clean=False, ottla_high_watermark="s:held")
    assert ends(w)[1] == left


def test_a_log_that_another_broker_has_served_since_has_all_replicas_in_sync() -> None:
    """The file is one of an earlier shutdown: the mark of the last one has another epoch."""
    w = cluster()
    create(w, "s", [2, 1])
    happens(w, "hold", 1)
    assert produce(w, 2, topic="s", acks=1).error_code == 0
    assert w.broker.stop() is None
    w.files.replace("/data/.kafka_cleanshutdown", b'{"version":0,"brokerEpoch":99}')
    w = again(w, clean=False, ottla_nodes="1")
    assert (state(w, 0, "s")[0], records(w, 1, topic="s")) == (1, [b"v"])


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"format":2}', b'{"format":1,"brokerEpoch":1,"replicas":[["x",0,1,2,3]]}']
)
def test_a_damaged_file_is_passed_over(data: bytes, caplog: Any) -> None:
    w = behind()
    assert w.broker.stop() is None
    w.files.replace(FILE, data)
    w = again(w, clean=False)
    w.pass_ms(10)
    assert ends(w) == {2: 4, 3: 4, 1: 4}
    assert "the replicas have their whole logs" in caplog.text


def test_a_deleted_topic_leaves_nothing() -> None:
    w = behind()
    key = w.broker.image.topics["s"].id, 0
    w.broker.replicas.save_checkpoints()
    assert replica_ends.decode(w.files.read(FILE))[0][key] == {1: Reach(2, 2)}
    w.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["s"], timeout_ms=1000))
    w.broker.replicas.save_checkpoints()
    assert key not in replica_ends.decode(w.files.read(FILE))[0]


def test_one_node_has_no_such_file() -> None:
    w = World()
    create(w, "s", [1])
    assert produce(w, 1, topic="s").error_code == 0
    assert w.broker.stop() is None
    assert not w.files.exists(FILE)


def safe(w: World) -> None:
    """A partition whose replicas out of sync are eligible."""
    create(w, "s", [1, 3], [3, 1], min_insync_replicas="2")
    assert [produce(w, node, index, topic="s").error_code for index, node in enumerate((1, 3))] == [0, 0]


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize("down_ms", [10_000, 100], ids=["fenced", "in sync"])
def test_a_node_that_was_killed_has_crashed_for_the_next_process(clean: bool, down_ms: int) -> None:
    """Its replicas are neither in sync nor eligible when it registers (KIP-966), as if the process had gone on."""
    w = cluster()
    safe(w)
    happens(w, "kill", 3)
    w.pass_ms(down_ms)
    assert [set(state(w, index, "s")[2]) for index in (0, 1)] == ([{1}] * 2 if down_ms == 10_000 else [{1, 3}] * 2)
    w = again(w, clean, ottla_high_watermark="s:held")
    assert [state(w, index, "s")[0] for index in (0, 1)] == [1, 1]
    assert [state(w, index, "s")[2:] for index in (0, 1)] == [([1], [], [])] * 2
    assert not w.broker.image.brokers[3].fenced
    assert w.broker.log_directories.crashed == set()


def test_a_node_that_was_killed_and_came_back_has_not_crashed_for_the_next_process() -> None:
    w = cluster()
    safe(w)
    happens(w, "kill", 3)
    w.pass_ms(10_000)
    happens(w, "begin", 3)
    w.pass_ms(10)
    w = again(w, ottla_high_watermark="s:held")
    assert [set(state(w, index, "s")[2]) for index in (0, 1)] == [{1, 3}] * 2


def test_a_node_that_was_killed_has_crashed_until_it_registers() -> None:
    """It is no part of the next process, and of the one after."""
    w = cluster()
    create(w, "s", [1, 2, 3], min_insync_replicas="3")
    happens(w, "kill", 3)
    w.pass_ms(10_000)
    assert state(w, 0, "s")[2:] == ([1, 2], [3], [])
    w = again(w, ottla_nodes="2")
    assert state(w, 0, "s")[2:] == ([1, 2], [3], [])
    w = again(w, ottla_high_watermark="s:held")
    assert state(w, 0, "s")[2:] == ([1, 2], [], [])
