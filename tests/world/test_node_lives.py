"""Nodes stop, are killed, pause and start: leaders, replicas in sync and coordinators move, and nothing is lost."""

from __future__ import annotations

import pytest
from ottla.broker.config.nodes import Node, NodeRefused
from ottla.broker.later import drive
from ottla.coordinator.metadata.state import TOPIC
from ottla.protocol import messages as m
from ottla.protocol.errors import ApiError, Errors

from ..support.ask import batch, fetch_message, produce_message
from ..support.node_world import cluster, configure, happens, produce, records, state
from ..support.topic_world import set_policy
from ..support.world import World


@pytest.fixture
def w() -> World:
    return cluster()


def test_others_lead_before_a_node_stops(w: World) -> None:
    assert produce(w, 1, 0).error_code == 0
    happens(w, "stop", 1)
    assert state(w, 0) == (2, 1, [2, 3], [], [])
    assert state(w, 1) == (2, 0, [2, 3], [], [])
    assert produce(w, 2, 0, b"w").error_code == 0
    assert records(w, 2, 0) == [b"v", b"w"]
    found = w.at(2, "Metadata", 12, m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="t")]))
    assert [one.node_id for one in found.brokers] == [2, 3]
    assert [list(one.offline_replicas) for one in found.topics[0].partitions] == [[1], [1]]
    fenced = w.at(2, "DescribeCluster", 2, m.DescribeClusterRequest(include_fenced_brokers=True)).brokers
    assert [(one.broker_id, one.is_fenced) for one in fenced] == [(1, True), (2, False), (3, False)]


def test_a_node_that_starts_again_comes_into_sync_and_leads_nothing(w: World) -> None:
    happens(w, "stop", 1)
    epoch = w.broker.image.brokers[1].epoch
    happens(w, "begin", 1)
    assert state(w, 0) == (2, 1, [1, 2, 3], [], [])
    assert state(w, 1) == (2, 0, [1, 2, 3], [], [])
    assert w.broker.image.brokers[1].epoch > epoch
    assert not w.broker.image.brokers[1].fenced
    log = w.broker.metadata.partition.open_log()
    assert w.broker.image.brokers[1].epoch < log.end_offset


def test_the_only_replica_leaves_its_partition_without_a_leader(w: World) -> None:
    assert produce(w, 3, 0, topic="one").error_code == 0
    happens(w, "stop", 3)
    assert state(w, 0, "one") == (-1, 1, [], [3], [3])
    assert produce(w, 2, 0, topic="one").error_code == Errors.NOT_LEADER_OR_FOLLOWER
    happens(w, "begin", 3)
    assert state(w, 0, "one") == (3, 2, [3], [], [])
    assert records(w, 3, 0, "one") == [b"v"]


def test_a_killed_node_leads_until_its_session_has_expired(w: World) -> None:
    happens(w, "kill", 1)
    assert state(w, 0) == (1, 0, [1, 2, 3], [], [])
    w.pass_ms(8_000)
    assert state(w, 0) == (1, 0, [1, 2, 3], [], [])
    w.pass_ms(1_100)
    assert state(w, 0) == (2, 1, [2, 3], [], [])


def test_a_killed_node_that_is_back_soon_has_lost_its_place(w: World) -> None:
    """Kafka's controller hears of the crash when the node registers."""
    happens(w, "kill", 1)
    happens(w, "begin", 1)
    assert state(w, 0) == (2, 1, [1, 2, 3], [], [])
    w.pass_ms(20_000)
    assert state(w, 0) == (2, 1, [1, 2, 3], [], []), "the old session does not expire"


def test_a_paused_node_is_fenced_and_comes_back(w: World) -> None:
    happens(w, "pause", 1)
    w.pass_ms(9_100)
    assert state(w, 0) == (2, 1, [2, 3], [], [])
    happens(w, "resume", 1)
    assert state(w, 0) == (2, 1, [1, 2, 3], [], [])


def test_a_short_pause_changes_nothing(w: World) -> None:
    happens(w, "pause", 1)
    w.pass_ms(5_000)
    happens(w, "resume", 1)
    w.pass_ms(20_000)
    assert state(w, 0) == (1, 0, [1, 2, 3], [], [])


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_followers_get_nothing_more_of_a_leader_that_is_silent(w: World, how: str) -> None:
    set_policy(w, "t", "lag=500ms")
    assert produce(w, 1, value=b"old").error_code == 0
    assert produce(w, 1, value=b"not copied", acks=1).error_code == 0
    happens(w, how, 1)
    w.pass_ms(10_000)
    assert state(w)[0] == 2
    assert records(w, 2) == [b"old"]
    assert [loss.end_offset - loss.first_offset for loss in w.broker.replicas.leaders.losses] == [1]
    assert produce(w, 2, value=b"new").error_code == 0, "they follow the next leader"
    assert records(w, 2) == [b"old", b"new"]


