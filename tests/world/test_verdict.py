"""The verdict on the clients of a broker, live and by the trace of the same requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ottla.broker.config.config import RELEASES
from ottla.broker.lab.faults.request_actions import Close
from ottla.broker.lab.faults.rules import Fault
from ottla.broker.lab.http import Request, Response
from ottla.broker.lab.traces import client as noting
from ottla.broker.lab.traces import stream
from ottla.broker.lab.verdict.live import Answer, Answers, Live
from ottla.broker.lab.verdict.provocations import SCHEDULES, Provocation, provocations
from ottla.broker.lab.verdict.routes import Verdicts
from ottla.broker.later import Later
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.verdict.from_trace import examine
from ottla.verdict.rule import EXAMINATIONS, Examination

from ..support.ask import batch, fetch_message, produce_message
from ..support.connected import Client, ConnectedWorld
from ..support.emulated import world_of
from ..support.lab import LabWorld
from ..support.topic_world import create


def world_with_verdict(**asked: Any) -> tuple[ConnectedWorld, LabWorld]:
    world = ConnectedWorld(None, 0)
    create(world, "orders", 1)
    lab = LabWorld(world)
    lab.ask("POST /v1/verdict", **asked)
    return world, lab


def rules(view: Any) -> dict[str, Any]:
    (client,) = view["clients"]
    return {one["id"]: one for one in client["rules"]}


def named(client: Client, client_id: str = "client") -> None:
    request = m.ApiVersionsRequest(client_software_name="scripted", client_software_version="1.0")
    client.send("ApiVersions", 4, request, client_id)


def visits(world: ConnectedWorld) -> None:
    """A client that does a bit of everything, and keeps few of the rules."""
    client = world.connect()
    named(client)
    client.ask("Metadata", 12, m.MetadataRequest(topics=[]))
    client.send("Produce", 9, produce_message("orders", batch(b"x"), acks=0))
    client.ask(
        "Produce", 9, produce_message("orders", batch(b"value", producer_id=5, producer_epoch=0, base_sequence=3))
    )
    client.ask("Fetch", 12, fetch_message("orders", 0))
    client.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["g"]))
    join = m.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[m.JoinGroupRequest.JoinGroupRequestProtocol(name="range")],
    )
    client.ask("JoinGroup", 9, join)
    client.ask("JoinGroup", 9, join)
    client.feed(b"\0\0\0\x0a\x00\x01\x00\x03\0\0\0\x09\xff\xff")
    client.lose()


@pytest.mark.parametrize("whole_bytes", [10, 1 << 10])
def test_the_live_verdict_is_that_of_the_trace(whole_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noting, "WHOLE_BYTES", whole_bytes)  # beyond it, records are left out
    world, lab = world_with_verdict()
    lab.ask("POST /v1/traces")
    visits(world)
    live = lab.ask("GET /v1/verdict")
    found = lab.ask("GET /v1/traces/1/events")
    by_trace = list(examine([found["head"], *found["events"]]).report())
    assert by_trace == live["clients"]
    assert live["events"] == len(found["events"])
    failed = {name for name, one in rules(live).items() if one["outcome"] == "failed"}
    assert {"KIP-394.member-id-kept", "KIP-896.removed-versions"} <= failed
    assert rules(live)["KIP-511.software-named"]["outcome"] == "passed"
    (client,) = live["clients"]
    assert (client["client_id"], client["software"], client["host"]) == ("client", "scripted", "127.0.0.1")


def joins_and_goes(world: ConnectedWorld) -> None:
    """A member of a group that commits an offset and goes without a word."""
    client = world.connect()
    client.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["g"]))
    joins = m.JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocol_type="consumer")
    joins.rebalance_timeout_ms = 10_000
    joins.protocols = [m.JoinGroupRequest.JoinGroupRequestProtocol(name="range")]
    joined = client.ask("JoinGroup", 3, joins)
    syncs = m.SyncGroupRequest(group_id="g", member_id=joined.member_id, generation_id=joined.generation_id)
    client.ask("SyncGroup", 2, syncs)
    commits = m.OffsetCommitRequest(group_id="g", member_id=joined.member_id)
    commits.generation_id_or_member_epoch = joined.generation_id
    part = m.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    absent = m.OffsetCommitRequest.OffsetCommitRequestTopic(name="absent", partitions=[part])
    there = m.OffsetCommitRequest.OffsetCommitRequestTopic(name="orders", partitions=[part])
    commits.topics = [there, absent]
    client.ask("OffsetCommit", 5, commits)
    client.lose()


def test_the_evidence_is_what_was_sent_whatever_the_broker_makes_of_it() -> None:
    world, lab = world_with_verdict()
    lab.ask("POST /v1/traces")
    joins_and_goes(world)
    live = lab.ask("GET /v1/verdict")
    found = lab.ask("GET /v1/traces/1/events")
    assert list(examine([found["head"], *found["events"]]).report()) == live["clients"]
    (failure,) = rules(live)["KIP-62.leaves-at-close"]["failures"]
    (commit,) = (one["message"] for one in failure["evidence"] if one["what"].startswith("OffsetCommit"))
    assert "name='absent'" in commit
    assert "topic_id" not in commit


def test_a_verdict_begins_and_ends_by_routes() -> None:
    world, lab = world_with_verdict(examination="classic-group")
    assert lab.refused("POST /v1/verdict", {})[0] == 409
    visits(world)
    stopped = lab.ask("DELETE /v1/verdict")
    assert stopped["examination"] == "classic-group"
    assert {one["examination"] for one in rules(stopped).values()} == {"classic-group"}
    assert world.dispatcher.seam is None
    assert lab.refused("GET /v1/verdict")[0] == lab.refused("DELETE /v1/verdict")[0] == 404
    lab.ask("POST /v1/verdict")
    lab.ask("POST /v1/reset")
    assert world.dispatcher.seam is None
    assert lab.refused("POST /v1/verdict", {"examination": "all"})[0] == 400


def test_what_no_rule_of_an_examination_looks_at_is_not() -> None:
    world, lab = world_with_verdict(examination="classic-group")
    visits(world)
    assert lab.ask("GET /v1/verdict")["events"] == 2 * len(("ApiVersions", "JoinGroup", "JoinGroup")) + 3


def live_of(lab: LabWorld) -> Live:
    return lab.lab.part(Verdicts).get()


def test_nothing_is_concluded_from_what_the_program_was_too_slow_for(monkeypatch: pytest.MonkeyPatch) -> None:
    world, lab = world_with_verdict()
    client = world.connect()
    named(client)
    client.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["g"]))
    join = m.JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocol_type="consumer")
    join.rebalance_timeout_ms = 10_000
    join.protocols = [m.JoinGroupRequest.JoinGroupRequestProtocol(name="range")]
    assert client.ask("JoinGroup", 9, join).error_code == Errors.MEMBER_ID_REQUIRED
    world.pass_ms(100)
    monkeypatch.setattr(stream, "PENDING_BYTES_MAX", -1)
    client.ask("Metadata", 12, m.MetadataRequest(topics=[]))
    world.pass_ms(100)
    monkeypatch.undo()
    client.ask("JoinGroup", 9, join)  # the rules cannot know whether it joined with its id meanwhile
    found = lab.ask("GET /v1/verdict")
    assert (found["dropped"], found["events"]) == (2, 11)
    assert rules(found)["KIP-394.member-id-kept"]["outcome"] == "not exercised"
    client.ask("JoinGroup", 9, join)
    assert rules(lab.ask("GET /v1/verdict"))["KIP-394.member-id-kept"]["outcome"] == "failed"


def test_a_verdict_whose_program_has_ended_says_so_and_another_begins() -> None:
    world, lab = world_with_verdict()
    visits(world)
    live_of(lab)._stream.program.kill()
    for at in ("GET", "DELETE"):
        assert lab.refused(f"{at} /v1/verdict") == (503, "the program that examines the clients has ended")
    lab.ask("POST /v1/verdict")
    visits(world)
    assert rules(lab.ask("DELETE /v1/verdict"))["KIP-394.member-id-kept"]["outcome"] == "failed"


@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_answers_come_in_any_pieces(size: int) -> None:
    parts = [b"[7,2]", b'{"client_id":"a"}', b"{}", b"[0,0]", b"[1,1]", b"{}"]
    data = b"".join(stream.SIZE.pack(len(one)) + one for one in parts)
    answers = Answers()
    found = [one for at in range(0, len(data), size) for one in answers.add(data[at : at + size])]
    assert found == [Answer(7, [b'{"client_id":"a"}', b"{}"]), Answer(0, []), Answer(1, [b"{}"])]


def test_several_ask_at_a_time() -> None:
    world, lab = world_with_verdict()
    for name in ("shop", "till"):
        named(world.connect(), name)
    live = live_of(lab)
    one, all_of_them = live.ask("till"), live.ask()
    assert [len(found.get().clients) for found in (one, all_of_them)] == [1, 2]


HOSTILE = "<script>alert(1)</script>"


def page(lab: LabWorld, query: str = "", accept: str = "") -> Response:
    headers = {"host": "localhost", "accept": accept}
    found = lab.server.answer(Request("GET", "/v1/verdict", b"", "127.0.0.1", headers, query))
    if isinstance(found, Later):
        found = found.get()
    return found


def text_of(found: Response) -> str:
    return (found.body if isinstance(found.body, bytes) else b"".join(found.body)).decode()


@pytest.mark.parametrize(
    ("query", "accept", "kind"),
    [
        ("", "", "application/json"),
        ("", "*/*", "application/json"),
        ("", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8"),
        ("", "image/avif,image/webp,image/svg+xml,image/*,*/*;q=0.8", "image/svg+xml; charset=utf-8"),
        ("", "text/html;q=0.5, application/json", "application/json"),
        ("", "text/html;q=0, application/xml", "application/json"),
        ("", "text/html;q=high", "application/json"),
        ("format=html", "application/json", "text/html; charset=utf-8"),
        ("format=svg", "", "image/svg+xml; charset=utf-8"),
        ("format=json", "text/html", "application/json"),
    ],
)
def test_the_report_has_the_form_that_is_asked_for(query: str, accept: str, kind: str) -> None:
    world, lab = world_with_verdict()
    named(world.connect(), HOSTILE)
    found = page(lab, query, accept)
    assert (found.status, found.content_type) == (200, kind)
    if kind == "application/json":
        assert [one["client_id"] for one in json.loads(text_of(found))["clients"]] == [HOSTILE]
        return
    assert dict(found.headers)["Content-Security-Policy"].startswith("default-src 'none'")
    assert ("<!DOCTYPE html>" if "html" in kind else ">scripted 1.0: ") in text_of(found)
    assert HOSTILE not in text_of(found)


def test_the_report_may_be_of_one_client() -> None:
    world, lab = world_with_verdict()
    for name in ("shop", "till"):
        named(world.connect(), name)
    assert [one["client_id"] for one in json.loads(text_of(page(lab)))["clients"]] == ["shop", "till"]
    (only,) = json.loads(text_of(page(lab, "client_id=till")))["clients"]
    assert only["client_id"] == "till"
    assert "<title>Kafka protocol: " in text_of(page(lab, "format=svg"))
    assert "<title>scripted 1.0: " in text_of(page(lab, "format=svg&client_id=shop"))
    assert page(lab, "format=pdf").status == 400


def test_a_reply_that_faults_damage_is_no_failure_of_the_client() -> None:
    world, lab = world_with_verdict()
    lab.ask("POST /v1/faults", api="Metadata", action={"kind": "truncate"})
    client = world.connect()
    named(client)
    client.send("Metadata", 12, m.MetadataRequest(topics=[]))
    found = rules(lab.ask("GET /v1/verdict"))
    assert not [name for name, one in found.items() if one["outcome"] == "failed"]


def test_an_examination_provokes_what_its_schedule_says() -> None:
    world, lab = world_with_verdict(examination="basic", provokes=True)
    client = world.connect()
    named(client)
    codes = []
    for number in range(4):
        reply = client.ask("Produce", 9, produce_message("orders", batch(b"%d" % number)))
        codes.append(reply.responses[0].partition_responses[0].error_code)
    assert codes == [0, 0, Errors.NOT_LEADER_OR_FOLLOWER, 0]
    (one,) = (found for found in lab.ask("GET /v1/verdict")["provoked"] if found["applied"])
    assert (one["what"], one["nth"], one["matched"]) == ("the leader of a partition has moved", 3, 4)
    assert lab.ask("GET /v1/faults")["faults"]
    assert one in lab.ask("DELETE /v1/verdict")["provoked"]
    assert lab.ask("GET /v1/faults")["faults"] == []
    assert world.dispatcher.seam is None


@pytest.mark.parametrize("examination", SCHEDULES)
def test_an_examination_provokes_all_of_its_schedule(examination: Examination) -> None:
    _, lab = world_with_verdict(examination=examination, provokes=True)
    assert [one["what"] for one in lab.ask("GET /v1/verdict")["provoked"]] == [
        one.what for one in SCHEDULES[examination]
    ]


def test_a_release_that_is_emulated_is_examined_by_what_it_has() -> None:
    lab = LabWorld(world_of("0.10.2"))
    begun = lab.ask("POST /v1/verdict", examination="basic", provokes=True)
    apis = [one["api"] for one in begun["provoked"]]
    assert apis == ["Metadata", "Produce", "Fetch", "Fetch", "ListOffsets"]
    assert begun["not_provoked"] == [
        {"what": "an older broker", "api": "ApiVersions", "why": "the broker has ApiVersions 0 to 0 only"},
        {"what": "a leader with a newer epoch", "api": "Fetch", "why": "the broker has Fetch 0 to 3 only"},
        {
            "what": "a fetch session that the broker has forgotten",
            "api": "Fetch",
            "why": "the broker has Fetch 0 to 3 only",
        },
        {
            "what": "the subscription to metrics has changed",
            "api": "PushTelemetry",
            "why": "the broker has no PushTelemetry",
        },
    ]
    lab.ask("DELETE /v1/verdict")
    assert lab.ask("POST /v1/verdict", examination="share-group", provokes=True)["provoked"] != []


@pytest.mark.parametrize("release", RELEASES[::4])
def test_every_release_is_examined_by_all_that_it_has(release: str) -> None:
    """No fault of a schedule is wrong but by what the release does not have: that would be raised."""
    lab = LabWorld(world_of(release))
    for examination, schedule in SCHEDULES.items():
        begun = lab.ask("POST /v1/verdict", examination=examination, provokes=True)
        assert len(begun["provoked"]) + len(begun["not_provoked"]) == len(schedule)
        assert lab.ask("DELETE /v1/verdict")["not_provoked"] == begun["not_provoked"]


def test_a_fault_of_a_schedule_that_is_wrong_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = LabWorld(ConnectedWorld())
    fault = Fault(api="Heartbeat", nth=1, topic="none", action=Close(at="request"))
    monkeypatch.setitem(SCHEDULES, "network", (Provocation("no such topic", fault),))
    status, _ = lab.refused("POST /v1/verdict", {"examination": "network", "provokes": True})
    assert status == 400
    assert lab.world.dispatcher.seam is None


def test_an_examination_plays_a_broker_that_is_older_than_the_client() -> None:
    """KIP-511: the reply is of version 0, and names lower versions only. The verdict and the trace read it so."""
    world, lab = world_with_verdict(examination="basic", provokes=True)
    lab.ask("POST /v1/traces")
    named(world.connect())
    client = world.connect()
    request = m.ApiVersionsRequest(client_software_name="scripted", client_software_version="1.0")
    refused = client.ask("ApiVersions", 4, request)
    (older,) = refused.api_keys
    assert (refused.error_code, older.api_key, older.max_version) == (Errors.UNSUPPORTED_VERSION, 18, 3)
    assert client.ask("ApiVersions", 3, request).error_code == 0
    live = lab.ask("GET /v1/verdict")
    assert rules(live)["KIP-35.downgraded"]["outcome"] == "passed"
    found = lab.ask("GET /v1/traces/1/events")
    replies = [one for one in found["events"] if one["event"] == "reply"]
    assert replies[1]["message"]["api_keys"] == [{"api_key": 18, "min_version": 0, "max_version": 3}]
    assert list(examine([found["head"], *found["events"]], "basic").report()) == live["clients"]


def test_an_examination_subscribes_to_metrics_until_it_ends() -> None:
    world, lab = world_with_verdict(examination="basic", provokes=True)
    client = world.connect()

    def told() -> tuple[list[str], int]:
        reply = client.ask("GetTelemetrySubscriptions", 0, m.GetTelemetrySubscriptionsRequest())
        return reply.requested_metrics, reply.push_interval_ms

    assert told() == (["*"], 1000)
    lab.ask("DELETE /v1/verdict")
    assert told()[0] == []


@pytest.mark.parametrize("examination", EXAMINATIONS)
def test_a_schedule_is_the_same_for_the_same_seed(examination: Examination) -> None:
    assert [one.fault for one in provocations(examination, 0)] == [one.fault for one in SCHEDULES[examination]]
    first, second, other = (list(provocations(examination, seed)) for seed in (1, 1, 2))
    assert first == second
    assert [one.what for one in first] == [one.what for one in other]
    assert first != list(provocations(examination, 0)) or first != other


def test_what_an_examination_may_not_be_asked_for() -> None:
    lab = LabWorld(ConnectedWorld(None, 0))
    assert lab.refused("POST /v1/verdict", {"provokes": True})[0] == 400
    lab.ask("POST /v1/verdict", examination="network", provokes=True)
    lab.ask("POST /v1/reset")
    assert lab.ask("GET /v1/faults")["faults"] == []
