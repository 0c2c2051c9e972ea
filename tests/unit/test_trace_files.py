"""Traces as they are read: rotated files, lines that were cut off, files that grow; and which events are shown, how."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ottla.verdict.trace_lines import Event, TraceError

from ottla.traces import reading
from ottla.traces.filters import Chosen, Filter
from ottla.traces.lines import detailed, line, size_of
from ottla.traces.reading import follow, read
from ottla.traces.walking import Topics

HEAD: Event = {"event": "trace", "format": 1, "broker": "ottla 1", "cluster_id": "c", "node_id": 1, "raw": "none"}
TOPIC_ID = "01" * 16


def written(path: Path, *events: Event, end: str = "") -> Path:
    path.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in events) + end)
    return path


def noted(number: int) -> Event:
    return {"event": "closed", "connection": number}


def numbers(events: Iterator[Event]) -> list[object]:
    return [one.get("connection", one["event"]) for one in events]


def exchanged(kind: str, api: str, key: int, message: Any, **more: Any) -> Event:
    return {
        "event": kind, "at_ms": 1000, "mono_us": 5, "connection": 1, "peer": "127.0.0.1:5", "client_id": "shop",
        "exchange": 1, "api": api, "key": key, "version": 12, "correlation_id": 7, "size": 2048, "message": message,
        **more,
    }  # fmt: skip


METADATA = exchanged("reply", "Metadata", 3, {"topics": [{"name": "orders", "topic_id": TOPIC_ID, "error_code": 0}]})
FETCH = exchanged("request", "Fetch", 1, {"topics": [{"topic_id": TOPIC_ID, "partitions": []}]})
FETCHED = exchanged(
    "reply", "Fetch", 1, {"responses": [{"partitions": [{"error_code": 6}, {"error_code": 6}]}]}, latency_us=1500
)
JOIN = exchanged("request", "JoinGroup", 11, {"group_id": "g-1"}, exchange=2, correlation_id=8)
JOINED = exchanged("reply", "JoinGroup", 11, {"error_code": 0}, exchange=2, correlation_id=8)
OPENED: Event = {"event": "opened", "at_ms": 900, "connection": 1, "peer": "127.0.0.1:5", "listener": "PLAINTEXT"}
REFUSED: Event = {
    "event": "refused", "at_ms": 2000, "connection": 2, "peer": "127.0.0.1:6", "key": 99, "version": 1,
    "correlation_id": 3, "size": 10, "reason": "API key 99 is not served",
}  # fmt: skip
EVENTS = [HEAD, OPENED, METADATA, FETCH, FETCHED, JOIN, JOINED, REFUSED]


def test_rotated_files_are_read_before_the_current_one(tmp_path: Path) -> None:
    for suffix, number in (("", 12), (".1", 11), (".2", 10), (".10", 2), (".bak", 99)):
        written(tmp_path / f"t.jsonl{suffix}", HEAD, noted(number))
    assert numbers(read(tmp_path / "t.jsonl"))[1::2] == [2, 10, 11, 12]


def test_a_last_line_that_is_not_complete_is_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", HEAD, noted(1), end='{"event":"clo')
    assert numbers(read(path)) == ["trace", 1]


def test_a_line_that_a_crash_has_cut_off_is_damaged_and_the_next_broker_begins_in_it(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", HEAD, noted(1), end='{"event":"clo')
    with path.open("a") as file:
        file.write(json.dumps(HEAD, separators=(",", ":")) + "\n" + "nonsense\n" + json.dumps(noted(2)) + "\n")
    assert numbers(read(path)) == ["trace", 1, "trace", "damaged", 2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1]\n", "not an event"),
        ("{}\n", "not an event"),
        ("a line of a log\n", "t.jsonl:1: not an event"),
        (json.dumps({**HEAD, "format": 2}), ""),
    ],
)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text if text.endswith("\n") else f"{text}\n")
    for events in (read(path), follow(path)):
        with pytest.raises(TraceError, match=words or "a trace of format 2; this is for format 1"):
            list(events)


def test_a_trace_is_followed_across_rotations(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", HEAD, noted(1), end='{"event":"closed",')
    naps = 0

    def sleep(_: float) -> None:
        nonlocal naps
        naps += 1
        if naps == 1:
            with path.open("a") as file:
                file.write('"connection":2}\n')
        elif naps == 2:
            path.rename(tmp_path / "t.jsonl.1")
            with (tmp_path / "t.jsonl.1").open("a") as file:
                file.write(json.dumps(noted(3)) + "\n")
            written(path, HEAD, noted(4))
        else:
            raise KeyboardInterrupt

    found: list[object] = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(event.get("connection", event["event"]) for event in follow(path, sleep))
    assert found == ["trace", 1, 2, 3, "trace", 4]


def test_a_trace_is_followed_across_rotations_that_come_together(tmp_path: Path) -> None:
    """What is between two looks may be a whole file, or more than the files that are kept."""
    path = written(tmp_path / "t.jsonl", HEAD, noted(1))
    naps = 0

    def rotate(number: int) -> None:
        for old in (2, 1):
            if (tmp_path / f"t.jsonl.{old}").exists():
                (tmp_path / f"t.jsonl.{old}").rename(tmp_path / f"t.jsonl.{old + 1}")
        path.rename(tmp_path / "t.jsonl.1")
        written(path, HEAD, noted(number))

    def sleep(_: float) -> None:
        nonlocal naps
        naps += 1
        if naps == 1:
            for number in (2, 3):
                rotate(number)
        elif naps == 2:
            for number in (4, 5, 6):
                rotate(number)
            (tmp_path / "t.jsonl.3").unlink()  # which was read
        else:
            raise KeyboardInterrupt

    found: list[object] = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(event["connection"] for event in follow(path, sleep) if "connection" in event)
    assert found == [1, 2, 3, 4, 5, 6]


def test_a_trace_is_followed_while_its_file_has_no_name(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", HEAD, noted(1))
    naps = 0

    def sleep(_: float) -> None:
        nonlocal naps
        naps += 1
        if naps == 1:
            path.rename(tmp_path / "t.jsonl.1")
        elif naps == 2:
            written(path, HEAD, noted(2))
        elif naps == 4:
            raise KeyboardInterrupt

    found: list[object] = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(event["connection"] for event in follow(path, sleep) if "connection" in event)
    assert found == [1, 2]


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        (Chosen(), EVENTS),
        (Chosen(apis=frozenset({"Fetch"})), [HEAD, FETCH, FETCHED]),
        (Chosen(topic="ord*"), [HEAD, METADATA, FETCH, FETCHED]),
        (Chosen(group="g-?"), [HEAD, JOIN, JOINED]),
        (Chosen(topic="other"), [HEAD]),
        (Chosen(client_id="sh*", correlation_id=8), [HEAD, JOIN, JOINED]),
        (Chosen(client_id="other"), [HEAD]),
        (Chosen(errors_only=True), [FETCHED, REFUSED]),
        (Chosen(connection=2), [HEAD, REFUSED]),
        (Chosen(since_ms=1500), [HEAD, REFUSED]),
        (Chosen(until_ms=950), [HEAD, OPENED]),
    ],
)
def test_filters_choose_events(chosen: Chosen, shown: list[Event]) -> None:
    takes = Filter(chosen, Topics()).takes
    assert [one for one in EVENTS if takes(one)] == shown


def test_a_reply_that_is_not_shown_says_the_name_of_a_topic_too() -> None:
    topics = Topics()
    takes = Filter(Chosen(frozenset({"Fetch"})), topics).takes
    assert [line(one, topics).endswith("topic=orders") for one in EVENTS if takes(one)][1:] == [True, False]


def test_a_line_says_what_an_event_is() -> None:
    topics = Topics()
    shown = [line(one, topics) for one in EVENTS]
    assert shown[0] == "trace of ottla 1, cluster c, node 1"
    assert [one.partition(" #")[2] for one in shown[1:]] == [
        "1 127.0.0.1:5 opened on PLAINTEXT",
        "1 127.0.0.1:5 < Metadata v12 id=7 0.0ms 2.0KB topic=orders",
        "1 127.0.0.1:5 > Fetch v12 id=7 client=shop 2.0KB topic=orders",
        "1 127.0.0.1:5 < Fetch v12 id=7 1.5ms 2.0KB NOT_LEADER_OR_FOLLOWERx2",
        "1 127.0.0.1:5 > JoinGroup v12 id=8 client=shop 2.0KB group=g-1",
        "1 127.0.0.1:5 < JoinGroup v12 id=8 0.0ms 2.0KB",
        "2 127.0.0.1:6 > key 99 v1 id=3 10B refused: API key 99 is not served",
    ]
    assert line({**HEAD, "filters": {"api": "Fetch", "topic": "t"}}, topics).endswith("node 1, only api=Fetch, topic=t")
    assert line({"event": "dropped", "count": 3}, topics) == "... 3 events are missing"
    assert line({"event": "damaged", "where": "t:3"}, topics) == "t:3: a damaged line is left out"
    assert line(exchanged("reply", "Produce", 0, None, size=0), topics).endswith("no reply")
    assert "ms waiting=2 2.0KB" in line(exchanged("reply", "Heartbeat", 12, {}, waiting=[0, 3]), topics)
    for end, words in (
        ({"by": "client"}, "by the client"),
        ({"by": "broker", "reason": "idle"}, "by the broker (idle)"),
    ):
        assert line({**OPENED, "event": "closed", **end}, topics).endswith(f" {words}")
    assert (size_of(100), size_of(3 << 20)) == ("100B", "3.0MB")
    assert '      "group_id": "g-1"' in list(detailed(JOIN, topics))


def test_an_api_that_is_not_known_is_shown_without_what_its_schema_says() -> None:
    assert line(exchanged("request", "Newer", 9999, {"a": 1}), Topics()).endswith("> Newer v12 id=7 client=shop 2.0KB")


def test_a_url_must_be_that_of_a_lab() -> None:
    with pytest.raises(TraceError, match="is not the URL of a lab"):
        reading.at_url("http://127.0.0.1:1/v2/x")
