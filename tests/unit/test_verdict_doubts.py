"""What the verdict does not hold against a client, and how much of it is kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.verdict.events import Closed
from ottla.verdict.examiner import CLIENTS_MAX, Examiner
from ottla.verdict.from_trace import examine
from ottla.verdict.rule import Recent

from ..support import verdict_client_cases, verdict_group_cases
from ..support.verdict_cases import CASES, beats, fetched, heartbeat, initialized, joined, produced
from ..support.verdict_client_cases import pushes, subscribed
from ..support.verdict_group_cases import syncs
from ..support.verdict_script import Script, records

WITH_CASES = verdict_client_cases, verdict_group_cases


def test_clients_whose_frames_are_refused_count_among_the_others() -> None:
    script = Script()
    for one in range(CLIENTS_MAX + 3):
        named = m.ApiVersionsRequest(client_software_name=f"client-{one}", client_software_version="1")
        script.asks("ApiVersions", 4, named, m.ApiVersionsResponse(), connection=one)
        script.refused(0, 99, connection=one)
    live = Examiner()
    for event in script.events:
        live.feed(event)
    assert (len(list(live.report())), live.unexamined) == (CLIENTS_MAX, 6)


@pytest.mark.parametrize(
    "id",
    [
        "KIP-227.session-closed",
        "KIP-932.session-closed",
        "KIP-62.leaves-at-close",
        "KIP-848.leaves-at-close",
        "KIP-932.leaves-at-close",
    ],
)
def test_a_client_whose_broker_closes_the_connection_has_not_gone(id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_client = Script.closes
    monkeypatch.setattr(Script, "closes", lambda script: by_client(script, by="broker", reason="stop"))
    script = Script()
    CASES[id](script, False)
    assert isinstance(script.events[-1], Closed)
    assert script.rule(id)["outcome"] == "not exercised"


def test_the_epoch_of_the_last_record_is_a_change_of_a_partition() -> None:
    script = Script()
    fetched(script)
    fetched(script, 1, 9, fetched_epoch=2)
    fetched(script, 2, 9, fetched_epoch=2)
    assert (script.rule("KIP-227.only-changes")["kept"], script.rule("KIP-227.only-changes")["failed"]) == (1, 1)


def test_a_producer_may_come_back_to_the_connection_of_its_first_coordinator() -> None:
    script = Script()
    initialized(script, "tx")
    for epoch, connection in ((0, 2), (1, 1), (2, 1)):
        request = m.InitProducerIdRequest(transactional_id="tx", producer_id=7, producer_epoch=epoch)
        reply = m.InitProducerIdResponse(producer_id=7, producer_epoch=epoch + 1)
        script.asks("InitProducerId", 4, request, reply, connection=connection)
    found = script.rule("KIP-360.own-epoch-named")
    assert (found["kept"], found["failed"]) == (1, 0)


def test_the_evidence_of_a_wrong_producer_id_has_the_last_ones_alone() -> None:
    script = Script()
    script.opens()
    for producer_id in range(30):
        reply = m.InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
        script.asks("InitProducerId", 4, m.InitProducerIdRequest(), reply)
    produced(script, records(0, producer_id=99))
    (failed,) = script.rule("KIP-98.producer-id-own")["failures"]
    assert [one["exchange"] for one in failed["evidence"]] == [*range(21, 31), 31]


def test_one_error_for_each_of_several_groups_is_no_repetition() -> None:
    script = Script()
    failed = m.FindCoordinatorResponse(error_code=Errors.COORDINATOR_NOT_AVAILABLE)
    for group in "abcdef":
        script.asks("FindCoordinator", 3, m.FindCoordinatorRequest(key=group), failed, after_ms=1)
    assert script.rule("KIP-580.back-off")["outcome"] == "not exercised"


def test_one_error_for_the_partitions_of_several_consumers_is_no_repetition() -> None:
    """Clients ask for the offsets of each partition, all over the connection to its leader."""
    r, a = m.ListOffsetsRequest, m.ListOffsetsResponse
    script = Script()
    for number in range(6):
        asked = r.ListOffsetsTopic(name="t", partitions=[r.ListOffsetsPartition(partition_index=number)])
        failed = a.ListOffsetsPartitionResponse(partition_index=number, error_code=Errors.NOT_LEADER_OR_FOLLOWER)
        reply = a(topics=[a.ListOffsetsTopicResponse(name="t", partitions=[failed])])
        script.asks("ListOffsets", 7, r(topics=[asked]), reply, after_ms=1)
    assert script.rule("KIP-580.back-off")["outcome"] == "not exercised"


def test_commits_that_were_on_their_way_may_all_come_to_the_coordinator_that_was() -> None:
    script = Script()
    for _ in range(20):
        beats(script, after_ms=1, code=Errors.NOT_COORDINATOR)
    assert script.rule("protocol.coordinator-found-again")["outcome"] == "not exercised"


@pytest.mark.parametrize("code", [None, Errors.NOT_COORDINATOR])
def test_a_member_that_waits_for_the_others_of_its_group_is_not_silent(code: int | None) -> None:
    """The reply to JoinGroup comes when all others have joined, and may be lost, or be an error."""
    script = Script()
    joined(script)
    request = m.JoinGroupRequest(group_id="g", member_id="m", session_timeout_ms=10_000)
    script.asks("JoinGroup", 9, request, lost=True)
    script.waits(60_000)
    if code is not None:
        script.answers(m.JoinGroupResponse(error_code=code))
    joined(script, asked="m")
    assert script.rule("KIP-62.heartbeats-in-time")["failed"] == 0


def test_a_reply_with_an_epoch_can_be_lost_with_its_connection() -> None:
    script = Script()
    heartbeat(script, 0, 4)
    heartbeat(script, 4, 5)
    script.closes()
    beat = m.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=4)
    reply = m.ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=5)
    script.asks("ConsumerGroupHeartbeat", 1, beat, reply, connection=2)
    assert script.rule("KIP-848.epoch-echoed")["failed"] == 0
    beat.member_epoch = 3
    script.asks("ConsumerGroupHeartbeat", 1, beat, reply, connection=3)
    assert script.rule("KIP-848.epoch-echoed")["failed"] == 1


def test_the_type_of_a_protocol_is_told_since_version_7_of_join_group() -> None:
    script = Script()
    reply = m.JoinGroupResponse(member_id="m", generation_id=2, protocol_name="range")
    script.asks("JoinGroup", 6, m.JoinGroupRequest(group_id="g", member_id="m", protocol_type="consumer"), reply)
    syncs(script)
    syncs(script, protocol="sticky")
    found = script.rule("KIP-559.protocol-sent")
    assert (found["kept"], found["failed"]) == (1, 1)


def test_a_member_that_waits_for_a_reply_that_is_lost_is_not_silent() -> None:
    script = Script()
    heartbeat(script, 0, 1)
    beat = m.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)
    script.asks("ConsumerGroupHeartbeat", 1, beat, lost=True, after_ms=5000)
    script.waits(30_000)
    heartbeat(script, 1, 1)
    assert script.rule("KIP-848.heartbeats-in-time")["failed"] == 0


def produces_on(script: Script) -> None:
    """A producer whose InitProducerId was not seen."""
    produced(script, records(0, producer_id=8, transactional=True), version=12, connection=3)
    produced(script, records(0, producer_id=9), connection=3)


WENT_ON: dict[str, Callable[[Script], None]] = {
    "KIP-98.init-first": produces_on,
    "KIP-98.producer-id-own": produces_on,
    "KIP-516.topic-id-known": lambda script: fetched(script, connection=3),
    "KIP-714.instance-id-kept": lambda script: pushes(script, instance=b"another instance", connection=3),
    "protocol.metadata-first": lambda script: fetched(script, connection=3),
}
"""What a client may do that had begun before the verdict, or whose beginning is missing: over a new connection."""


@pytest.mark.parametrize("begins", ["before", "within", "missing"])
@pytest.mark.parametrize("id", WENT_ON)
def test_a_client_that_had_begun_before_the_verdict_goes_on(id: str, begins: str) -> None:
    script = Script()
    if begins != "before":
        script.opens()
    script.asks("ApiVersions", 4, m.ApiVersionsRequest(), m.ApiVersionsResponse())
    if begins == "missing":
        script.lines.append({"event": "dropped", "count": 1})
    script.opens(2)
    initialized(script, connection=2)
    subscribed(script, connection=2)
    script.opens(3)
    WENT_ON[id](script)
    (client,) = examine(script.lines).report()
    (failed,) = (one["failed"] for one in client["rules"] if one["id"] == id)
    assert failed == (1 if begins == "within" else 0)


def test_all_clients_of_a_connection_hear_that_it_was_closed() -> None:
    """Else what is known of connections stays for good, with a client who logs in before it says what it is."""
    examiner, script = Examiner(), Script()
    for number in range(50):
        script.opens(number)
        script.asks("Metadata", 12, m.MetadataRequest(), m.MetadataResponse(), connection=number, client_id=None)
        script.asks("Metadata", 12, m.MetadataRequest(), m.MetadataResponse(), connection=number)
        script.closes(number)
    for event in script.events:
        examiner.feed(event)
    of_connections = [
        held
        for client in examiner._clients.values()
        for rule in client.rules
        for held in vars(rule).values()
        if isinstance(held, dict | set) and len(held) >= 50
    ]
    assert of_connections == []


def test_what_is_known_of_other_connections_is_not_gone_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be thousands of members that have never left, and of partitions."""

    def never(*_: object) -> None:
        raise AssertionError("goes through all states")

    examiner, script = Examiner(), Script()
    joined(script)
    syncs(script)
    heartbeat(script, 0, 1)
    verdict_client_cases.asks_for_end(script)
    produced(script, records(0))
    known = len(script.events)
    script.asks("Metadata", 12, m.MetadataRequest(), m.MetadataResponse(), connection=2)
    fetched(script, 1, 9, connection=2)
    script.closes(2)
    for event in script.events[:known]:
        examiner.feed(event)
    for name in ("items", "__iter__"):
        monkeypatch.setattr(Recent, name, never)
    for event in script.events[known:]:
        examiner.feed(event)
