"""Groups in a replay, without a broker: share sessions and acknowledgements that are translated, assignments that are
awaited, and log-ins.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from ottla.coordinator.security.sasl import SaslFailed
from ottla.coordinator.security.scram import MECHANISMS, ScramIdentity, ScramServer, credential_of, salted_password
from ottla.protocol import messages as m
from ottla.protocol.errors import MalformedMessage

from ottla.comparing import assignments as assignment
from ottla.comparing import shares as share_groups
from ottla.comparing.assignments import Assignments, Heartbeat
from ottla.comparing.identities import TOPIC, Identities
from ottla.comparing.login import Credentials
from ottla.comparing.shares import Shares

MINE, ITS = bytes([1]) * 16, bytes([2]) * 16


def ids() -> Identities:
    found = Identities()
    found.match(TOPIC, {}, MINE, ITS)
    return found


def fetched(topic: bytes, *runs: tuple[int, int, int]) -> dict[str, Any]:
    rows = [{"first_offset": a, "last_offset": b, "delivery_count": c} for a, b, c in runs]
    part = {"partition_index": 0, "error_code": 0, "acknowledge_error_code": 0, "acquired_records": rows}
    return {"error_code": 0, "responses": [{"topic_id": topic.hex(), "partitions": [part]}]}


def fetch(epoch: int, *acks: tuple[int, int, list[int]]) -> m.ShareFetchRequest:
    r = m.ShareFetchRequest
    rows = [r.AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=c) for a, b, c in acks]
    request = r(group_id="q", member_id="m", share_session_epoch=epoch, max_records=500)
    request.topics = [r.FetchTopic(topic_id=MINE, partitions=[r.FetchPartition(acknowledgement_batches=rows)])]
    return request


def acks(request: Any) -> list[tuple[int, int, list[int]]]:
    (part,) = request.topics[0].partitions
    return [(one.first_offset, one.last_offset, one.acknowledge_types) for one in part.acknowledgement_batches]


def test_a_fetch_asks_for_what_the_trace_got_and_again_until_it_has_it() -> None:
    shares, first = Shares(ids()), fetched(MINE, (0, 4, 1))
    request = fetch(0)
    shares.prepare(request, first)
    assert (request.share_session_epoch, request.max_records, request.share_acquire_mode) == (0, 5, 1)
    shares.take(request, fetched(ITS, (10, 11, 1)))
    again = shares.follow_up(request, first)
    assert again is not None
    assert (again.share_session_epoch, again.max_records, again.topics) == (1, 3, [])
    shares.take(request, fetched(ITS, (14, 16, 1)))
    assert shares.follow_up(request, first) is None
    said, now = shares.settle(request, first, fetched(ITS))
    assert said == now
    following = fetch(1, (0, 4, [1]))
    shares.prepare(following, fetched(MINE))
    assert (following.share_session_epoch, following.max_records) == (2, 0)
    assert acks(following) == [(10, 11, [1]), (14, 16, [1])]


def test_acknowledgements_of_single_offsets_keep_their_types() -> None:
    shares, first = Shares(ids()), fetched(MINE, (3, 5, 1))
    request = fetch(0)
    shares.prepare(request, first)
    shares.take(request, fetched(ITS, (7, 7, 1), (9, 10, 1)))
    shares.settle(request, first, fetched(ITS))
    following = fetch(1, (3, 5, [1, 2, 3]), (8, 8, [1]))
    shares.prepare(following, fetched(MINE))
    assert acks(following) == [(7, 7, [1]), (9, 10, [2, 3]), (8, 8, [1])]  # 8 was never acquired: it stays


def test_another_count_of_deliveries_and_a_record_that_does_not_come_are_differences() -> None:
    shares, first = Shares(ids()), fetched(MINE, (0, 2, 1))
    request = fetch(0)
    shares.take(request, fetched(ITS, (0, 0, 2), (1, 1, 1)))
    said, now = shares.settle(request, first, fetched(ITS))
    found: list[Any] = [said["partitions"], now["partitions"]]
    assert [one[0]["deliveries"] for one in found] == [{"0": 1, "1": 1, "2": 1}, {"0": 2, "1": 1}]


def test_an_enormous_acknowledgement_stays_as_it_is() -> None:
    shares, first = Shares(ids()), fetched(MINE, (0, 0, 1))
    request = fetch(0)
    shares.take(request, fetched(ITS, (5, 5, 1)))
    shares.settle(request, first, fetched(ITS))
    following = fetch(1, (0, 2**63 - 1, [1]))
    shares.prepare(following, fetched(MINE))
    assert acks(following) == [(0, 2**63 - 1, [1])]


def test_what_is_kept_of_members_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEMBERS_MAX", "PLACES_MAX", "KEPT_MAX"):
        monkeypatch.setattr(share_groups, name, 2)
    monkeypatch.setattr(assignment, "MEMBERS_MAX", 2)
    shares, assignments, first = Shares(ids()), Assignments(ids()), fetched(MINE, (0, 3, 1))
    for member in ("m", "n", "o"):
        request = fetch(0)
        request.member_id = member
        shares.prepare(request, first)
        shares.take(request, fetched(ITS, (10, 13, 1)))
        assert shares.settle(request, first, fetched(ITS))[1]["partitions"], "the last two are kept"
        one = Heartbeat("ShareGroupHeartbeat", {"member_id": member}, {"assignment": given(MINE, 0)})
        assignments.take(one, {"assignment": given(ITS, 0)})
    following = fetch(1, (0, 1, [1]))
    shares.prepare(following, fetched(MINE))
    assert (following.share_session_epoch, acks(following)) == (1, [(0, 1, [1])]), "m is forgotten"
    following.member_id, following.share_session_epoch = "o", 1
    shares.prepare(following, fetched(MINE))
    assert acks(following) == [(12, 13, [1])]
    known = [Heartbeat("ShareGroupHeartbeat", {"member_id": one}, {"assignment": given(MINE, 0)}) for one in "mno"]
    assert [assignments.is_behind(one) for one in known] == [True, False, False]


def beat(api: str, reply: Any) -> Heartbeat:
    request = {"group_id": "q", "member_id": "m", "member_epoch": 1}
    return Heartbeat(api, request, {"member_id": "m", "member_epoch": 2, **reply})


def given(topic: bytes, *partitions: int) -> Any:
    return {"topic_partitions": [{"topic_id": topic.hex(), "partitions": list(partitions)}]}


def test_a_member_asks_again_until_it_has_what_it_had() -> None:
    assignments, one = Assignments(ids()), beat("ShareGroupHeartbeat", {"assignment": given(MINE, 0, 1)})
    now = {"member_id": "m", "member_epoch": 7, "assignment": given(ITS, 0)}
    assignments.take(one, now)
    assert assignments.is_behind(one)
    again: Any = assignments.again(one)
    assert (again.group_id, again.member_id, again.member_epoch) == ("q", "m", 7)
    assert assignments.settle(one, now)[0]["assignment"] != assignments.settle(one, now)[1]["assignment"]
    assignments.take(one, {"assignment": given(ITS, 1, 0)})
    assert not assignments.is_behind(one)
    said, left = assignments.settle(one, now)
    assert said["assignment"] == left["assignment"]


def test_an_assignment_that_comes_earlier_than_in_the_trace_counts_later() -> None:
    assignments = Assignments(ids())
    early = beat("StreamsGroupHeartbeat", {"active_tasks": None})
    now = {"active_tasks": [{"subtopology_id": "0", "partitions": [1, 0]}], "member_epoch": 2, "member_id": "m"}
    assignments.take(early, now)
    assert not assignments.is_behind(early)
    said, left = assignments.settle(early, now)
    assert "active_tasks" not in {*said, *left}
    later = beat("StreamsGroupHeartbeat", {"active_tasks": [{"subtopology_id": "0", "partitions": [0, 1]}]})
    assert not assignments.is_behind(later)
    said, left = assignments.settle(later, {"active_tasks": None})
    assert said["active_tasks"] == left["active_tasks"] == [2]


USERS = {"al=i,ce": "secret"}


def talk(mechanism: str, password: str, nonce: str = "abc") -> None:
    """Lets the client's end talk with the server's."""
    chosen = MECHANISMS[mechanism]
    salted = salted_password(chosen.digest, "secret", b"salt", 4096)
    identity = ScramIdentity(credential_of(chosen.digest, salted, b"salt", 4096), "alice")
    server = ScramServer(chosen, "server", lambda name, is_token: identity if name in USERS else None)
    steps = Credentials("al=i,ce", password, mechanism).steps(nonce)
    token = next(steps)
    with suppress(StopIteration):
        while True:
            token = steps.send(server.evaluate(token))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_clients_end_of_scram_is_understood_by_the_servers(mechanism: str) -> None:
    talk(mechanism, "secret")
    with pytest.raises(SaslFailed):
        talk(mechanism, "wrong")


def test_plain_sends_its_password_at_once() -> None:
    steps = Credentials("alice", "secret").steps("")
    assert next(steps) == b"\0alice\0secret"
    with pytest.raises(StopIteration):
        steps.send(b"")


@pytest.mark.parametrize(
    "answers",
    [
        (b"r=other,s=c2FsdA==,i=4096",),
        (b"r=abcd,i=4096",),
        (b"r=abcd,s=c2FsdA==,i=0",),
        (b"r=abcd,s=c2FsdA==,i=99999999",),
        (b"\xff",),
        (b"r=abcd,s=c2FsdA==,i=4096", b"v=AAAA"),
        (b"r=abcd,s=c2FsdA==,i=4096", b"e=invalid-proof"),
    ],
)
def test_a_server_that_does_not_know_the_user_is_not_believed(answers: tuple[bytes, ...]) -> None:
    steps = Credentials("alice", "secret", "SCRAM-SHA-256").steps("abc")
    next(steps)
    for answer in answers[:-1]:
        steps.send(answer)
    with pytest.raises(MalformedMessage):
        steps.send(answers[-1])
