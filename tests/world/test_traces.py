"""Traces: what is written of requests and replies, where, and what is not."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from ottla.broker import bugs
from ottla.broker.lab.traces import client as noting
from ottla.broker.lab.traces import recorder as tracing
from ottla.broker.lab.traces import ring as rings
from ottla.broker.lab.traces import stream as streams
from ottla.broker.lab.traces.recording import TIMES, line_piece
from ottla.broker.lab.traces.ring import Ring
from ottla.protocol import codec, headers
from ottla.protocol import messages as m

from ..support.ask import batch, fetch_message, produce_message
from ..support.connected import ConnectedWorld
from ..support.lab import LabWorld
from ..support.topic_world import create

SECRET = "t0p-s3cret"
NOT_SERVED = b"\0\0\0\x0a\x7f\xff\0\0\0\0\0\x09\xff\xff"
"""A frame with an API key that does not exist."""


class Traced:
    """A broker with a trace and a client."""

    def __init__(self, directory: Path, settings: dict[str, str] | None = None, **asked: Any) -> None:
        self.world = ConnectedWorld(None, 0, **{"ottla_trace_directory": str(directory), **(settings or {})})
        self.world.schedule.is_machines = True  # as long as no clock of the lab is used
        create(self.world, "orders", 1)
        self.lab = LabWorld(self.world)
        self.number = self.lab.ask("POST /v1/traces", **asked)["number"]
        self.client = self.world.connect()

    @property
    def events(self) -> list[dict[str, Any]]:
        self.world.pass_ms(100)
        found: list[dict[str, Any]] = self.lab.ask(f"GET /v1/traces/{self.number}/events")["events"]
        return found

    def only(self, kind: str) -> dict[str, Any]:
        (found,) = (one for one in self.events if one["event"] == kind)
        return found


def names(events: list[dict[str, Any]]) -> list[str]:
    return [f"{one['event']} {one.get('api', one.get('connection'))}" for one in events]


def test_a_trace_has_an_event_for_each_thing_that_happens(tmp_path: Path) -> None:
    traced = Traced(tmp_path)
    client = traced.client
    client.ask("Metadata", 12, m.MetadataRequest(topics=[]))
    client.send("Produce", 9, produce_message("orders", batch(b"x"), acks=0))
    client.feed(NOT_SERVED)
    client.lose()
    events = traced.events
    assert names(events) == [
        *("opened 1", "request Metadata", "reply Metadata", "request Produce", "reply Produce"),
        *("refused 1", "closed 1"),
    ]
    _, request, reply, produced, silent, refused, _ = events
    assert request | {"at_ms": 0, "mono_us": 0} == {
        "event": "request", "at_ms": 0, "mono_us": 0, "connection": 1, "peer": "127.0.0.1:1", "listener": "PLAINTEXT",
        "principal": "User:ANONYMOUS", "client_id": "client", "software": "unknown", "software_version": "unknown",
        "exchange": 1, "api": "Metadata", "key": 3, "version": 12, "correlation_id": 1, "size": request["size"],
        "message": {"topics": [], "allow_auto_topic_creation": True, "include_topic_authorized_operations": False},
    }  # fmt: skip
    assert (reply["exchange"], reply["latency_us"] >= 0, reply["size"]) == (1, True, len(client.frames[0]))
    records = produced["message"]["topic_data"][0]["partition_data"][0]["records"]
    assert (records["bytes"], records["count"], records["producer_id"]) == (len(batch(b"x")), 1, -1)
    assert (silent["size"], silent["message"]) == (0, None)
    assert (refused["key"], refused["correlation_id"], refused["size"]) == (32767, 9, 10)
    assert refused["reason"] == "API key 32767 is not served"


def test_a_reply_that_cannot_be_noted_is_a_bug_and_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traced = Traced(tmp_path)
    monkeypatch.setattr(noting, "pack_answered", None)
    before = bugs.count()
    traced.client.ask("Metadata", 12, m.MetadataRequest(topics=[]))
    assert bugs.count() == before + 1
    assert names(traced.events) == ["opened 1", "request Metadata"]


def test_many_events_become_a_block_before_the_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How often the program works does not depend on the time alone, so that what waits in the broker is bounded."""
    monkeypatch.setattr(tracing, "BLOCK_BYTES", 2000)
    traced = Traced(tmp_path, file="t.jsonl")
    for _ in range(20):
        traced.client.ask("Heartbeat", 4, m.HeartbeatRequest(group_id="g", member_id="m"))
    assert traced.lab.ask("GET /v1/traces")["traces"][0]["bytes"] > 0
    assert len(traced.events) == 41