def test_followers_get_what_a_log_that_was_cut_has_kept(w: World) -> None:
    """Without another append: a producer may wait for what it has sent already."""
    set_policy(w, "t", "lag=500ms")
    assert produce(w, 1, value=b"old").error_code == 0
    happens(w, "hold", 3)
    assert produce(w, 1, value=b"at 2", acks=1).error_code == 0
    w.pass_ms(600)
    assert produce(w, 1, value=b"not copied", acks=1).error_code == 0
    happens(w, "kill", 1)
    w.pass_ms(10_000)
    assert state(w)[:3] == (2, 1, [2, 3])
    assert records(w, 2) == [b"old"]
    happens(w, "release", 3)
    w.pass_ms(600)
    assert records(w, 2) == [b"old", b"at 2"]


def test_followers_go_on_after_a_short_pause_of_their_leader(w: World) -> None:
    set_policy(w, "t", "lag=500ms")
    assert produce(w, 1, acks=1).error_code == 0
    happens(w, "pause", 1)
    w.pass_ms(5_000)
    assert w.broker.partitions.by_name["t", 0].high_watermark == 0
    happens(w, "resume", 1)
    w.pass_ms(600)
    assert records(w, 1) == [b"v"]
    assert state(w)[2] == [1, 2, 3]


@pytest.mark.parametrize(
    ("before", "what"), [("", "begin"), ("", "resume"), ("stop", "stop"), ("stop", "kill"), ("pause", "stop")]
)
def test_what_a_node_cannot_do_now_is_refused(w: World, before: str, what: str) -> None:
    if before:
        happens(w, before, 1)
    with pytest.raises(NodeRefused, match="node 1 is"):
        happens(w, what, 1)


def test_a_waiting_producer_hears_that_the_leader_has_moved(w: World) -> None:
    set_policy(w, "t", "held")
    w.dispatcher = w.dispatchers[1]
    waiting = w.send("Produce", 10, produce_message("t", batch(b"v"), 0))
    assert not waiting.done
    happens(w, "stop", 1)
    assert waiting.reply.responses[0].partition_responses[0].error_code == Errors.NOT_LEADER_OR_FOLLOWER


def test_a_waiting_fetch_hears_that_the_leader_has_moved(w: World) -> None:
    w.dispatcher = w.dispatchers[1]
    message = fetch_message("t", 0, 0, wait_ms=60_000)
    topic = message.topics[0]
    topic.topic, topic.topic_id, topic.partitions[0].current_leader_epoch = "", w.broker.image.topics["t"].id, 0
    waiting = w.send("Fetch", 16, message)
    assert not waiting.done
    happens(w, "stop", 1)
    found = waiting.reply.responses[0].partitions[0]
    assert (found.error_code, found.current_leader.leader_id) == (Errors.FENCED_LEADER_EPOCH, 2)


def test_an_older_epoch_is_fenced_after_a_move(w: World) -> None:
    happens(w, "stop", 1)
    r = m.ListOffsetsRequest
    codes = []
    for epoch in (0, 1, 2):
        wanted = r.ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=epoch)
        request = r(topics=[r.ListOffsetsTopic(name="t", partitions=[wanted])])
        codes.append(w.at(2, "ListOffsets", 6, request).topics[0].partitions[0].error_code)
    assert codes == [Errors.FENCED_LEADER_EPOCH, 0, Errors.UNKNOWN_LEADER_EPOCH]


def coordinator(w: World, group: str, kind: int = 0) -> int:
    request = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[group])
    alive = next(node.id for node in w.broker.alive())
    return int(w.at(alive, "FindCoordinator", 4, request).coordinators[0].node_id)


def commit(w: World, node: int, offset: int) -> int:
    r = m.OffsetCommitRequest
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [r.OffsetCommitRequestTopic(name="t", partitions=[part])]
    request = r(group_id="g", generation_id_or_member_epoch=-1, topics=topics)
    return int(w.at(node, "OffsetCommit", 8, request).topics[0].partitions[0].error_code)


