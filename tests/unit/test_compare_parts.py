"""The pure parts of `ottla compare`: addresses, versions, when B is asked again, the report."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from ottla.protocol import codec, schema
from ottla.protocol import messages as m
from ottla.protocol.errors import CODES, MalformedMessage
from ottla.protocol.frames import framed

from ottla.addresses import Address
from ottla.compare import addresses
from ottla.compare.exchange import Exchange, exchange_of
from ottla.compare.nodes import Nodes
from ottla.compare.report import SHOWN_MAX, Report
from ottla.compare.upstream import read_frame, versions_of
from ottla.comparing import rules
from ottla.comparing.differences import Difference
from ottla.comparing.early import error_codes, is_early, is_refused
from ottla.comparing.identities import Identities

from ..support.wire import request_frame

NOT_THERE, LOADING, CONCURRENT = (
    CODES[name] for name in ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS")
)


def asked(api: str, version: int, message: Any) -> Exchange:
    return exchange_of(request_frame(api, version, message)[4:])


@pytest.mark.parametrize(
    ("text", "host", "port"), [("a:1", "a", 1), (":9092", "127.0.0.1", 9092), ("[::1]:7", "::1", 7)]
)
def test_addresses_are_read(text: str, host: str, port: int) -> None:
    assert Address.parse(text) == (host, port)


@pytest.mark.parametrize("text", ["", "a", "a:", "a:b", "a:70000"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="not HOST:PORT"):
        Address.parse(text)


def test_replies_with_addresses_are_those_whose_schema_has_them() -> None:
    found = {
        names["response"].removesuffix("Response")
        for names in schema.index()["apis"].values()
        if addresses.has_nodes(names["response"])
    }
    assert found >= {
        "Metadata",
        "FindCoordinator",
        "DescribeCluster",
        "Produce",
        "Fetch",
        "ShareFetch",
        "ShareAcknowledge",
    }
    assert found.isdisjoint({"DescribeAcls", "DescribeGroups", "ListOffsets", "DescribeTopicPartitions"})


def test_addresses_at_any_depth_are_moved() -> None:
    coordinator = m.FindCoordinatorResponse.Coordinator
    reply = m.FindCoordinatorResponse(
        node_id=-1, coordinators=[coordinator(node_id=3, host="a", port=1), coordinator(node_id=-1, host="", port=-1)]
    )
    (node,) = addresses.nodes(reply)
    assert (node.node_id, node.address) == (3, ("a", 1))
    node.move(Address("proxy", 7))
    assert (reply.coordinators[0].host, reply.coordinators[0].port) == ("proxy", 7)
    first = m.FindCoordinatorResponse(node_id=2, host="b", port=2)
    assert [one.node_id for one in addresses.nodes(first)] == [2]


def versions(levels: int, *found: tuple[int, int, int]) -> Any:
    r = m.ApiVersionsResponse
    return r(
        api_keys=[r.ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in found],
        supported_features=[r.SupportedFeatureKey(name="f", min_version=0, max_version=levels)],
        finalized_features=[r.FinalizedFeatureKey(name="f", max_version_level=levels, min_version_level=levels)],
    )


def test_clients_see_what_both_have() -> None:
    a, b = versions(3, (0, 3, 12), (1, 4, 17), (2, 0, 3)), versions(2, (0, 0, 11), (2, 5, 6), (3, 0, 1))
    mine, theirs = addresses.ranges(a), addresses.ranges(b)
    assert addresses.lacking(mine, theirs) == ["Produce v12-12", "Fetch v4-17", "ListOffsets v0-3"]
    addresses.intersect(a, b)
    assert addresses.ranges(a) == {0: (3, 11)}
    assert (a.supported_features[0].max_version, a.finalized_features[0].max_version_level) == (2, 2)
    addresses.intersect(a, m.ApiVersionsResponse())
    assert not a.api_keys
    assert not a.finalized_features


def test_a_broker_that_tells_its_versions_and_leaves_is_not_taken_for_an_old_one() -> None:
    """It tells the version that has features, and closes the connection when it is asked for them."""
    requests = []

    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        version = int.from_bytes((await read_frame(reader, 1000))[2:4], "big")
        requests.append(version)
        if version == 0:
            known = m.ApiVersionsResponse(api_keys=[m.ApiVersionsResponse.ApiVersion(api_key=18, max_version=3)])
            writer.write(framed(bytes(4) + codec.build("ApiVersionsResponse", 0, known)))
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(leave, "127.0.0.1")
        async with server:
            await versions_of(Address(*server.sockets[0].getsockname()), None)

    with pytest.raises(ConnectionError, match="cannot reach"):
        asyncio.run(run())
    assert requests == [0, 3]


def test_what_is_no_kafka_is_said_to_be_none() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader, 1000)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1")
        async with server:
            await versions_of(Address(*server.sockets[0].getsockname()), None)

    with pytest.raises(ConnectionError, match=r"it does not answer in Kafka's protocol .* it may expect TLS"):
        asyncio.run(run())


def test_a_request_is_read_as_far_as_it_is_known() -> None:
    known = asked("Metadata", 9, m.MetadataRequest(topics=[]))
    assert (known.api, known.version, known.has_reply) == ("Metadata", 9, True)
    assert known.request == m.MetadataRequest(topics=[])
    assert not asked("Produce", 9, m.ProduceRequest(acks=0)).has_reply
    assert asked("Produce", 9, m.ProduceRequest(acks=1, timeout_ms=700)).time_ms == 700
    for frame in (b"\x7f\x7f\0\0\0\0\0\1", b"\0\3\0\x63\0\0\0\1\0\0", b"\0\3\0\x09\0\0\0\1\0\0\0\xff\xff"):
        unknown = exchange_of(frame)
        assert unknown.request is None
        assert unknown.reply(b"\0\0\0\1\0") is None
        assert unknown.for_b(Identities())[4:] == frame
    with pytest.raises(MalformedMessage):
        exchange_of(b"\0\3\0\x09")


def added(*codes: int) -> Any:
    r = m.AddPartitionsToTxnResponse
    results = [
        r.AddPartitionsToTxnPartitionResult(partition_index=n, partition_error_code=c) for n, c in enumerate(codes)
    ]
    return r(results_by_topic_v3_and_below=[r.AddPartitionsToTxnTopicResult(name="t", results_by_partition=results)])


def test_b_is_asked_again_only_where_it_has_done_nothing() -> None:
    fields = schema.load("AddPartitionsToTxnResponse").root.fields
    assert error_codes(added(CONCURRENT, 0), fields, 3) == [CONCURRENT, 0]
    exchange = "AddPartitionsToTxn", 3
    assert is_early(*exchange, added(0), added(CONCURRENT))
    assert not is_early(*exchange, added(0, 0), added(CONCURRENT, 0))
    assert not is_early(*exchange, added(CONCURRENT), added(CONCURRENT))
    assert not is_early(*exchange, added(0), added(CODES["INVALID_TXN_STATE"]))
    assert is_early("FindCoordinator", 2, m.FindCoordinatorResponse(), m.FindCoordinatorResponse(error_code=NOT_THERE))
    loading = m.JoinGroupResponse(error_code=LOADING)
    assert is_early("JoinGroup", 4, m.JoinGroupResponse(), loading)


def test_b_does_not_get_what_a_has_only_refused() -> None:
    assert is_refused("JoinGroup", 4, m.JoinGroupResponse(error_code=LOADING))
    assert not is_refused("JoinGroup", 4, m.JoinGroupResponse(error_code=CODES["UNKNOWN_MEMBER_ID"]))
    assert is_refused("AddPartitionsToTxn", 3, added(CONCURRENT, NOT_THERE))
    assert not is_refused("AddPartitionsToTxn", 3, added(CONCURRENT, 0))
    assert not is_refused("FindCoordinator", 2, m.FindCoordinatorResponse(error_code=NOT_THERE))  # changes nothing


def test_a_report_shows_the_first_of_a_kind_and_counts_all() -> None:
    lines: list[str] = []
    report = Report(rules.read(), Identities(), True, lines.append)
    for n in range(SHOWN_MAX + 3):
        found = [Difference(f"topics[t{n}].error_code", 0, 3), Difference("brokers[1].port", 1, 2)]
        report.take("Metadata", 9, found, m.MetadataRequest())
    report.note("a note")
    report.skip("Fetch", 4, "why")
    report.end()
    events = [json.loads(line) for line in lines]
    assert [one["event"] for one in events] == ["difference"] * SHOWN_MAX + ["note", "summary"]
    summary = events[-1]
    assert (summary["differences"], summary["compared"]) == (SHOWN_MAX + 3, {"Metadata": SHOWN_MAX + 3})
    assert summary["paths"] == [{"api": "Metadata", "path": "topics[].error_code", "count": SHOWN_MAX + 3}]
    assert [(one["rule"], one["count"]) for one in summary["hidden"]] == [("* *port", SHOWN_MAX + 3)]
    assert summary["not_compared"] == [{"api": "Fetch", "version": 4, "reason": "why", "count": 1}]


def test_a_report_for_people() -> None:
    lines: list[str] = []
    report = Report(rules.read(), Identities(), False, lines.append)
    report.take("Metadata", 9, [Difference("topics[\x1b].error_code", 0, b"x" * 1000)], m.MetadataRequest(topics=[]))
    report.asked_again["Metadata"] += 1
    report.end()
    assert lines[0].startswith('Metadata v9 topics[\\x1b].error_code: A 0, B "7878')
    assert lines[1:] == [
        "compared 1 replies of 1 APIs: 1 differences",
        "  1 x Metadata topics[].error_code",
        "  B was asked 1 times again: Metadata",
    ]


def test_a_report_has_no_secrets() -> None:
    lines: list[str] = []
    report = Report(rules.Rules([]), Identities(), True, lines.append)
    request = m.SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonderland")
    tokens = m.CreateDelegationTokenResponse
    found = [Difference("auth_bytes", b"wonderland", b""), Difference("token", tokens(hmac=b"wonderland"), "<absent>")]
    report.take("SaslAuthenticate", 2, found, request)
    assert len(lines) == 2
    assert not any(b"wonderland".hex() in line or "wonderland" in line for line in lines)


def test_requests_to_a_coordinator_go_to_that_of_b_and_others_to_the_node_that_stands_for_as() -> None:
    found = Nodes(Identities())
    brokers = m.MetadataResponse.MetadataResponseBroker
    a = m.MetadataResponse(brokers=[brokers(node_id=n, host="a", port=n) for n in (1, 2)], controller_id=1)
    b = m.MetadataResponse(brokers=[brokers(node_id=n, host="b", port=n) for n in (20, 10)], controller_id=20)
    assert not found.are_several
    found.take(a, b)
    assert found.are_several
    replied = m.FindCoordinatorResponse.Coordinator
    coordinators = [
        replied(key="g", node_id=20, host="b", port=20),
        replied(key="h", error_code=15, node_id=-1, host="", port=-1),
    ]
    asked = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g", "h"])
    found.take_coordinators(asked, m.FindCoordinatorResponse(coordinators=coordinators))
    describe = m.DescribeGroupsRequest(groups=["g"])
    fetch = m.OffsetFetchRequest(groups=[m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g")])
    shares = m.ShareFetchRequest(group_id="g")
    init = m.InitProducerIdRequest(transactional_id="g")  # a key of another type
    for api, request, place in (
        ("Heartbeat", m.HeartbeatRequest(group_id="g"), Address("b", 20)),
        ("DescribeGroups", describe, Address("b", 20)),
        ("OffsetFetch", fetch, Address("b", 20)),
        ("ShareFetch", shares, Address("b", 10)),
        ("InitProducerId", init, Address("b", 10)),
        ("Heartbeat", m.HeartbeatRequest(group_id="h"), Address("b", 10)),
    ):
        assert found.place_for(api, request, 1, Address("a", 1)) == place, api
    assert found.place_for("Metadata", m.MetadataRequest(), None, Address("a", 2)) == Address("b", 20)
    assert found.place_for("Metadata", m.MetadataRequest(), None, Address("other", 2)) is None
