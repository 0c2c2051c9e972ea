"""Replays, without a broker: ids that are learned and translated, replies that are compared, requests that are made."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from ottla.protocol import codec, headers, records, schema
from ottla.protocol import messages as m
from ottla.protocol.codec import as_plain
from ottla.verdict.trace_lines import Event

from ottla.comparing import rules
from ottla.comparing.differences import ABSENT, Difference
from ottla.comparing.identities import PRODUCER, Identities, translate
from ottla.replay import replies
from ottla.replay.exchanges import Exchange, steps
from ottla.replay.plain import NotWhole, message_of
from ottla.replay.replies import Answered

from ..support.ask import batch, produce_message
from ..support.wire import request_frame

RULES = rules.read(rules.REPLAY)


def compare(
    api: str, said: Any, now: Any, identities: Identities | None = None, request: Any = None, version: int = 0
) -> list[Answered]:
    asked = event(api, version or schema.load(f"{api}Request").valid.high, request, raw=False)
    return replies.compare(Exchange(asked), said, now, identities or Identities(), RULES)


def translated(identities: Identities, message: Any) -> Any:
    translate(message, identities)
    return message


def event(api: str, version: int, message: Any, raw: bool = True, **more: Any) -> Event:
    message = getattr(m, f"{api}Request")() if message is None else message
    frame = request_frame(api, version, message, 7, "shop")[4:]
    found: Event = {
        "event": "request", "mono_us": 100, "connection": 1, "exchange": 1, "api": api, "version": version,
        "key": int.from_bytes(frame[:2], "big"), "correlation_id": 7, "client_id": "shop", "message": as_plain(message),
    }  # fmt: skip
    return {**found, **more, **({"raw": base64.b64encode(frame).decode()} if raw else {})}


ONE, OTHER = (f"shop-{name * 8}-aaaa-aaaa-aaaa-aaaaaaaaaaaa" for name in "ab")


def test_ids_of_members_are_learned_from_replies_and_translated() -> None:
    ids = Identities()
    said = {"error_code": 0, "generation_id": 1, "leader": ONE, "member_id": ONE, "members": [{"member_id": ONE}]}
    now = {"error_code": 0, "generation_id": 4, "leader": OTHER, "member_id": OTHER, "members": [{"member_id": OTHER}]}
    assert compare("JoinGroup", said, now, ids, m.JoinGroupRequest(group_id="g")) == []
    r = m.SyncGroupRequest
    request = r(group_id="g", generation_id=1, member_id=ONE)
    request.assignments = [r.SyncGroupRequestAssignment(member_id=ONE)]
    made = translated(ids, request)
    assert (made.generation_id, made.member_id, made.assignments[0].member_id) == (4, OTHER, OTHER)
    other = translated(ids, m.HeartbeatRequest(group_id="h", generation_id=1, member_id="x"))
    assert (other.generation_id, other.member_id) == (1, "x")  # of another group, or unknown


def test_producers_are_translated_in_records_too() -> None:
    ids = Identities()
    said = {"throttle_time_ms": 0, "error_code": 0, "producer_id": 0, "producer_epoch": 3}
    assert compare("InitProducerId", said, {**said, "producer_id": 7000, "producer_epoch": 0}, ids) == []
    data = batch(b"x", b"y", producer_id=0, producer_epoch=3, base_sequence=2) + batch(b"z")
    made = translated(ids, produce_message("orders", data))
    found = made.topic_data[0].partition_data[0].records
    heads = [one.header for one in records.batches(found)]
    assert [(one.producer_id, one.producer_epoch) for one in heads] == [(7000, 0), (-1, -1)]
    assert found == batch(b"x", b"y", producer_id=7000, producer_epoch=0, base_sequence=2) + batch(b"z")
    end = translated(ids, m.EndTxnRequest(transactional_id="t", producer_id=0, producer_epoch=3))
    assert (end.producer_id, end.producer_epoch) == (7000, 0)


def test_ids_of_subscriptions_may_be_negative() -> None:
    ids = Identities()
    assert compare("GetTelemetrySubscriptions", {"subscription_id": 5}, {"subscription_id": -7}, ids) == []
    assert translated(ids, m.PushTelemetryRequest(subscription_id=5)).subscription_id == -7


def test_a_broken_batch_is_sent_as_it_is() -> None:
    ids = Identities()
    assert ids.match(PRODUCER, {}, 5, 6)
    data = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0)
    wrong_checksum = bytearray(data)
    wrong_checksum[-1] ^= 1

    def sent(of: bytes) -> Any:
        return translated(ids, produce_message("orders", of)).topic_data[0].partition_data[0].records

    for broken in (data[:65], data[:30], b"", bytes(100)):
        assert sent(broken) == broken
    found = bytes(sent(bytes(wrong_checksum)))
    assert found[17:21] == data[17:21]  # a wrong checksum stays one
    (at,) = records.batches(found)
    assert (at.header.producer_id, records.computed_crc(found, 0, len(found)) == at.header.crc) == (6, False)


def test_topic_ids_stand_for_topics_in_another_order() -> None:
    ids = Identities()

    def topics(*named: tuple[str, str]) -> dict[str, object]:
        return {"topics": [{"name": name, "topic_id": one * 32, "error_code": 0} for name, one in named]}

    assert compare("Metadata", topics(("a", "1"), ("b", "2")), topics(("b", "4"), ("a", "3")), ids) == []
    r = m.FetchRequest
    request = r(session_id=0, topics=[r.FetchTopic(topic_id=bytes.fromhex("2" * 32))])
    assert translated(ids, request).topics[0].topic_id.hex() == "4" * 32
    said = {"responses": [{"topic_id": one * 32, "partitions": [{"partition_index": 0, "error_code": code}]}
                          for one, code in (("1", 0), ("2", 3))]}  # fmt: skip
    now = {"responses": [{"topic_id": one * 32, "partitions": [{"partition_index": 0, "error_code": code}]}
                         for one, code in (("4", 0), ("3", 0))]}  # fmt: skip
    assert compare("Fetch", said, now, ids) == [
        Answered(
            Difference(f"responses[{'2' * 32}].partitions[0].error_code", 3, 0),
            "the broker of the trace was not ready yet",
        )
    ]


@pytest.mark.parametrize(
    ("api", "said", "now", "found"),
    [
        ("Heartbeat", {"error_code": 0}, {"error_code": 27}, [("error_code", 0, 27, False)]),
        ("Heartbeat", {"throttle_time_ms": 0}, {"throttle_time_ms": 5}, [("throttle_time_ms", 0, 5, True)]),
        ("JoinGroup", {"member_id": "a"}, {"member_id": ""}, [("member_id", "a", "", False)]),
        ("FindCoordinator", {"node_id": 1, "port": 1}, {"node_id": 2, "port": 2},
         [("port", 1, 2, True)]),
        ("ApiVersions", {"api_keys": []}, {"api_keys": [{"api_key": 1}]},
         [("api_keys[1]", ABSENT, {"api_key": 1}, True)]),
        ("Metadata", {"topics": [{"name": "a"}]}, {"topics": []}, [("topics[a]", {"name": "a"}, ABSENT, False)]),
        ("Heartbeat", {"error_code": 0}, {}, [("error_code", 0, ABSENT, False)]),
        ("ConsumerGroupHeartbeat", {"error_code": 14, "member_epoch": 0}, {"error_code": 0, "member_epoch": 4},
         [("error_code", 14, 0, True), ("member_epoch", 0, 4, True)]),
        ("ConsumerGroupHeartbeat", {"error_code": 25, "member_epoch": 0}, {"error_code": 0, "member_epoch": 4},
         [("error_code", 25, 0, False), ("member_epoch", 0, 4, False)]),
        ("Metadata", {"topics": [{"name": "a", "error_code": 3}, {"name": "b", "is_internal": False}]},
         {"topics": [{"name": "a", "error_code": 0, "is_internal": True}, {"name": "b", "is_internal": True}]},
         [("topics[a].error_code", 3, 0, True), ("topics[a].is_internal", ABSENT, True, True),
          ("topics[b].is_internal", False, True, False)]),
        ("Produce", {"responses": [{"name": "a", "partition_responses": [{"index": 1, "base_offset": 3}]}]},
         {"responses": [{"name": "a", "partition_responses": [{"index": 1, "base_offset": 4}]}]},
         [("responses[a].partition_responses[1].base_offset", 3, 4, False)]),
        ("Fetch", {"responses": [{"topic": "a", "partitions": [{"partition_index": 0, "records": {"bytes": 5}}]}]},
         {"responses": [{"topic": "a", "partitions": [{"partition_index": 0, "records": {"bytes": 6, "count": 1}}]}]},
         [("responses[a].partitions[0].records.bytes", 5, 6, False)]),
        ("Fetch", {"responses": [{"topic": "a", "partitions": [{"partition_index": 0, "records": {"crc": 1}}]}]},
         {"responses": [{"topic": "a", "partitions": [{"partition_index": 0, "records": {"crc": 2}}]}]}, []),
    ],
)  # fmt: skip
def test_differences_have_paths_and_rules(api: str, said: Any, now: Any, found: list[Any]) -> None:
    shown = [(one.path, one.a, one.b, why != "") for one, why in compare(api, said, now)]
    assert shown == found
    assert compare(api, said, said) == []


def test_another_cluster_has_other_brokers() -> None:
    def allowed(api: str, path: str) -> bool:
        return RULES.rule_for(api, Difference(path, 1, 2)) is not None

    assert allowed("Produce", "responses[a].partition_responses[1].log_append_time_ms")
    assert allowed("Metadata", "brokers[1]")
    assert allowed("Metadata", "topics[a].partitions[0].isr_nodes")
    assert not allowed("Metadata", "topics[a].name")
    assert not allowed("Fetch", "responses[a].partitions[0].high_watermark")


@pytest.mark.parametrize("raw", [True, False])
def test_a_request_is_made_of_its_bytes_or_of_its_fields(raw: bool) -> None:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name="orders", num_partitions=2, replication_factor=1)
    topic.configs = [r.CreatableTopicConfig(name="retention.ms", value="5")]
    message = r(topics=[topic], timeout_ms=10)
    exchange = Exchange(event("CreateTopics", 7, message, raw))
    made = exchange.frame(exchange.request())
    assert made == request_frame("CreateTopics", 7, message, 7, "shop")


def test_what_the_trace_does_not_have_cannot_be_sent() -> None:
    with pytest.raises(NotWhole, match="the trace has no records"):
        Exchange(event("Produce", 9, produce_message("orders", batch(b"x")), raw=False)).request()
    with pytest.raises(NotWhole, match="auth_bytes is masked"):
        message_of("SaslAuthenticateRequest", {"auth_bytes": "***"})
    for raw in ("YWJ", "Y*Jj", "\u00e9"):
        with pytest.raises(NotWhole, match="the frame in the trace is damaged"):
            Exchange({**event("Heartbeat", 4, m.HeartbeatRequest()), "raw": raw}).request()


def test_steps_are_what_happened_without_log_ins() -> None:
    ask = event("Heartbeat", 4, m.HeartbeatRequest())
    reply: Event = {**ask, "event": "reply", "mono_us": 350, "message": {"error_code": 0}}
    login: Event = {**ask, "key": 36, "api": "SaslAuthenticate", "exchange": 2}
    events: list[Event] = [
        {"event": "trace"}, login, ask, {**login, "event": "reply"}, reply, {**reply, "exchange": 9},
        {"event": "closed", "connection": 1, "mono_us": 400},
    ]  # fmt: skip
    found = list(steps(events))
    assert [(one.kind, one.at_us) for one in found] == [("request", 0), ("reply", 250), ("closed", 300)]
    exchange = found[1].exchange
    assert exchange is not None
    assert exchange.has_reply
    name = "HeartbeatResponse"
    frame = codec.build(name, 4, m.HeartbeatResponse(error_code=27), headers.start_response(name, 4, 7))[4:]
    assert exchange.answer(bytes(frame)) == {"throttle_time_ms": 0, "error_code": 27}
