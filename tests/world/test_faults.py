"""Rules of faults: which requests they match, what happens to these, how often and until when."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.lab.faults.error_action import Fail
from ottla.broker.lab.faults.request_actions import Close, Delay, NoReply, Throttle
from ottla.broker.lab.faults.rules import OVER_MAX, RULES_MAX, Fault
from ottla.broker.lab.shapes import Invalid
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, fetch_message, produce_message
from ..support.emulated import world_of
from ..support.faulty import DELAY, GROUPS, HEARTBEAT, METADATA, REQUESTS, TOPICS, Faulty, applied_to, error
from ..support.lab import LabWorld
from ..support.world import World


@pytest.mark.parametrize(("match", "request_", "is_matched"), REQUESTS)
def test_what_a_rule_matches(match: dict[str, Any], request_: tuple[str, int, Any], is_matched: bool) -> None:
    faulty = Faulty("a")
    assert applied_to(faulty, faulty.add(**match, action=DELAY), *request_) == is_matched


def test_topics_are_matched_by_their_id_too() -> None:
    faulty = Faulty("a", "b")
    rule = faulty.add(topic="b", action=DELAY)
    for name, is_matched in (("a", False), ("b", True)):
        topic = TOPICS(name=None, topic_id=faulty.world.broker.image.topics[name].id)
        assert applied_to(faulty, rule, "Metadata", 12, m.MetadataRequest(topics=[topic])) == is_matched


def times_applied(rule: dict[str, Any], count: int = 12) -> list[int]:
    faulty = Faulty()
    faulty.add(**rule, action=error("GROUP_AUTHORIZATION_FAILED"))
    codes = [faulty.ask(*HEARTBEAT).error_code for _ in range(count)]
    return [number for number, code in enumerate(codes, 1) if code == Errors.GROUP_AUTHORIZATION_FAILED]


def test_how_often() -> None:
    assert times_applied({"nth": 3}) == [3]
    assert times_applied({"every": 4}) == [4, 8, 12]
    assert times_applied({"times": 2}) == [1, 2]
    assert times_applied({"every": 3, "times": 2}) == [3, 6]
    assert times_applied({"share": 0.0}) == []
    assert len(times_applied({"share": 0.5}, 200)) in range(70, 130)


def test_chance_depends_on_the_seed_of_a_rule_and_on_nothing_else() -> None:
    chosen = times_applied({"share": 0.3, "seed": 7}, 50)
    assert times_applied({"share": 0.3, "seed": 7}, 50) == chosen != times_applied({"share": 0.3, "seed": 8}, 50)
    faulty = Faulty()
    faulty.add(api="Heartbeat", share=0.5, action=DELAY)
    rule = faulty.add(api="Heartbeat", share=0.3, seed=7, action=error("GROUP_AUTHORIZATION_FAILED"))
    for _ in range(50):
        faulty.ask(*HEARTBEAT)
        faulty.ask(*GROUPS)
    assert [one.match for one in rule.events] == chosen


def test_a_rule_lasts_for_a_time_of_the_broker() -> None:
    faulty = Faulty()
    faulty.add(api="Heartbeat", duration="2s", action=error("GROUP_AUTHORIZATION_FAILED"))
    assert faulty.ask(*HEARTBEAT).error_code == Errors.GROUP_AUTHORIZATION_FAILED
    faulty.world.pass_ms(2000)
    assert faulty.world.dispatcher.seam is None
    assert faulty.ask(*HEARTBEAT).error_code != Errors.GROUP_AUTHORIZATION_FAILED


def test_a_rule_whose_time_is_over_stays_with_its_counts() -> None:
    site = LabWorld(World())
    rule = {"api": "ListGroups", "duration": "1s", "action": {"kind": "delay", "ms": 1}}
    for _ in range(OVER_MAX + 1):
        assert site.ask("POST /v1/faults", **rule)["is_over"] is False
    site.world.ask(*GROUPS)
    site.world.pass_ms(1000)
    shown = site.ask("GET /v1/faults")["faults"]
    assert [one["number"] for one in shown] == list(range(2, OVER_MAX + 2))
    assert {(one["matched"], one["applied"], one["ends_in_ms"], one["is_over"]) for one in shown} == {(1, 1, 0, True)}
    assert site.ask("DELETE /v1/faults/2")["applied"] == 1
    assert len(site.ask("DELETE /v1/faults")["faults"]) == OVER_MAX - 1
    assert site.ask("GET /v1/faults")["faults"] == []


def test_the_server_has_no_interceptor_while_no_rule_is_in_force() -> None:
    faulty = Faulty()
    assert faulty.world.dispatcher.seam is None
    once = faulty.add(times=1, action=DELAY)
    other = faulty.add(api="Fetch", action=DELAY)
    faulty.ask(*GROUPS)
    faulty.faults.remove(other.number)
    assert faulty.world.dispatcher.seam is None
    assert [one.number for one in faulty.faults] == [once.number]
    assert (once.matched, once.applied, once.is_spent) == (1, 1, True)


@pytest.mark.long
def test_rules_are_bounded() -> None:
    faulty = Faulty()
    for _ in range(RULES_MAX):
        faulty.add(api="Heartbeat", action=DELAY)
    with pytest.raises(OverflowError):
        faulty.add(api="Heartbeat", action=DELAY)
    assert len(faulty.faults.clear()) == RULES_MAX
    faulty.add(action=DELAY, duration="1s")
    faulty.world.pass_ms(1000)
    for _ in range(RULES_MAX):
        faulty.add(api="Heartbeat", action=DELAY)


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"action": {"kind": "erorr"}}, "action.kind: must be one of error, "),
        ({"action": error("NOT_LEADER")}, "action.error: unknown error NOT_LEADER"),
        ({"action": error("NONE")}, "action.error: is no error"),
        ({"action": error("-2")}, "action.error: is no error: -2"),
        ({"action": {"kind": "error", "error": 32_768}}, "action.error: is no error: 32768"),
        ({"action": error("--5")}, "action.error: unknown error --5"),
        ({"action": error("9" * 101)}, "action.error: must have at most 100 characters"),
        ({"action": error("not_leader")}, "action.error: .* \\(did you mean NOT_LEADER_OR_FOLLOWER\\?\\)"),
        ({"action": {"kind": "error", "error": True}}, "action.error: must be a string or a number, found True"),
        ({"action": {"kind": "stale-leader", "leader": 1 << 31}}, "action.leader: must be at most 2147483647"),
        ({"action": {"kind": "stale-leader", "leader": -2}}, "action.leader: must be at least -1"),
        ({"action": {"kind": "stale-leader", "epoch_by": 1 << 31}}, "action.epoch_by: must be at most 2147483647"),
        ({"action": {"kind": "close", "after_bytes": -1}}, "action.after_bytes: must be at least 0"),
        ({"action": {"kind": "delay", "ms": "2d"}}, "action.ms: must be at most 86400000 ms, found 172800000 ms"),
        ({"principal": "alice", "action": DELAY}, "principal: must be like User:alice"),
        ({"listener": "inside", "action": DELAY}, "listener: no listener 'inside' \\(there are PLAINTEXT, INSIDE\\)"),
        ({"api": "Fetsch", "action": DELAY}, "api: no API 'Fetsch' \\(did you mean Fetch?"),
        ({"api": "9999", "action": DELAY}, "api: no API '9999'"),
        ({"versions": "new", "action": DELAY}, "versions: must be like 7"),
        ({"versions": "9-4", "action": DELAY}, "versions: must be like 7"),
        ({"api": "Produce", "action": {"kind": "records"}}, "api: records is for Fetch, ShareFetch only"),
        ({"action": {"kind": "delay", "ms": 5, "distribution": "uniform"}}, "action.to_ms: must be at least ms"),
        ({"action": {"kind": "delay", "ms": "1 day"}}, "action.ms: must be a duration"),
        ({"actoin": DELAY}, "actoin: unknown key"),
        ({"api": "Fetch", "versions": "99", "action": DELAY}, "versions: are served of no such API, .* \\(Fetch 4 to"),
        ({"api": "Heartbeat,Fetch", "topic": "a", "group": "g", "action": DELAY}, "topic: .* no topic beside a group"),
        ({"api": "Fetch", "group": "g", "action": DELAY}, "group: Fetch names no group"),
        (
            {"api": "Heartbeat", "topic": "a", "action": error("NOT_COORDINATOR", at="reply")},
            "topic: Heartbeat names no",
        ),
        ({"nth": 4, "every": 3, "action": DELAY}, "every: never chooses request 4"),
        ({"group": "g", "action": {"kind": "slow-sync", "ms": 5}}, "group: .* slow-sync chooses"),
        ({"topic": "t", "action": {"kind": "loading", "ms": 5}}, "topic: .* loading chooses group coordinators"),
        (
            {"group": "g", "action": {"kind": "loading", "coordinator": "share", "ms": 5}},
            "group: .* share coordinators",
        ),
    ],
)
def test_what_is_wrong_with_a_rule(fault: dict[str, Any], words: str) -> None:
    with pytest.raises(Invalid, match=words):
        Faulty().add(**fault)


@pytest.mark.parametrize("kind", ["records", "vanish", "stale-leader"])
def test_a_rule_is_for_the_apis_that_an_emulated_release_has(kind: str) -> None:
    lab = LabWorld(world_of("0.10.2"))
    assert lab.ask("POST /v1/faults", action={"kind": kind, "leader": 9} if kind == "stale-leader" else {"kind": kind})
    assert lab.refused("POST /v1/faults", {"api": "Produce", "action": {"kind": kind}})[0] == 400


# errors


def test_an_error_in_the_elements_that_a_rule_is_for() -> None:
    """The others are handled; these are not."""
    faulty = Faulty("a", "b")
    rule = faulty.add(api="Produce", topic="a", partition=1, times=1, action=error("NOT_LEADER_OR_FOLLOWER"))
    r = m.ProduceRequest
    topics = [
        r.TopicProduceData(
            name=name, partition_data=[r.PartitionProduceData(index=index, records=batch(b"1")) for index in (0, 1)]
        )
        for name in ("a", "b")
    ]
    reply = faulty.ask("Produce", 9, r(acks=-1, timeout_ms=1000, topic_data=topics))
    codes = {(t.name, p.index): p.error_code for t in reply.responses for p in t.partition_responses}
    assert codes == {("a", 0): 0, ("a", 1): Errors.NOT_LEADER_OR_FOLLOWER, ("b", 0): 0, ("b", 1): 0}
    assert faulty.world.broker.partitions.by_name["a", 1].end_offset == 0
    assert faulty.produce("a", 1) == 0
    assert rule.applied == 1


@pytest.mark.parametrize(("at", "end"), [("request", 0), ("reply", 1)])
def test_an_error_in_place_of_the_work_or_after_it(at: str, end: int) -> None:
    faulty = Faulty("a")
    faulty.add(api="Produce", action=error("NOT_ENOUGH_REPLICAS_AFTER_APPEND", at=at))
    assert faulty.produce("a") == Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert faulty.world.broker.partitions.by_name["a", 0].end_offset == end


def test_an_error_of_a_request_without_a_reply_ends_the_connection() -> None:
    faulty = Faulty("a")
    faulty.add(api="Produce", action=error("NOT_LEADER_OR_FOLLOWER"))
    faulty.client.send("Produce", 9, produce_message("a", batch(b"1"), acks=0))
    assert faulty.client.closed


def test_an_error_of_a_whole_reply_is_the_one_that_was_asked_for() -> None:
    """Kafka itself answers a heartbeat without an error while a coordinator loads."""
    faulty = Faulty()
    faulty.add(api="Heartbeat", action=error("COORDINATOR_LOAD_IN_PROGRESS"))
    assert faulty.ask(*HEARTBEAT).error_code == Errors.COORDINATOR_LOAD_IN_PROGRESS


def _fetched(reply: Any) -> dict[int, tuple[int, int]]:
    """By partition the error code and the bytes of records."""
    parts = [part for topic in reply.responses for part in topic.partitions]
    return {part.partition_index: (part.error_code, len(part.records or b"")) for part in parts}


def test_an_error_of_a_fetch_comes_with_the_reply_and_releases_the_records() -> None:
    faulty = Faulty("a")
    faulty.produce("a")
    faulty.add(api="Fetch", topic="a", times=1, action=error("NOT_LEADER_OR_FOLLOWER"))
    assert _fetched(faulty.ask("Fetch", 11, fetch_message("a", 0))) == {0: (Errors.NOT_LEADER_OR_FOLLOWER, 0)}
    log = faulty.world.broker.partitions.by_name["a", 0].open_log()
    assert sum(segment.holds for segment in log.segments) == 0
    assert _fetched(faulty.ask("Fetch", 11, fetch_message("a", 0)))[0][1] > 0


def test_an_error_of_a_fetch_session_that_names_no_partitions() -> None:
    faulty = Faulty("a")
    message = fetch_message("a", 0)
    message.session_id, message.session_epoch = 0, 0
    first = faulty.ask("Fetch", 11, message)
    rule = faulty.add(topic="a", partition=0, times=1, action=error("FENCED_LEADER_EPOCH"))
    faulty.add(topic="a", partition=1, action=error("UNKNOWN_SERVER_ERROR"))
    again = m.FetchRequest(session_id=first.session_id, session_epoch=1, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20)
    assert _fetched(faulty.ask("Fetch", 11, again)) == {0: (Errors.FENCED_LEADER_EPOCH, 0)}
    assert rule.applied == 1


def test_an_error_of_a_topic_in_metadata_of_all() -> None:
    faulty = Faulty("a", "b")
    rule = faulty.add(api="Metadata", topic="b", action=error("LEADER_NOT_AVAILABLE"))
    found = {
        topic.name: {part.error_code for part in topic.partitions} | {topic.error_code}
        for topic in faulty.ask(*METADATA).topics
    }
    assert Errors.LEADER_NOT_AVAILABLE not in found["a"]
    assert Errors.LEADER_NOT_AVAILABLE in found["b"]
    assert rule.applied == 1


def test_an_error_of_a_topic_after_the_work_is_for_requests_that_name_it() -> None:
    faulty = Faulty("a", "b")
    rule = faulty.add(topic="b", action=error("GROUP_AUTHORIZATION_FAILED", at="reply"))
    assert faulty.ask(*HEARTBEAT).error_code != Errors.GROUP_AUTHORIZATION_FAILED
    owned = m.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", subscribed_topic_names=["a"])
    assert faulty.ask("ConsumerGroupHeartbeat", 1, owned).error_code != Errors.GROUP_AUTHORIZATION_FAILED
    owned.subscribed_topic_names = ["b"]
    assert faulty.ask("ConsumerGroupHeartbeat", 1, owned).error_code == Errors.GROUP_AUTHORIZATION_FAILED
    assert (faulty.produce("a"), faulty.produce("b")) == (Errors.NONE, Errors.GROUP_AUTHORIZATION_FAILED)
    assert rule.applied == 2


# time, silence and the end of connections


@pytest.mark.parametrize("at", ["request", "reply"])
def test_a_delay(at: str) -> None:
    faulty = Faulty("a")
    faulty.add(api="Produce", action={"kind": "delay", "ms": "1.5s", "at": at})
    faulty.client.send("Produce", 9, produce_message("a", batch(b"1")))
    partition = faulty.world.broker.partitions.by_name["a", 0]
    assert partition.end_offset == (0 if at == "request" else 1)
    faulty.world.pass_ms(1499)
    assert faulty.client.ids == []
    faulty.world.pass_ms(1)
    assert faulty.client.ids == [1]


def test_delays_of_several_rules_add_up_and_errors_come_after_them() -> None:
    faulty = Faulty()
    faulty.add(api="Heartbeat", action={"kind": "delay", "ms": 100})
    faulty.add(group="g", action={"kind": "delay", "ms": 50})
    faulty.add(action={"kind": "delay", "ms": 7, "at": "reply"})
    faulty.add(api="Heartbeat", action=error("NOT_COORDINATOR"))
    assert faulty.ask(*HEARTBEAT).error_code == Errors.NOT_COORDINATOR
    assert faulty.world.schedule.monotonic_ms() == 157


@pytest.mark.parametrize(
    ("action", "low", "high", "mean"),
    [
        (Delay(20), 20, 20, 20),
        (Delay(10, distribution="uniform", to_ms=30), 10, 30, 20),
        (Delay(100, distribution="normal", deviation_ms=10), 50, 150, 100),
        (Delay(50, distribution="exponential"), 0, 1000, 50),
    ],
)
def test_distributions(action: Delay, low: int, high: int, mean: int) -> None:
    faulty = Faulty()
    rule = faulty.faults.add(Fault(action=action))
    found = []
    for _ in range(1000):
        chance = rule.chance()
        assert chance is not None
        found.append(action.chosen_ms(chance))
    assert low <= min(found) <= max(found) <= high
    assert abs(sum(found) / len(found) - mean) < mean / 10


@pytest.mark.parametrize("action", [NoReply("no-reply", at) for at in ("request", "reply")])
def test_no_reply(action: NoReply) -> None:
    faulty = Faulty("a")
    faulty.faults.add(Fault(api="Produce", action=action))
    faulty.client.send("Produce", 9, produce_message("a", batch(b"1")))
    faulty.client.send(*GROUPS)
    faulty.world.pass_ms(3_600_000)
    assert faulty.client.ids == []
    assert faulty.world.broker.partitions.by_name["a", 0].end_offset == (action.at == "reply")
    faulty.client.lose()
    assert faulty.world.seam.waiting == 0


@pytest.mark.parametrize("at", ["request", "reply"])
def test_one_reply_is_missing(at: Any) -> None:
    faulty = Faulty()
    faulty.faults.add(Fault(api="Heartbeat", action=NoReply(at=at, then="go-on")))
    faulty.client.send(*HEARTBEAT)
    faulty.client.send(*GROUPS)
    assert faulty.client.ids == [2]


@pytest.mark.parametrize("at", ["request", "before-reply", "middle", "after-reply"])
def test_the_connection_ends(at: Any) -> None:
    faulty = Faulty("a")
    faulty.faults.add(Fault(api="Produce", action=Close(at=at)))
    faulty.client.send("Produce", 9, produce_message("a", batch(b"1")))
    assert faulty.client.closed
    assert faulty.world.broker.partitions.by_name["a", 0].end_offset == (at != "request")
    sent = len(faulty.client.transport.written)
    assert faulty.client.ids == ([1] if at == "after-reply" else [])
    assert (sent > 0) == (at in ("middle", "after-reply"))


def test_the_connection_ends_after_some_bytes() -> None:
    faulty = Faulty()
    faulty.faults.add(Fault(action=Close(at="middle", after_bytes=5)))
    faulty.client.send(*GROUPS)
    assert len(faulty.client.transport.written) == 5
    assert faulty.client.closed


@pytest.mark.parametrize("at", ["request", "before-reply", "middle", "after-reply"])
def test_the_connection_of_a_request_without_a_reply_ends(at: Any) -> None:
    faulty = Faulty("a")
    faulty.faults.add(Fault(action=Close(at=at)))
    faulty.client.send("Produce", 9, produce_message("a", batch(b"1"), acks=0))
    assert faulty.client.closed


def test_throttling() -> None:
    faulty = Faulty()
    faulty.faults.add(Fault(api="ListGroups", times=1, action=Throttle(500)))
    faulty.client.send(*GROUPS)
    faulty.client.send(*GROUPS)
    assert faulty.client.ids == [1]
    assert faulty.client.reply(1).throttle_time_ms == 500
    faulty.world.pass_ms(500)
    assert faulty.client.ids == [1, 2]
    assert faulty.client.reply(2).throttle_time_ms == 0


def test_an_error_with_its_message() -> None:
    faulty = Faulty("a")
    faulty.faults.add(Fault(api="CreateTopics", action=Fail("POLICY_VIOLATION", message="not today")))
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    (answer,) = faulty.ask("CreateTopics", 7, r(topics=[topic], timeout_ms=1000)).topics
    assert (answer.name, answer.error_code, answer.error_message) == ("new", Errors.POLICY_VIOLATION, "not today")
    assert "new" not in faulty.world.broker.image.topics
