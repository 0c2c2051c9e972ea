"""Replicas with ends of their own: they fall behind and catch up, leave and join those in sync, and lead with what they
have.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from ottla.broker.watermark_policies import parse_policy
from ottla.coordinator.metadata import brokers
from ottla.coordinator.metadata.state import BROKER, TOPIC
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, fetch_message, produce_message
from ..support.node_world import cluster, create, happens, produce, records, state
from ..support.topic_world import set_policy
from ..support.world import Answer, World

LAG_MS = 30_000


@pytest.fixture
def w() -> World:
    return cluster()


def waiting(w: World, node: int, value: bytes = b"v", topic: str = "t", timeout_ms: int = 120_000) -> Answer:
    """A Produce with acks=all that is not answered at once."""
    before, w.dispatcher = w.dispatcher, w.dispatchers[node]
    answer = w.send("Produce", 10, produce_message(topic, batch(value), 0, -1, timeout_ms))
    w.dispatcher = before
    return answer


def code(answer: Answer) -> str:
    return Errors(answer.reply.responses[0].partition_responses[0].error_code).name


def ends(w: World, topic: str = "t") -> dict[int, tuple[int, bool]]:
    partition = w.broker.partitions.get(topic, 0)
    assert partition.replica_set is not None
    views = partition.replica_set.views(partition.end_offset, partition.follower.replicated)
    return {node: (end, follows) for node, end, follows in views}


def test_the_high_watermark_waits_for_the_replicas_in_sync(w: World) -> None:
    happens(w, "hold", 2)
    late = waiting(w, 1)
    assert not late.done
    assert produce(w, 1, acks=1).error_code == 0
    assert records(w, 1) == []
    assert ends(w) == {1: (2, True), 2: (0, False), 3: (2, True)}
    happens(w, "release", 2)
    assert code(late) == "NONE"
    assert records(w, 1) == [b"v", b"v"]


def test_a_replica_that_is_behind_for_too_long_is_out_of_sync(w: World) -> None:
    happens(w, "hold", 2)
    late = waiting(w, 1)
    w.pass_ms(LAG_MS - 1000)
    assert (state(w)[2], late.done) == ([1, 2, 3], False)
    w.pass_ms(LAG_MS)
    assert state(w) == (1, 0, [1, 3], [], [])
    assert code(late) == "NONE", "nothing waits for a replica that is out of sync"
    assert produce(w, 1).error_code == 0
    happens(w, "release", 2)
    assert state(w)[2] == [1, 2, 3]


def test_an_idle_replica_stays_in_sync(w: World) -> None:
    assert produce(w, 1).error_code == 0
    happens(w, "hold", 2)
    w.pass_ms(10 * LAG_MS)
    assert state(w)[2] == [1, 2, 3]


def test_a_policy_is_one_of_the_followers(w: World) -> None:
    set_policy(w, "t", "held")
    late = waiting(w, 1)
    w.pass_ms(2 * LAG_MS)
    assert state(w)[2] == [1]
    assert code(late) == "NONE"
    set_policy(w, "t", "immediate")
    w.pass_ms(1)
    assert state(w)[2] == [1, 2, 3]


@pytest.mark.long
def test_a_lag_below_the_limit_keeps_replicas_in_sync(w: World) -> None:
    set_policy(w, "t", "lag=200ms")
    for _ in range(400):
        produce(w, 1, acks=1)
        w.pass_ms(100)
    assert state(w)[2] == [1, 2, 3]


@pytest.mark.parametrize("node", [None, 2])
def test_appends_on_their_way_have_one_timer(w: World, node: int | None) -> None:
    policies, lag = w.broker.policies, parse_policy("lag=100ms")
    if node is None:
        policies.set("t", None, lag)
    else:
        policies.set_follower("t", None, node, lag)
    w.broker.turn.event(w.broker.replicas.configure)
    timers = len(w.schedule.timers)
    for _ in range(100):
        produce(w, 1, acks=1)
        w.pass_ms(10)
    assert w.broker.partitions.get("t", 0).high_watermark == 91
    assert len(w.schedule.timers) - timers < 10


def test_too_few_replicas_in_sync_refuse_acks_all(w: World) -> None:
    create(w, "safe", [1, 2, 3], min_insync_replicas="2")
    happens(w, "stop", 2)
    assert produce(w, 1, topic="safe").error_code == 0
    happens(w, "stop", 3)
    assert state(w, 0, "safe") == (1, 0, [1], [3], [])
    assert Errors(produce(w, 1, topic="safe").error_code).name == "NOT_ENOUGH_REPLICAS"
    assert produce(w, 1, topic="safe", acks=1).error_code == 0
    assert records(w, 1, topic="safe") == [b"v"], "nothing is committed with too few replicas"
    happens(w, "begin", 3)
    assert state(w, 0, "safe") == (1, 0, [1, 3], [], [])
    assert records(w, 1, topic="safe") == [b"v", b"v"]


def test_records_that_wait_when_replicas_leave_wait_on(w: World) -> None:
    create(w, "safe", [1, 2], min_insync_replicas="2")
    happens(w, "hold", 2)
    late = waiting(w, 1, topic="safe", timeout_ms=2 * LAG_MS)
    w.pass_ms(LAG_MS + LAG_MS // 2 + 1)
    assert state(w, 0, "safe") == (1, 0, [1], [2], [])
    assert not late.done
    w.pass_ms(LAG_MS)
    assert code(late) == "REQUEST_TIMED_OUT"


def test_an_eligible_replica_is_elected_before_any_other(w: World) -> None:
    """Both have left; 3 left last and has all committed records."""
    create(w, "safe", [1, 2, 3], min_insync_replicas="2")
    happens(w, "stop", 1)
    happens(w, "stop", 2)
    assert produce(w, 3, topic="safe", acks=1).error_code == 0
    happens(w, "stop", 3)
    assert state_of(w, "safe") == (-1, [], [2, 3], [3])
    happens(w, "begin", 1)
    assert state_of(w, "safe")[0] == -1
    happens(w, "begin", 2)
    assert state_of(w, "safe")[:2] == (2, [1, 2])


@pytest.mark.parametrize("where", ["topic", "cluster"])
def test_no_replica_is_eligible_after_a_change_of_how_many_must_be_in_sync(w: World, where: str) -> None:
    """Node 2 left when nothing more was committed; it has not what is committed since (ClearElrRecord)."""
    create(w, "safe", [1, 2], **({"min_insync_replicas": "2"} if where == "topic" else {}))
    if where == "cluster":
        configure(w, BROKER, "", **{"min.insync.replicas": "2"})
    happens(w, "stop", 2)
    assert produce(w, 1, topic="safe", acks=1).error_code == 0
    assert (state_of(w, "safe"), records(w, 1, topic="safe")) == ((1, [1], [2], []), [])
    before = w.broker.image.partitions[w.broker.image.topics["safe"].id, 0].partition_epoch
    kind, name = (TOPIC, "safe") if where == "topic" else (BROKER, "")
    configure(w, kind, name, **{"min.insync.replicas": "1"})
    assert (state_of(w, "safe"), records(w, 1, topic="safe")) == ((1, [1], [], []), [b"v"])
    assert w.broker.image.partitions[w.broker.image.topics["safe"].id, 0].partition_epoch == before + 1
    happens(w, "stop", 1)
    happens(w, "begin", 2)
    assert state_of(w, "safe")[0] == -1
    happens(w, "begin", 1)
    assert (state_of(w, "safe")[0], records(w, 1, topic="safe")) == (1, [b"v"])


def configure(w: World, kind: int, name: str, **values: str) -> None:
    r = m.IncrementalAlterConfigsRequest
    configs = [r.AlterableConfig(name=key, config_operation=0, value=value) for key, value in values.items()]
    resource = r.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    assert w.ask("IncrementalAlterConfigs", 1, r(resources=[resource])).responses[0].error_code == 0


def state_of(w: World, name: str) -> tuple[int, list[int], list[int], list[int]]:
    topic = w.broker.image.topics[name]
    found = w.broker.image.partitions[topic.id, 0]
    return found.leader, list(found.isr), list(found.elr), list(found.last_known_elr)


def test_an_elected_replica_cuts_the_log_where_its_own_ends(w: World) -> None:
    """What no follower had is gone; what was committed is not."""
    assert produce(w, 1, value=b"committed").error_code == 0
    happens(w, "hold", 2)
    late = waiting(w, 1, b"not committed")
    happens(w, "fence", 1)
    assert state(w)[:3] == (2, 1, [2, 3])
    assert code(late) == "NOT_LEADER_OR_FOLLOWER"
    w.pass_ms(10)
    assert records(w, 2) == [b"committed"]
    assert produce(w, 2, value=b"next", acks=1).error_code == 0
    log = w.broker.partitions.get("t", 0).open_log()
    assert (log.end_offset, log.epochs.entries) == (2, [(0, 0), (1, 1)])


def test_a_consumer_finds_where_the_logs_diverge(w: World) -> None:
    assert produce(w, 1).error_code == 0
    happens(w, "hold", 2)
    produce(w, 1, acks=1)
    happens(w, "fence", 1)
    w.pass_ms(10)
    r = m.OffsetForLeaderEpochRequest
    wanted = r.OffsetForLeaderPartition(partition=0, current_leader_epoch=1, leader_epoch=0)
    request = r(topics=[r.OffsetForLeaderTopic(topic="t", partitions=[wanted])], replica_id=-1)
    found = w.at(2, "OffsetForLeaderEpoch", 4, request).topics[0].partitions[0]
    assert (found.leader_epoch, found.end_offset) == (0, 1)
    message = fetch_message("t", 2)
    part = message.topics[0].partitions[0]
    part.current_leader_epoch, part.last_fetched_epoch = 1, 0
    diverged = w.at(2, "Fetch", 12, message).responses[0].partitions[0].diverging_epoch
    assert (diverged.epoch, diverged.end_offset) == (0, 1)


def test_an_unclean_election_loses_committed_records(w: World, caplog: pytest.LogCaptureFixture) -> None:
    create(w, "loose", [1, 2], unclean_leader_election_enable="true")
    happens(w, "hold", 2)
    produce(w, 1, topic="loose", acks=1)
    w.pass_ms(2 * LAG_MS)
    assert state(w, 0, "loose")[2] == [1]
    assert records(w, 1, topic="loose") == [b"v"]
    happens(w, "stop", 1)
    assert state(w, 0, "loose") == (2, 1, [2], [], [])
    w.pass_ms(10)
    assert records(w, 2, topic="loose") == []
    assert "1 records that were committed are lost" in caplog.text


def test_a_producer_whose_batch_was_cut_may_send_it_again(w: World) -> None:
    """The state of producers is that of the log that is left."""
    data = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0)
    message = produce_message("t", data, 0, 1)
    happens(w, "hold", 2)
    assert w.at(1, "Produce", 10, message).responses[0].partition_responses[0].base_offset == 0
    happens(w, "fence", 1)
    w.pass_ms(10)
    assert w.broker.partitions.get("t", 0).open_log().producers.by_id == {}
    answer = w.at(2, "Produce", 10, message).responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset) == (0, 0)


def test_a_killed_coordinator_serves_no_one(w: World) -> None:
    request = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    node = w.ask("FindCoordinator", 4, request).coordinators[0].node_id
    assert [host for host in w.broker.groups.hosts.values() if host.partition.leader == node]
    happens(w, "kill", node)
    assert not [host for host in w.broker.groups.hosts.values() if host.partition.leader == node]


def test_each_node_describes_its_own_replicas(w: World) -> None:
    def described(node: int) -> dict[tuple[str, int], tuple[int, int]]:
        request = m.DescribeLogDirsRequest(topics=None)
        (found,) = w.at(node, "DescribeLogDirs", 4, request).results
        return {
            (topic.name, one.partition_index): (one.partition_size, one.offset_lag)
            for topic in found.topics
            for one in topic.partitions
        }

    size = len(batch(b"v"))
    assert produce(w, 1).error_code == 0
    happens(w, "hold", 3)
    produce(w, 1, acks=1)
    w.pass_ms(2 * LAG_MS)
    assert described(1)["t", 0] == described(2)["t", 0] == (2 * size, 0)
    assert described(3)["t", 0] == (size, 1)
    assert {name for name, _ in described(1)} == {"t"}
    assert {name for name, _ in described(3)} == {"t", "one", "two"}


def test_a_producer_that_waits_for_a_follower_hears_of_the_next_leader(w: World) -> None:
    """Also where that one has the whole log, and nothing is cut."""
    happens(w, "hold", 3)
    late = waiting(w, 1)
    happens(w, "fence", 1)
    assert state(w)[:2] == (2, 1)
    assert code(late) == "NOT_LEADER_OR_FOLLOWER"
    assert w.broker.partitions.get("t", 0).end_offset == 1


@pytest.mark.parametrize(("is_outdated", "before"), [(True, "unfence"), (False, "fence")])
def test_an_outdated_leader_and_a_fenced_replica_change_nothing(w: World, is_outdated: bool, before: str) -> None:
    happens(w, "stop", 2)
    happens(w, "begin", 2)
    happens(w, before, 3)
    key = w.broker.image.topics["t"].id, 0
    known = w.broker.image.partitions[key]
    asked = replace(known, partition_epoch=known.partition_epoch - 1) if is_outdated else known
    isr = (1, 2) if is_outdated else (1, 2, 3)
    w.broker.metadata.submit(lambda: brokers.alter_isr(w.broker.metadata.controller, {key: (asked, isr)}))
    w.broker.turn.settle()
    w.pass_ms(1)
    assert w.broker.image.partitions[key] == known


def test_the_last_leader_keeps_its_end_when_no_one_can_lead_after_it(w: World) -> None:
    """It was alone in sync, and others have less."""
    set_policy(w, "t", "held")
    late = waiting(w, 1, b"committed")
    w.pass_ms(2 * LAG_MS)
    assert code(late) == "NONE"
    happens(w, "stop", 1)
    assert state(w)[0] == -1
    happens(w, "begin", 1)
    assert state(w)[:3] == (1, 2, [1])
    assert records(w, 1) == [b"committed"]


def test_the_high_watermark_waits_for_a_replica_that_is_about_to_be_in_sync(w: World) -> None:
    """What is appended while the controller decides would be committed without it (KIP-497)."""
    set_policy(w, "t", f"lag={2 * LAG_MS}ms")
    produce(w, 1, acks=1)
    w.pass_ms(2 * LAG_MS - 1)
    assert state(w)[2] == [1]
    partition = w.broker.partitions.get("t", 0)
    assert partition.replica_set is not None
    for _ in range(10):
        w.pass_ms(1)
        if partition.replica_set.asked:
            break
    late = waiting(w, 1)
    assert (state(w)[2], late.done) == ([1], False)
    w.pass_ms(10)
    assert (state(w)[2], late.done, partition.high_watermark) == ([1, 2, 3], False, 1)
    assert partition.replica_set.asked == []


def test_a_group_commits_when_enough_replicas_are_in_sync_again() -> None:
    """Its coordinator appends as with acks=1; whoever waited in vain is told so, and what was appended counts later."""
    w = cluster(offsets_topic_num_partitions="1")
    create(w, "__consumer_offsets", [1, 2, 3], min_insync_replicas="2", cleanup_policy="compact")
    w.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    for node in (2, 3):
        happens(w, "stop", node)
    c = m.OffsetCommitRequest
    part = c.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    commit = c(group_id="g", topics=[c.OffsetCommitRequestTopic(name="t", partitions=[part])])
    w.dispatcher = w.dispatchers[1]
    late = w.send("OffsetCommit", 8, commit)
    assert not late.done
    w.pass_ms(5_000)
    assert Errors(late.reply.topics[0].partitions[0].error_code).name == "COORDINATOR_NOT_AVAILABLE"
    r = m.OffsetFetchRequest
    asked = r(groups=[r.OffsetFetchRequestGroup(group_id="g", topics=None)])
    assert w.ask("OffsetFetch", 8, asked).groups[0].topics == []
    happens(w, "begin", 2)
    (found,) = w.ask("OffsetFetch", 8, asked).groups[0].topics
    assert found.partitions[0].committed_offset == 7


def test_a_replica_that_another_change_kept_out_is_in_sync_soon(w: World) -> None:
    """Its leader asks with an epoch that is not that of the controller any more, hears so, and asks again."""
    create(w, "late", [1, 2], min_insync_replicas="2")
    happens(w, "hold", 2)
    assert produce(w, 1, topic="late", acks=1).error_code == 0
    w.pass_ms(60_000)
    assert state(w, name="late")[2:4] == ([1], [2])
    r = m.IncrementalAlterConfigsRequest
    config = r.AlterableConfig(name="min.insync.replicas", config_operation=0, value="1")
    resource = r.AlterConfigsResource(resource_type=2, resource_name="late", configs=[config])
    w.send("IncrementalAlterConfigs", 1, r(resources=[resource]))
    happens(w, "release", 2)
    w.pass_ms(10)
    assert state(w, name="late")[2:4] == ([1, 2], [])