def test_a_group_goes_on_at_its_offsets_on_another_node(w: World) -> None:
    first = coordinator(w, "g")
    assert commit(w, first, 5) == 0
    happens(w, "stop", first)
    second = coordinator(w, "g")
    assert second != first
    r = m.OffsetFetchRequest
    topic = r.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    found = w.at(second, "OffsetFetch", 5, r(group_id="g", topics=[topic]))
    assert found.topics[0].partitions[0].committed_offset == 5
    assert commit(w, second, 6) == 0
    happens(w, "begin", first)
    assert coordinator(w, "g") == second, "it stays until an election"
    assert commit(w, first, 7) == Errors.NOT_COORDINATOR


def elected(w: World, kind: int, *wanted: int, topic: str = "t") -> list[tuple[int, str, str | None]]:
    r = m.ElectLeadersRequest
    topics = [r.TopicPartitions(topic=topic, partitions=list(wanted))] if wanted else None
    found = w.at(2, "ElectLeaders", 2, r(election_type=kind, topic_partitions=topics, timeout_ms=1000))
    return [
        (one.partition_id, Errors(one.error_code).name, one.error_message)
        for results in found.replica_election_results
        for one in results.partition_result
    ]


def test_the_preferred_leaders_are_elected_by_request(w: World) -> None:
    happens(w, "stop", 1)
    text = "The preferred leader was not available."
    assert elected(w, 0, 0) == [(0, "PREFERRED_LEADER_NOT_AVAILABLE", text)]
    happens(w, "begin", 1)
    needless = "Leader election not needed for topic partition."
    assert elected(w, 0, 0, 1, 9) == [
        (0, "NONE", None),
        (1, "ELECTION_NOT_NEEDED", needless),
        (9, "UNKNOWN_TOPIC_OR_PARTITION", "No such partition as t-9"),
    ]
    assert state(w, 0) == (1, 2, [1, 2, 3], [], [])
    assert elected(w, 0) == []


def test_the_preferred_leaders_are_elected_from_time_to_time(w: World) -> None:
    happens(w, "stop", 1)
    happens(w, "begin", 1)
    assert state(w, 0)[0] == 2
    w.pass_ms(301_000)
    assert state(w, 0)[0] == 1


def test_an_unclean_election_is_made_by_request_or_configuration(w: World) -> None:
    """With two replicas of which the last in sync is gone, and not eligible after a crash."""
    happens(w, "stop", 2)
    happens(w, "kill", 3)
    w.pass_ms(10_000)
    assert state(w, 0, "two") == (-1, 1, [], [3], [3])
    happens(w, "begin", 2)
    assert state(w, 0, "two")[0] == -1, "it is not eligible"
    assert elected(w, 1, 0, topic="two") == [(0, "NONE", None)]
    assert state(w, 0, "two") == (2, 2, [2], [], [])


def test_an_unclean_election_is_made_where_that_is_enabled_since(w: World) -> None:
    """Every `unclean.leader.election.interval.ms`."""
    happens(w, "stop", 2)
    happens(w, "kill", 3)
    w.pass_ms(10_000)
    happens(w, "begin", 2)
    w.pass_ms(301_000)
    assert state(w, 0, "two")[0] == -1
    configure(w, TOPIC, "two", unclean_leader_election_enable="true")
    assert state(w, 0, "two")[0] == -1
    w.pass_ms(301_000)
    assert state(w, 0, "two") == (2, 2, [2], [], [])


def test_a_node_that_is_drained_and_stops_begins_its_shutdown_once(w: World) -> None:
    happens(w, "drain", 3)
    before = w.broker.metadata.partition.end_offset
    happens(w, "stop", 3)
    assert w.broker.metadata.partition.end_offset == before + 1, "it is fenced"


def test_a_fenced_node_answers_and_leads_nothing(w: World) -> None:
    happens(w, "fence", 1)
    assert state(w, 0) == (2, 1, [2, 3], [], [])
    assert produce(w, 1, 0).error_code == Errors.NOT_LEADER_OR_FOLLOWER
    happens(w, "unfence", 1)
    assert state(w, 0) == (2, 1, [1, 2, 3], [], [])


def test_new_partitions_have_fenced_replicas_out_of_sync(w: World) -> None:
    happens(w, "stop", 2)
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name="new", num_partitions=4, replication_factor=3)
    assert w.ask("CreateTopics", 7, r(topics=[topic], timeout_ms=1000)).topics[0].error_code == 0
    made = w.broker.image.topics["new"]
    found = [(sorted(one.replicas), sorted(one.isr)) for one in w.broker.image.partitions_of(made.id)]
    assert found == [([1, 2, 3], [1, 3])] * 4