def test_a_file_begins_with_a_line_that_says_what_it_is_and_is_rotated(tmp_path: Path) -> None:
    traced = Traced(tmp_path, {"ottla_trace_max_bytes": "4096", "ottla_trace_backups": "2"}, file="t.jsonl")
    for _ in range(12):
        traced.client.ask("Metadata", 12, m.MetadataRequest(topics=[]))
    stopped = traced.lab.ask(f"DELETE /v1/traces/{traced.number}")
    traced.world.pass_ms(100)
    assert (stopped["file"], stopped["events"], stopped["dropped"]) == (str(tmp_path / "t.jsonl"), 25, 0)
    files = sorted(tmp_path.iterdir())
    assert [one.name for one in files] == ["t.jsonl", "t.jsonl.1", "t.jsonl.2"]
    for file in files:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert lines[0] | {"at_ms": 0, "mono_us": 0, "clock_ms": 0, "broker": ""} == {
            "event": "trace", "format": 1, "at_ms": 0, "mono_us": 0, "clock_ms": 0, "broker": "", "raw": "none",
            "filters": None, "cluster_id": traced.world.broker.cluster_id, "node_id": 1,
        }  # fmt: skip
        assert {one["event"] for one in lines[1:]} <= {"opened", "request", "reply"}
        assert file.stat().st_size <= 4096


def test_raw_frames_are_those_of_the_wire(tmp_path: Path) -> None:
    traced = Traced(tmp_path, raw="frames")
    message = produce_message("orders", batch(b"value"))
    traced.client.ask("Produce", 9, message)
    found = traced.client.ask("Fetch", 12, fetch_message("orders", 0))
    _, produced, _, _, fetched = traced.events
    frame = base64.b64decode(produced["raw"])
    _, start = headers.client_id_of(2, frame)
    assert codec.parse("ProduceRequest", 9, frame, start) == message
    assert base64.b64decode(fetched["raw"]) == traced.client.frames[1]
    (partition,) = fetched["message"]["responses"][0]["partitions"]
    assert partition["records"]["bytes"] == len(found.responses[0].partitions[0].records)


@pytest.mark.parametrize("raw", ["frames", "secrets"])
def test_secrets_are_masked_and_their_frames_are_left_out_unless_they_are_asked_for(tmp_path: Path, raw: str) -> None:
    traced = Traced(tmp_path, raw=raw)
    r = m.IncrementalAlterConfigsRequest
    for name, value in (("ssl.keystore.password", SECRET), ("log.retention.ms", "5")):
        config = r.AlterableConfig(name=name, value=value)
        resource = r.AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
        traced.client.ask("IncrementalAlterConfigs", 1, r(resources=[resource], validate_only=True))
    secret, harmless = (one for one in traced.events if one["event"] == "request")
    assert secret["message"]["resources"][0]["configs"][0]["value"] == "***"
    assert "raw" in harmless
    assert ("raw" in secret) == (raw == "secrets")
    assert SECRET.encode() not in base64.b64decode(secret.get("raw", ""))[: 0 if raw == "secrets" else None]


@pytest.mark.parametrize("raw", ["none", "frames"])
def test_large_messages_are_the_same_as_small_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    def events() -> list[dict[str, Any]]:
        traced = Traced(tmp_path, raw=raw)
        traced.client.ask("Produce", 9, produce_message("orders", batch(b"value")))
        traced.client.ask("Metadata", 12, m.MetadataRequest())
        traced.client.ask("Fetch", 12, fetch_message("orders", 0))
        return [{k: v for k, v in one.items() if not k.endswith(("_ms", "_us"))} for one in traced.events]

    small = events()
    monkeypatch.setattr(noting, "WHOLE_BYTES", 10)
    assert events() == small


@pytest.mark.parametrize("partitions", [1, 2])
def test_of_a_large_request_records_are_left_out(tmp_path: Path, partitions: int) -> None:
    traced = Traced(tmp_path, file="t.jsonl")
    records = batch(b"x" * 50_000, producer_id=7, base_sequence=3)
    message = produce_message("orders", records)
    message.topic_data[0].partition_data *= partitions
    traced.client.ask("Produce", 9, message)
    request = traced.only("request")
    (topic,) = request["message"]["topic_data"]
    assert [one["records"]["bytes"] for one in topic["partition_data"]] == [len(records)] * partitions
    assert [one["records"]["base_sequence"] for one in topic["partition_data"]] == [3] * partitions
    assert request["size"] > 50_000 * partitions
    assert traced.lab.ask("GET /v1/traces")["traces"][0]["bytes"] < 3000


