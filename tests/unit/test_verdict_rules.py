"""The rules of the verdict: each with a client that keeps it and one that breaks it, live and by its trace."""

from __future__ import annotations

import re

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.verdict import examiner
from ottla.verdict.events import Reply, leave_records
from ottla.verdict.examiner import CLIENTS_MAX, Examiner
from ottla.verdict.from_trace import FilteredTrace, examine
from ottla.verdict.replies import partition_errors
from ottla.verdict.report import has_failed, junit, lines
from ottla.verdict.rule import EXAMINATIONS, FAILURES_MAX, KEPT_BYTES_MAX, RULES, STATES_MAX, Recent
from ottla.verdict.rules import all_rules

from ..support import verdict_client_cases, verdict_group_cases
from ..support.verdict_cases import CASES, beats, fetched, heartbeat, joined, metadata, produced, share_beat, synced
from ..support.verdict_script import Script, records

WITH_CASES = verdict_client_cases, verdict_group_cases
IDS = [one.about.id for one in all_rules()]


def test_every_rule_has_a_client_that_keeps_it_and_one_that_breaks_it() -> None:
    assert len(IDS) >= 80
    assert not set(IDS) ^ set(CASES), f"write both into one of {[one.__name__ for one in WITH_CASES]}"


@pytest.mark.long
@pytest.mark.parametrize("id", IDS)
def test_a_client_that_keeps_a_rule_passes_it(id: str) -> None:
    script = Script()
    CASES[id](script, True)
    found = script.rule(id)
    assert (found["outcome"], found["failures"]) == ("passed", [])


@pytest.mark.long
@pytest.mark.parametrize("id", IDS)
def test_a_client_that_breaks_a_rule_fails_it_with_the_frames_that_show_it(id: str) -> None:
    script = Script()
    CASES[id](script, False)
    found = script.rule(id)
    assert found["outcome"] == "failed"
    (failure,) = found["failures"]
    assert failure["words"]
    assert failure["evidence"]
    numbers = [one["exchange"] for one in failure["evidence"] if one["exchange"] is not None]
    assert numbers == sorted(numbers)


@pytest.mark.long
@pytest.mark.parametrize("id", IDS)
def test_a_rule_does_not_need_the_large_messages_of_its_evidence(id: str) -> None:
    small, large = Script(), Script(size=KEPT_BYTES_MAX + 1)
    for script in (small, large):
        CASES[id](script, False)
    assert large.rule(id) == small.rule(id)


def test_a_client_that_goes_on_after_a_refused_version_asks_again_first() -> None:
    """What the refusal lists is not what the broker has: only ApiVersions is in it (KIP-511)."""
    script = Script()
    own = [m.ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=3)]
    refused = m.ApiVersionsResponse(error_code=Errors.UNSUPPORTED_VERSION, api_keys=own)
    script.asks("ApiVersions", 4, m.ApiVersionsRequest(), refused)
    metadata(script)
    assert script.rule("KIP-35.downgraded")["outcome"] == "failed"
    assert script.rule("KIP-35.versions-within")["outcome"] == "not exercised"


@pytest.mark.parametrize(("version", "outcome"), [(1, "passed"), (2, "not exercised")])
def test_an_invalid_epoch_fences_a_producer_in_versions_without_another_error(version: int, outcome: str) -> None:
    script = Script()
    request = m.EndTxnRequest(transactional_id="tx", producer_id=7)
    script.asks("EndTxn", version, request, m.EndTxnResponse(error_code=Errors.INVALID_PRODUCER_EPOCH))
    assert script.rule("KIP-588.fenced-stops")["outcome"] == outcome


@pytest.mark.parametrize(
    ("next_batch", "outcome"),
    [(records(0), "failed"), (records(0) + b"value", "passed"), (records(0, time=1), "not exercised")],
)
def test_the_sequence_of_a_refused_batch_may_be_that_of_another_batch(next_batch: bytes, outcome: str) -> None:
    """It was not written, so that its sequence number is the next still. One of its size with another time can have
    other records, or the same that were put into a batch again.
    """
    script = Script()
    produced(script, records(0), Errors.MESSAGE_TOO_LARGE)
    produced(script, next_batch)
    assert script.rule("KIP-98.refused-not-repeated")["outcome"] == outcome


def test_a_producer_goes_on_after_another_batch_with_the_sequence_and_size_of_a_refused_one() -> None:
    script = Script()
    produced(script, records(0), Errors.INVALID_RECORD)
    produced(script, records(0, time=1))
    produced(script, records(1, time=2))
    assert script.rule("KIP-98.refused-not-repeated")["outcome"] == "passed"