def test_an_assignment_to_fenced_nodes_only_is_refused(w: World) -> None:
    happens(w, "stop", 2)
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name="new", num_partitions=-1, replication_factor=-1)
    topic.assignments = [r.CreatableReplicaAssignment(partition_index=0, broker_ids=[2])]
    refused = w.ask("CreateTopics", 7, r(topics=[topic], timeout_ms=1000)).topics[0]
    assert (Errors(refused.error_code).name, refused.error_message) == (
        "INVALID_REPLICA_ASSIGNMENT",
        "All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled "
        "shutdown.",
    )


def test_a_single_node_can_be_fenced_too() -> None:
    w = World()
    r = m.CreateTopicsRequest
    w.ask("CreateTopics", 7, r(topics=[r.CreatableTopic(name="t", num_partitions=1, replication_factor=1)]))
    happens(w, "fence", 1)
    assert state(w, 0) == (-1, 1, [], [1], [1])
    happens(w, "unfence", 1)
    assert state(w, 0) == (1, 2, [1], [], [])
    assert produce(w, 1, 0).error_code == 0


def test_a_broker_of_one_node_stays_one() -> None:
    w = World()
    with pytest.raises(NodeRefused, match="was started as one node"):
        drive(w.broker.node_lives.add()).get()


def test_an_added_node_is_placed_and_a_removed_one_is_not(w: World) -> None:
    done = drive(w.broker.node_lives.add())
    w.broker.turn.settle()
    w.pass_ms(5)
    assert done.get().id == 4
    r = m.CreateTopicsRequest
    wide = r.CreatableTopic(name="wide", num_partitions=1, replication_factor=4)
    assert w.ask("CreateTopics", 7, r(topics=[wide], timeout_ms=1000)).topics[0].error_code == 0
    happens(w, "remove", 4)
    assert sorted(state(w, 0, "wide")[2]) == [1, 2, 3]
    wide = r.CreatableTopic(name="wider", num_partitions=1, replication_factor=4)
    refused = w.ask("CreateTopics", 7, r(topics=[wide], timeout_ms=1000)).topics[0]
    assert Errors(refused.error_code).name == "INVALID_REPLICATION_FACTOR"
    assert w.ask("DescribeCluster", 2, m.DescribeClusterRequest(include_fenced_brokers=True)).brokers[-1].broker_id == 3


def test_a_node_does_not_start_while_it_is_removed(w: World) -> None:
    happens(w, "stop", 3)
    lives = w.broker.node_lives
    node = lives.find(3)
    removed, started = drive(lives.remove(node)), drive(lives.begin(node))
    w.broker.turn.settle()
    w.pass_ms(5)
    removed.get()
    with pytest.raises(NodeRefused, match="is being removed"):
        started.get()
    assert (3 in w.broker.nodes.by_id, 3 in w.broker.image.brokers) == (False, False)


def test_a_node_that_a_client_has_unregistered_can_be_removed(w: World) -> None:
    happens(w, "stop", 3)
    assert w.ask("UnregisterBroker", 0, m.UnregisterBrokerRequest(broker_id=3)).error_code == 0
    happens(w, "remove", 3)
    assert list(w.broker.nodes.by_id) == [1, 2]


def test_the_listeners_of_an_added_node_that_cannot_be_unfenced_are_closed(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives, closed = w.broker.node_lives, []

    async def refused(node: Node) -> None:
        raise ApiError(Errors.NOT_CONTROLLER)

    monkeypatch.setattr(lives, "_unfence", refused)
    monkeypatch.setattr(lives.sockets, "close", lambda node: closed.append(node.id))
    added = drive(lives.add())
    w.broker.turn.settle()
    w.pass_ms(5)
    with pytest.raises(ApiError):
        added.get()
    assert (closed, list(w.broker.nodes.by_id)) == ([4], [1, 2, 3])


def test_an_election_of_all_leaders_answers_for_a_topic_that_is_deleted_meanwhile(w: World) -> None:
    happens(w, "stop", 1)
    happens(w, "begin", 1)
    e, d = m.ElectLeadersRequest, m.DeleteTopicsRequest
    election = e(election_type=0, topic_partitions=None, timeout_ms=1000)
    deletion = d(topics=[d.DeleteTopicState(name="t")], timeout_ms=1000)
    answers = w.together(("ElectLeaders", 2, election), ("DeleteTopics", 6, deletion))
    w.pass_ms(10)
    assert [one.done for one in answers] == [True, True]
    elected = {one.topic: one.partition_result for one in answers[0].reply.replica_election_results}
    assert [one.error_code for one in elected["t"]] == [0]