@pytest.mark.parametrize("where", ["request", "topic", "partition"])
def test_a_large_request_with_tagged_fields_is_there_as_a_whole(tmp_path: Path, where: str) -> None:
    traced = Traced(tmp_path)
    message = produce_message("orders", batch(b"x" * 50_000))
    (topic,) = message.topic_data
    places = {"request": message, "topic": topic, "partition": topic.partition_data[0]}
    places[where].unknown_tags = [(9, b"tag")]
    traced.client.ask("Produce", 9, message)
    found = traced.only("request")["message"]
    (topic,) = found["topic_data"]
    (partition,) = topic["partition_data"]
    assert partition["records"]["count"] == 1
    assert {"request": found, "topic": topic, "partition": partition}[where]["unknown_tags"] == {"9": b"tag".hex()}


def test_events_of_a_connection_that_says_who_it_is_name_it(tmp_path: Path) -> None:
    traced = Traced(tmp_path)
    one = m.ApiVersionsRequest(client_software_name="one", client_software_version="1")
    traced.client.ask("Metadata", 12, m.MetadataRequest(topics=[]))
    traced.client.ask("ApiVersions", 3, one)
    traced.client.ask("Metadata", 12, m.MetadataRequest(topics=[]))
    assert [one["software"] for one in traced.events if one["event"] != "opened"] == [*["unknown"] * 3, *["one"] * 3]


def test_the_last_events_have_no_large_messages_and_the_file_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((tracing, "BLOCK_BYTES"), (tracing, "EVENT_BYTES_MAX"), (rings, "EVENT_BYTES_MAX")):
        monkeypatch.setattr(module, name, 1000)
    traced = Traced(tmp_path, file="t.jsonl")
    r = m.DescribeConfigsRequest
    resource = r.DescribeConfigsResource(resource_type=2, resource_name="orders")
    traced.client.ask("DescribeConfigs", 4, r(resources=[resource], include_documentation=True))
    (reply,) = (one for one in traced.events if one["event"] == "reply")
    assert reply["message"] is None  # too large for the last events
    assert traced.lab.ask("GET /v1/traces")["traces"][0]["bytes"] > reply["size"] > 1000
    traced.world.pass_ms(100)
    *_, written = (tmp_path / "t.jsonl").read_text().splitlines()
    assert json.loads(written)["message"]["results"][0]["configs"]


@pytest.mark.parametrize(
    ("asked", "apis"),
    [
        ({"api": "Metadata"}, ["Metadata"]),
        ({"topic": "orders"}, ["Produce"]),
        ({"client_id": "cl*", "group": "g"}, ["Heartbeat"]),
        ({"client_id": "other"}, []),
        ({"principal": "User:ANONYMOUS", "api": "1,3"}, ["Metadata"]),
    ],
)
def test_a_trace_has_what_its_filters_choose(tmp_path: Path, asked: dict[str, Any], apis: list[str]) -> None:
    traced = Traced(tmp_path, **asked)
    traced.client.ask("Metadata", 12, m.MetadataRequest(topics=[]))
    traced.client.ask("Produce", 9, produce_message("orders", batch(b"x")))
    traced.client.ask("Heartbeat", 4, m.HeartbeatRequest(group_id="g", member_id="m"))
    traced.client.feed(NOT_SERVED)
    traced.client.lose()
    found = traced.events
    assert [one["api"] for one in found if one["event"] == "request"] == apis
    assert [one["event"] for one in found if "api" not in one] == (["opened", "refused", "closed"] if apis else [])


def test_events_have_the_time_of_a_clock_that_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traced = Traced(tmp_path)
    schedule = traced.world.schedule
    for _ in range(2):
        before_ms = schedule.now_ms()
        traced.client.ask("Metadata", 12, m.MetadataRequest(topics=[]))
        assert before_ms <= traced.events[-1]["at_ms"] <= schedule.now_ms()
        monkeypatch.setattr(schedule, "_start_ms", schedule._start_ms + 3_600_000)


@pytest.mark.parametrize(
    ("asked", "filters"),
    [({}, None), ({"raw": "frames"}, None), ({"api": "Metadata", "share": 0.5}, {"api": "Metadata", "share": 0.5})],
)
def test_the_first_line_says_which_filters_a_trace_has(
    tmp_path: Path, asked: dict[str, Any], filters: dict[str, Any] | None
) -> None:
    traced = Traced(tmp_path, **asked)
    assert traced.lab.ask(f"GET /v1/traces/{traced.number}/events")["head"]["filters"] == filters