def test_nothing_is_said_of_batches_whose_checksum_a_trace_does_not_have() -> None:
    """One of an earlier version of ottla."""
    script = Script()
    produced(script, records(0), Errors.INVALID_RECORD)
    produced(script, records(0))
    for line in script.lines:
        for topic in line["message"].get("topic_data", ()):
            del topic["partition_data"][0]["records"]["crc"]
    (client,) = examine(script.lines).report()
    (found,) = (one for one in client["rules"] if one["id"] == "KIP-98.refused-not-repeated")
    assert found["outcome"] == "not exercised"


def test_another_member_does_not_join_for_one_that_is_unknown() -> None:
    script = Script()
    joined(script)
    beats(script, code=Errors.UNKNOWN_MEMBER_ID)
    joined(script, member="other", asked="other")
    assert script.rule("classic-group.new-id-when-unknown")["outcome"] == "not exercised"


@pytest.mark.parametrize(("code", "outcome"), [(0, "passed"), (Errors.FENCED_INSTANCE_ID, "failed")])
def test_a_static_member_that_is_let_in_again_is_fenced_no_longer(code: int, outcome: str) -> None:
    script = Script()
    joined(script, instance="i")
    beats(script, instance="i", code=Errors.FENCED_INSTANCE_ID)
    joined(script, instance="i", asked="m", code=code)
    if not code:
        synced(script)
    beats(script, after_ms=6000, instance="i")
    assert script.rule("KIP-345.fenced-stops")["outcome"] == outcome


@pytest.mark.parametrize(("instance_id", "outcome"), [("i", "passed"), (None, "failed")])
def test_a_static_member_of_a_consumer_group_leaves_with_its_instance_id(instance_id: str | None, outcome: str) -> None:
    script = Script()
    heartbeat(script, 0, 1, instance_id="i")
    heartbeat(script, 1, 1)  # what is the same as before is left out
    heartbeat(script, -2, -1, instance_id=instance_id, code=0 if instance_id else Errors.INVALID_REQUEST)
    assert script.rule("KIP-848.static-leaves-for-now")["outcome"] == outcome


def test_a_member_that_commits_nothing_has_no_occasion_to_commit_too_late() -> None:
    script = Script()
    for owned in ((), (0,)):
        verdict_group_cases.joins(script, owned)
        verdict_group_cases.syncs(script, (0, 1))
    assert script.rule("KIP-429.commits-before-revoke")["outcome"] == "not exercised"


@pytest.mark.parametrize(
    ("fetches", "outcome"),
    [
        ([(4, 10)], "passed"),
        ([(5, 10)], "not exercised"),
        ([(5, 10), (6, 2000)], "not exercised"),
        ([(5, 10), (4, 2000)], "passed"),
        ([(5, 10), (5, 2000)], "failed"),
    ],
)
def test_a_fetch_on_another_connection_may_be_on_its_way_when_the_end_is_told(
    fetches: list[tuple[int, float]], outcome: str
) -> None:
    """Each fetch with its offset, and how long after the one before; the epoch ends at 4."""
    script = Script()
    metadata(script)
    fetched(script, offset=5, connection=2)
    verdict_client_cases.asks_for_end(script)
    for offset, after_ms in fetches:
        fetched(script, offset=offset, connection=2, after_ms=after_ms)
    assert script.rule("KIP-320.truncation-found")["outcome"] == outcome


@pytest.mark.long
@pytest.mark.parametrize("id", IDS)
def test_a_rule_is_not_exercised_by_a_client_that_does_nothing_of_it(id: str) -> None:
    script = Script()
    script.asks("DescribeCluster", 1, m.DescribeClusterRequest(), m.DescribeClusterResponse())
    expected = "passed" if id in ("protocol.client-id", "KIP-896.removed-versions") else "not exercised"
    assert script.rule(id)["outcome"] == expected


@pytest.mark.parametrize("id", IDS)
def test_what_is_declared_of_a_rule_is_complete(id: str) -> None:
    about = RULES[id].about
    assert re.fullmatch(r"(KIP-\d+|protocol|classic-group)\.[a-z-]+", id)
    assert about.examination in EXAMINATIONS
    assert about.link.startswith("https://")
    assert about.what.endswith(".")
    assert about.why.endswith(".")


