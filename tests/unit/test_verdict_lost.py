"""What the verdict does not hold against a client whose connections or replies are lost, or that shares its client id
with other programs.
"""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.verdict.examiner import Examiner

from ..support.verdict_cases import beats, fetched, heartbeat, initialized, joined, produced, share_fetched, versions
from ..support.verdict_client_cases import ended, is_lost, writes
from ..support.verdict_group_cases import commits, joins, owns, syncs
from ..support.verdict_script import Script, records


def come_back(script: Script, programs: int, after_ms: float) -> None:
    """Programs have a connection each, lose it, and then connect again and again, all together so often."""
    for connection in range(programs):
        script.opens(connection)
        script.asks("ApiVersions", 4, m.ApiVersionsRequest(), m.ApiVersionsResponse(), connection=connection)
    for connection in range(programs):
        script.closes(connection, "broker", "stop")
    for connection in range(100, 200):
        is_lost(script, connection, after_ms=after_ms)


@pytest.mark.parametrize(("programs", "failed"), [(1, True), (12, False)])
def test_programs_with_one_client_id_each_wait_for_themselves(programs: int, failed: bool) -> None:
    """Twelve that wait for 50 ms connect every 4 ms together."""
    script = Script()
    come_back(script, programs, 4)
    assert (script.rule("KIP-144.reconnects-slowly")["failed"] > 0) == failed


def test_programs_that_connect_faster_than_if_each_waited_are_seen() -> None:
    script = Script()
    come_back(script, 3, 1)
    (failure, *_) = script.rule("KIP-144.reconnects-slowly")["failures"]
    assert failure["evidence"][0]["connection"] == 100


def test_a_member_that_lost_its_assignment_claims_the_one_before() -> None:
    """Once, and again: two replies to SyncGroup are lost with their connections."""
    script = Script()
    joins(script)
    syncs(script, (0, 1))
    for connection in (2, 3):
        joins(script, (0, 1), connection=connection)
        syncs(script, (0,), connection=connection)
        script.closes(connection)
    joins(script, (0, 1), connection=4)
    found = script.rule("KIP-429.claims-own")
    assert (found["kept"], found["failed"]) == (3, 0)


def test_a_member_that_has_its_assignment_does_not_claim_the_one_before() -> None:
    script = Script()
    joins(script)
    syncs(script, (0, 1))
    joins(script, (0, 1))
    syncs(script, (0,))
    joins(script, (0, 1))
    assert script.rule("KIP-429.claims-own")["failed"] == 1


def test_a_member_that_lost_its_assignment_commits_what_it_has() -> None:
    script = Script()
    joins(script)
    syncs(script, (0, 1))
    for connection in (2, 3):
        joins(script, (0, 1), connection=connection)
        syncs(script, (0,), connection=connection)
    commits(script, 1, connection=3)
    assert script.rule("classic-group.commits-own")["failed"] == 0


def test_a_client_remembers_that_a_broker_cannot_hear_its_name() -> None:
    """All its connections are one client's in the report."""
    script = Script()
    script.opens(1)
    refused = m.ApiVersionsResponse(error_code=Errors.UNSUPPORTED_VERSION)
    named = m.ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.0")
    script.asks("ApiVersions", 4, named, refused)
    script.asks("ApiVersions", 0, m.ApiVersionsRequest(), m.ApiVersionsResponse())
    script.opens(2)
    script.asks("ApiVersions", 0, m.ApiVersionsRequest(), m.ApiVersionsResponse(), connection=2)
    found = script.rule("KIP-511.software-named")
    assert (found["kept"], found["failed"]) == (1, 0)


def test_a_client_that_was_not_refused_says_its_name() -> None:
    script = Script()
    versions(script)
    script.asks("ApiVersions", 0, m.ApiVersionsRequest(), m.ApiVersionsResponse())
    assert script.rule("KIP-511.software-named")["failed"] == 1


@pytest.mark.parametrize("id", ["KIP-227.session-closed", "KIP-932.session-closed"])
@pytest.mark.parametrize(
    ("waits_ms", "failed"), [(4_000, 1), (30_000, 0)]
)  # for a reply; a client may give up after some time
def test_a_client_may_give_up_on_any_reply_that_is_late(id: str, waits_ms: float, failed: int) -> None:
    script = Script()
    fetched(script)
    share_fetched(script, 0)
    script.asks("Metadata", 12, m.MetadataRequest(), lost=True)
    script.waits(waits_ms)
    script.closes()
    assert script.rule(id)["failed"] == failed


@pytest.mark.parametrize("id", ["KIP-227.session-closed", "KIP-932.session-closed"])
def test_a_client_may_give_up_on_a_reply_that_it_cannot_read(id: str) -> None:
    script = Script()
    if id.startswith("KIP-227"):
        fetched(script)
        script.asks("Fetch", 13, m.FetchRequest(session_id=9, session_epoch=1), None)
    else:
        share_fetched(script, 0)
        request = m.ShareFetchRequest(group_id="g", member_id="m", share_session_epoch=1)
        script.asks("ShareFetch", 1, request, None)
    script.closes()
    assert script.rule(id)["outcome"] == "not exercised"