def test_a_slow_disk_drops_events_and_the_trace_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traced = Traced(tmp_path, file="t.jsonl")
    traced.world.pass_ms(100)
    monkeypatch.setattr(streams, "PENDING_BYTES_MAX", -1)
    traced.client.ask("Metadata", 12, m.MetadataRequest(topics=[]))
    traced.world.pass_ms(100)
    monkeypatch.undo()
    traced.client.ask("Metadata", 12, m.MetadataRequest(topics=[]))
    assert traced.lab.ask("GET /v1/traces")["traces"][0]["dropped"] == 2
    (last,) = traced.lab.reply(f"GET /v1/traces/{traced.number}/events", query="last=1")[1]["events"]
    assert last["event"] == "reply"
    traced.lab.ask(f"DELETE /v1/traces/{traced.number}")
    traced.world.pass_ms(100)
    kinds = [json.loads(line)["event"] for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert kinds == ["trace", "opened", "dropped", "request", "reply"]


def test_the_last_events_come_in_pages_and_say_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    traced = Traced(tmp_path)
    for _ in range(3):
        traced.client.ask("Metadata", 12, m.MetadataRequest(topics=[]))
    at = f"GET /v1/traces/{traced.number}/events"
    page = traced.lab.reply(at, query="after=1&limit=2")[1]
    assert (names(page["events"]), page["next"], page["missed"]) == (["request Metadata", "reply Metadata"], 3, 0)
    assert names(traced.lab.reply(at, query="last=1")[1]["events"]) == ["reply Metadata"]
    assert traced.lab.reply(at, query="after=7")[1]["next"] == 7


def test_the_ring_is_bounded_by_events_and_bytes() -> None:
    def block(*lines: bytes) -> tuple[bytes, int]:
        return bytes(TIMES.size) + b"".join(map(line_piece, lines)), len(lines)

    def found(ring: Ring, after: int, limit: int) -> tuple[int, list[bytes]]:
        first, count, lines = ring.after(after, limit, "none")
        kept = list(lines)
        assert len(kept) == count
        return first, kept

    ring = Ring(events_max=3)
    for text in (b"ab", b"cd", b"efg", b"h"):
        ring.add(*block(*(bytes([one]) for one in text)))
    assert found(ring, 0, 10) == (5, [b"e", b"f", b"g", b"h"])
    assert found(ring, 5, 2) == (6, [b"f", b"g"])
    assert found(ring, 7, 10) == (8, [b"h"])
    assert found(ring, 8, 10) == (9, [])
    small = Ring(bytes_max=2 * len(block(b"a")[0]))
    for text in (b"a", b"b", b"c"):
        small.add(*block(text))
    assert found(small, 0, 10) == (2, [b"b", b"c"])
    small.add(*block(b"x" * 1000))
    assert found(small, 0, 10) == (5, []), "one event alone is too large"


@pytest.mark.parametrize(
    ("body", "settings", "status", "words"),
    [
        ({"file": "../x"}, {}, 400, "file: must be the name of a file, without a path"),
        ({"file": "x"}, {"ottla_trace_directory": ""}, 409, "the broker has no ottla.trace.directory"),
        ({"file": "."}, {}, 400, "file: must be the name"),
        ({"api": "Fetsh"}, {}, 400, "api: no API 'Fetsh' (did you mean Fetch?)"),
        ({"raw": "all"}, {}, 400, "raw: "),
    ],
)
def test_what_cannot_be_traced_is_refused(
    tmp_path: Path, body: dict[str, str], settings: dict[str, str], status: int, words: str
) -> None:
    lab = LabWorld(ConnectedWorld(None, 0, **{"ottla_trace_directory": str(tmp_path), **settings}))
    found, text = lab.refused("POST /v1/traces", body)
    assert (found, text[: len(words)]) == (status, words)


def test_a_reset_ends_traces_and_closes_their_files(tmp_path: Path) -> None:
    traced = Traced(tmp_path, file="t.jsonl")
    traced.client.ask("Metadata", 12, m.MetadataRequest(topics=[]))
    traced.lab.ask("POST /v1/reset")
    assert traced.lab.ask("GET /v1/traces")["traces"] == []
    traced.world.pass_ms(100)
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == 4
    assert traced.world.dispatcher.seam is None
    for end in traced.lab.server.server.ends:  # type: ignore[attr-defined]
        end()  # at the end of the server nothing is left to close