@pytest.mark.long
@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("is_right", [True, False])
def test_what_a_rule_is_spared_changes_nothing(id: str, is_right: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def everything(looking: examiner._Looking, to: examiner._Places, place: int, *_: object) -> None:
        for places in (to.asked, to.answered, to.failed):
            places.append(place)

    script = Script()
    CASES[id](script, is_right)
    found = script.reports()
    monkeypatch.setattr(examiner._Looking, "_add", everything)
    assert script.reports() == found


def test_rules_are_in_the_order_of_their_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may import one of the modules before the others."""
    in_order = all_rules()
    last = in_order[-1].__module__
    last_first = sorted(RULES.items(), key=lambda one: one[1].__module__ != last)
    monkeypatch.setattr("ottla.verdict.rules.RULES", dict(last_first))
    assert all_rules() == in_order


def test_an_examination_has_only_its_rules() -> None:
    assert {one.about.examination for one in all_rules("idempotence")} == {"idempotence"}
    assert sum(len(all_rules(one)) for one in EXAMINATIONS) == len(IDS)
    assert 1 not in Examiner("share-group").keys, "a Fetch costs nothing where no rule looks at it"


def test_clients_are_told_apart_by_id_software_and_address() -> None:
    script = Script()
    for connection, name in ((1, "librdkafka"), (2, "sarama"), (3, "librdkafka")):
        request = m.ApiVersionsRequest(client_software_name=name, client_software_version="1.0")
        script.opens(connection)
        script.asks("ApiVersions", 4, request, m.ApiVersionsResponse(), connection=connection)
        script.asks("Metadata", 12, m.MetadataRequest(), m.MetadataResponse(), connection=connection)
    found = script.reports("basic")
    assert [(one["software"], one["software_version"], one["host"]) for one in found] == [
        ("librdkafka", "1.0", "10.0.0.1"),
        ("sarama", "1.0", "10.0.0.1"),
    ]
    (first,) = (one for one in found[0]["rules"] if one["id"] == "KIP-35.api-versions-first")
    assert first["kept"] == 2


def test_the_connection_that_was_open_already_is_not_asked_for_its_first_request() -> None:
    script = Script()
    metadata(script)
    assert script.rule("KIP-35.api-versions-first")["outcome"] == "not exercised"


def test_the_report_says_what_failed_and_counts_the_rest() -> None:
    script = Script()
    for _ in range(FAILURES_MAX + 2):
        heartbeat(script, 0, 4)
        heartbeat(script, 3, 4)
    (client,) = found = script.reports("consumer-group")
    text = "\n".join(lines(found))
    assert text.startswith("client (unknown unknown, 10.0.0.1): 4 passed, 1 failed, 9 not exercised")
    assert "FAILED         KIP-848.epoch-echoed (error)" in text
    assert "epoch 3, and the reply had 4" in text
    assert "connection 1, exchange 2: ConsumerGroupHeartbeat v1 request 2 ConsumerGroupHeartbeatRequest(" in text
    assert "and 2 times more" in text
    assert has_failed(found)
    report = junit(found)
    assert '<testcase classname="consumer-group" name="KIP-848.epoch-echoed">' in report
    assert report.count("<skipped") == sum(one["outcome"] == "not exercised" for one in client["rules"])
    assert report.count("<failure") == 1


def test_a_warning_fails_only_a_strict_verdict() -> None:
    script = Script()
    heartbeat(script, 0, 4)
    script.closes()
    found = script.reports("consumer-group")
    assert not has_failed(found)
    assert has_failed(found, strict=True)
    assert "<failure" not in junit(found)


def test_a_member_that_comes_again_on_another_connection_is_not_gone() -> None:
    script = Script()
    share_beat(script, 0, 1)
    script.closes()
    request = m.ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)
    reply = m.ShareGroupHeartbeatResponse(member_id="m", member_epoch=1)
    script.asks("ShareGroupHeartbeat", 1, request, reply, connection=2)
    assert script.rule("KIP-932.leaves-at-close")["outcome"] == "not exercised"


REFUSED = (
    Errors.NOT_COORDINATOR,
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.UNKNOWN_MEMBER_ID,
    Errors.ILLEGAL_GENERATION,
    Errors.FENCED_INSTANCE_ID,
)


@pytest.mark.parametrize("code", [*REFUSED, Errors.REBALANCE_IN_PROGRESS])
def test_a_member_without_coordinator_or_membership_cannot_leave(code: int) -> None:
    script = Script()
    joined(script)
    synced(script)
    beats(script, code=code)
    script.closes()
    outcome = "not exercised" if code in REFUSED else "failed"
    assert script.rule("KIP-62.leaves-at-close")["outcome"] == outcome


@pytest.mark.parametrize(("after_ms", "outcome"), [(4000, "not exercised"), (6000, "failed")])
def test_a_request_that_the_broker_refuses_after_the_end_of_a_session_is_seen(after_ms: float, outcome: str) -> None:
    script = Script()
    script.asks("SaslHandshake", 1, m.SaslHandshakeRequest(), m.SaslHandshakeResponse())
    lasts = m.SaslAuthenticateResponse(session_lifetime_ms=5000)
    script.asks("SaslAuthenticate", 2, m.SaslAuthenticateRequest(), lasts)
    script.waits(after_ms)
    script.refused(3, 12)
    assert script.rule("KIP-368.reauthenticated")["outcome"] == outcome


def test_a_member_that_is_not_known_is_gone_whatever_was_on_its_way() -> None:
    """It comes again with another id, and cannot leave with the one before."""
    script = Script()
    joined(script)
    synced(script)
    beats(script, code=Errors.UNKNOWN_MEMBER_ID)
    beats(script)  # which was on its way, to a coordinator that still knows the member
    script.closes()
    assert script.rule("KIP-62.leaves-at-close")["outcome"] == "not exercised"


def test_a_member_that_lost_the_reply_to_its_heartbeat_may_know_no_coordinator() -> None:
    script = Script()
    joined(script)
    synced(script)
    request = m.HeartbeatRequest(group_id="g", generation_id=2, member_id="m")
    script.asks("Heartbeat", 4, request, lost=True)
    script.closes()
    assert script.rule("KIP-62.leaves-at-close")["outcome"] == "not exercised"
    script.asks("Heartbeat", 4, request, m.HeartbeatResponse(), connection=2)
    script.closes(connection=2)
    assert script.rule("KIP-62.leaves-at-close")["outcome"] == "failed", "it had found its coordinator again"


def test_a_member_of_a_new_group_that_lost_the_reply_to_its_heartbeat_may_know_no_coordinator() -> None:
    script = Script()
    heartbeat(script, 0, 4)
    request = m.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=4)
    script.asks("ConsumerGroupHeartbeat", 1, request, lost=True)
    script.closes()
    assert script.rule("KIP-848.leaves-at-close")["outcome"] == "not exercised"


def test_a_damaged_reply_is_no_failure_of_the_client() -> None:
    script = Script()
    heartbeat(script, 0, 4)
    script.asks("Fetch", 13, m.FetchRequest(), None)
    joined(script)
    fetched(script)
    (client,) = script.reports()
    assert [one["id"] for one in client["rules"] if one["outcome"] == "failed"] == []


def test_nothing_is_concluded_across_a_gap_of_a_trace() -> None:
    script = Script()
    CASES["KIP-98.sequences-in-order"](script, False)
    assert script.lines[-2]["event"] == "request"
    script.lines.insert(-2, {"event": "dropped", "count": 3})
    (client,) = examine(script.lines, "idempotence").report()
    (found,) = (one for one in client["rules"] if one["id"] == "KIP-98.sequences-in-order")
    assert (found["outcome"], found["kept"]) == ("passed", 1)


def test_another_broker_in_the_same_trace_has_connections_of_its_own() -> None:
    script = Script()
    metadata(script)
    heads = [{"event": "trace", "clock_ms": at, "mono_us": 0} for at in (0, 90_000)]
    (client,) = examine([heads[0], *script.lines, heads[1], *script.lines]).report()
    assert [one["id"] for one in client["rules"] if one["outcome"] == "failed"] == []


def test_a_trace_with_filters_is_refused() -> None:
    head = {"event": "trace", "clock_ms": 0, "mono_us": 0}
    for everything in ({}, {"filters": None}):
        assert list(examine([head | everything]).report()) == []
    with pytest.raises(FilteredTrace, match="filtered \\(api=Produce, topic=orders\\)"):
        examine([head, head | {"filters": {"api": "Produce", "topic": "orders"}}])


def test_what_clients_choose_is_bounded() -> None:
    recent: Recent[int, int] = Recent()
    for one in range(STATES_MAX + 5):
        recent[one] = one
    assert (len(recent), next(iter(recent))) == (STATES_MAX, 5)
    script = Script()
    for one in range(CLIENTS_MAX + 3):
        script.asks("Heartbeat", 4, m.HeartbeatRequest(), m.HeartbeatResponse(), client_id=str(one), connection=one)
    live = Examiner("share-group")
    for event in script.events:
        live.feed(event)
    assert (len(list(live.report())), live.unexamined) == (CLIENTS_MAX, 3)


def test_no_event_keeps_records() -> None:
    one = m.FetchResponse.PartitionData(partition_index=2, error_code=6, records=memoryview(records(0, 5)))
    message = m.FetchResponse(responses=[m.FetchResponse.FetchableTopicResponse(topic="t", partitions=[one])])
    reply = Reply(1, 0, 0, size=500, message=message)
    leave_records(reply)
    assert reply.size == 500 - len(records(0, 5))
    assert [(each.topic, each.partition, each.code) for each in partition_errors(reply)] == [("t", 2, 6)]
    assert one.records is not None, "what is sent stays as it is"
    assert "memory" not in repr(reply)