def test_a_large_heartbeat_may_lose_its_reply_like_a_small_one() -> None:
    """Rules keep no large messages."""
    script = Script(size=100_000)
    heartbeat(script, 0, 4)
    heartbeat(script, 4, 5)
    script.closes()
    heartbeat(script, 4, 5, connection=2)
    assert script.rule("KIP-848.epoch-echoed")["failed"] == 0


def test_a_member_may_not_hear_that_it_was_fenced() -> None:
    script = Script()
    heartbeat(script, 0, 4)
    heartbeat(script, 4, 0, code=Errors.FENCED_MEMBER_EPOCH)
    script.closes()
    heartbeat(script, 4, 0, code=Errors.FENCED_MEMBER_EPOCH, connection=2)
    heartbeat(script, 0, 5, connection=2)
    found = script.rule("KIP-848.rejoins-when-fenced")
    assert (found["kept"], found["failed"]) == (1, 0)


def test_a_member_whose_coordinator_was_away_was_not_silent() -> None:
    script = Script()
    joined(script)
    beats(script)
    heartbeat(script, 0, 4)
    script.closes(1, "broker", "stop")
    script.waits(60_000)
    beats(script, over=2)
    heartbeat(script, 4, 4, connection=2)
    for id in ("KIP-62.heartbeats-in-time", "KIP-848.heartbeats-in-time"):
        assert script.rule(id)["failed"] == 0, id


def test_a_member_may_not_hear_that_its_group_rebalances() -> None:
    script = Script()
    joins(script)
    beats(script, code=Errors.REBALANCE_IN_PROGRESS)
    script.closes()
    beats(script, after_ms=20_000, code=Errors.REBALANCE_IN_PROGRESS, over=2)
    joins(script, connection=2)
    found = script.rule("classic-group.rejoins-in-time")
    assert (found["kept"], found["failed"]) == (1, 0)


def test_a_member_owns_what_it_had_before_replies_that_were_lost() -> None:
    script = Script()
    heartbeat(script, 0, 1, assignment=[0, 1])
    heartbeat(script, 1, 1, topic_partitions=owns(0, 1))
    for connection in (2, 3, 4):
        heartbeat(script, 1, 1, topic_partitions=owns(0, 1), assignment=[0], connection=connection)
    found = script.rule("KIP-848.owns-assigned")
    assert (found["kept"], found["failed"]) == (4, 0)


@pytest.mark.parametrize(("knows", "failed"), [(False, 0), (True, 1)])
def test_a_member_may_commit_with_the_epoch_before_one_that_was_lost(knows: bool, failed: int) -> None:
    script = Script()
    heartbeat(script, 0, 4)
    heartbeat(script, 4, 5)
    script.closes()
    if knows:
        heartbeat(script, 5, 5, connection=2)
    commits(script, 0, 4, after_ms=6000, connection=2)
    assert script.rule("KIP-848.commit-epoch")["failed"] == failed


@pytest.mark.parametrize(("knows", "failed"), [(False, 0), (True, 1)])
def test_a_member_that_lost_the_reply_to_its_join_has_the_generation_before(knows: bool, failed: int) -> None:
    script = Script()
    joins(script)
    script.closes()
    if knows:
        beats(script, generation=2, over=2)
    beats(script, after_ms=6000, generation=1, over=2)
    assert script.rule("classic-group.generation-sent")["failed"] == failed


def test_a_batch_that_was_answered_on_another_connection_may_come_again() -> None:
    """That one was lost with the reply; the one that was idle was another."""
    script = Script()
    produced(script, records(0), connection=2)
    script.closes(2)
    script.asks("Metadata", 12, m.MetadataRequest(), m.MetadataResponse())
    script.closes(1, "broker", "idle")
    produced(script, records(0), connection=3)
    assert script.rule("protocol.closed-while-idle")["failed"] == 0


def test_a_commit_may_come_again_over_another_connection() -> None:
    script = Script()
    initialized(script, "tx")
    writes(script)
    ended(script, version=4)
    script.closes()
    request = m.EndTxnRequest(transactional_id="tx", producer_id=7, committed=True)
    script.asks("EndTxn", 4, request, m.EndTxnResponse(), connection=2)
    found = script.rule("KIP-98.no-empty-commit")
    assert (found["kept"], found["failed"]) == (1, 0)


def test_connections_of_which_a_trace_lost_the_end_are_forgotten() -> None:
    examiner, script = Examiner(), Script()
    for connection in range(50):
        script.opens(connection)
        script.asks("Metadata", 12, m.MetadataRequest(), m.MetadataResponse(), connection=connection)
    for event in script.events:
        examiner.feed(event)
    examiner.forget()
    assert examiner._connections == {}
