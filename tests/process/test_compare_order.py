"""`ottla compare` with several connections: whatever order B has, what only comes of the order is no difference."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.ask import batch, create, fetch, fetch_message, produce, produce_message, values
from ..support.compared import Compared, assert_same, compared
from ..support.poll import until
from ..support.wire import Closed, Wire, request_frame

pytestmark = pytest.mark.slow
THREE = (b"1", b"2", b"3")


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Broker, Broker]]:
    with Broker() as a, Broker() as b:
        yield a, b


@pytest.fixture
def proxy(pair: tuple[Broker, Broker]) -> Iterator[Compared]:
    with compared(*(one.bootstrap_servers for one in pair)) as found:
        yield found
        for broker in pair:
            broker.lab.reset()


@pytest.fixture
def first(proxy: Compared) -> Iterator[Wire]:
    with Wire(proxy.bootstrap_servers) as wire:
        yield wire


@pytest.fixture
def second(proxy: Compared) -> Iterator[Wire]:
    with Wire(proxy.bootstrap_servers) as wire:
        yield wire


def end_offset(wire: Wire, topic: str) -> int:
    r = m.ListOffsetsRequest
    asked = r.ListOffsetsTopic(name=topic, partitions=[r.ListOffsetsPartition(partition_index=0, timestamp=-1)])
    ((found,),) = (one.partitions for one in wire.ask("ListOffsets", 5, r(replica_id=-1, topics=[asked])).topics)
    assert found.error_code == 0
    return int(found.offset)


def ends(broker: Broker, topic: str) -> list[int]:
    return [one["log_end_offset"] for one in broker.lab.topic(topic)["partitions"]]


def send_silently(wire: Wire, topic: str, *of: bytes) -> None:
    wire.send(request_frame("Produce", 9, produce_message(topic, batch(*of), acks=0)))


def test_what_follows_a_produce_without_a_reply_waits_at_b_until_it_has_the_records(
    first: Wire, second: Wire, proxy: Compared, pair: tuple[Broker, Broker]
) -> None:
    create(first, "silent")
    with pair[1].lab.hold_requests(api="Produce", topic="silent") as hold:
        send_silently(first, "silent", *THREE)
        hold.held(at_least=1)
        until(lambda: fetch(second, "silent") == [*THREE], "A's records")
        assert fetch(second, "silent", 2) == [b"3"]
        assert end_offset(second, "silent") == 3
        assert produce(second, "silent", b"4").base_offset == 3
    assert fetch(first, "silent", 3) == [b"4"]
    proxy.end()
    assert_same(proxy, "Fetch", "ListOffsets", "Produce")


def test_records_of_a_produce_that_is_under_way_are_waited_for(
    first: Wire, second: Wire, proxy: Compared, pair: tuple[Broker, Broker]
) -> None:
    """A has appended and not answered, and B has nothing: a reader of A sees the records."""
    create(first, "under-way")
    with pair[0].lab.hold_requests(api="Produce", topic="under-way", at="reply") as replies:
        first.say("Produce", 9, produce_message("under-way", batch(*THREE)))
        replies.held(at_least=1)
        assert fetch(second, "under-way", 1) == [b"2", b"3"]
        assert end_offset(second, "under-way") == 3
    assert first.reply("Produce", 9).responses[0].partition_responses[0].base_offset == 0
    proxy.end()
    assert_same(proxy, "Fetch", "ListOffsets", "Produce")


def test_a_fetch_session_goes_on_at_b_where_a_partition_was_late(
    first: Wire, second: Wire, proxy: Compared, pair: tuple[Broker, Broker]
) -> None:
    """B refuses an offset that it does not have yet, in a session, which it keeps."""
    create(first, "session")
    assert produce(first, "session", b"0").error_code == 0
    with pair[1].lab.fault("error", error="OFFSET_OUT_OF_RANGE", api="Fetch", topic="session", times=3) as fault:
        opening = fetch_message("session", 0)
        opening.session_epoch = 0
        opened = second.ask("Fetch", 11, opening)
        assert values(opened.responses[0].partitions[0].records) == [b"0"]
        until(lambda: fault.applied == 3, "B's refusals")
    assert produce(first, "session", b"1").error_code == 0
    going_on = fetch_message("session", 1)
    going_on.session_id, going_on.session_epoch = opened.session_id, 1
    found = second.ask("Fetch", 11, going_on)
    assert (found.error_code, values(found.responses[0].partitions[0].records)) == (0, [b"1"])
    proxy.end()
    assert_same(proxy, "Fetch")


def test_a_produce_that_b_was_not_ready_for_is_sent_again_where_it_was_refused(
    first: Wire, proxy: Compared, pair: tuple[Broker, Broker]
) -> None:
    create(first, "early", 2)
    r = m.ProduceRequest
    of = [r.PartitionProduceData(index=n, records=batch(b"%d" % n)) for n in range(2)]
    message = r(acks=-1, timeout_ms=10_000, topic_data=[r.TopicProduceData(name="early", partition_data=of)])
    refused = {"error": "NOT_LEADER_OR_FOLLOWER", "api": "Produce", "topic": "early", "partition": 1, "times": 1}
    for acks in (-1, 0):
        with pair[1].lab.fault("error", **refused) as fault:
            message.acks = acks
            if acks:
                assert not any(
                    one.error_code for one in first.ask("Produce", 9, message).responses[0].partition_responses
                )
            else:
                first.send(request_frame("Produce", 9, message))
            until(lambda: fault.applied == 1, "B's refusal")
        until(lambda: fetch(first, "early", 0, 1)[-1:] == [b"1"], "the records")
    proxy.end()
    assert_same(proxy, "Produce")
    assert [ends(one, "early") for one in pair] == [[2, 2], [2, 2]]


def test_what_a_was_not_ready_for_does_not_go_to_b(first: Wire, proxy: Compared, pair: tuple[Broker, Broker]) -> None:
    """The client sends it again, and B would have it twice."""
    create(first, "refused-by-a", 2)
    r = m.ProduceRequest
    of = [r.PartitionProduceData(index=n, records=batch(b"%d" % n)) for n in range(2)]
    message = r(acks=-1, timeout_ms=10_000, topic_data=[r.TopicProduceData(name="refused-by-a", partition_data=of)])
    refused = {"error": "NOT_LEADER_OR_FOLLOWER", "api": "Produce", "topic": "refused-by-a", "times": 1}
    with pair[0].lab.fault("error", **refused):
        assert [one.error_code for one in first.ask("Produce", 9, message).responses[0].partition_responses] == [6, 6]
    with pair[0].lab.fault("error", partition=1, **refused):
        assert [one.error_code for one in first.ask("Produce", 9, message).responses[0].partition_responses] == [0, 6]
    assert produce(first, "refused-by-a", b"1", partition=1).error_code == 0
    proxy.end()
    assert_same(proxy, "Produce")
    assert [ends(one, "refused-by-a") for one in pair] == [[1, 1], [1, 1]]
    assert [one["count"] for one in proxy.summary["not_compared"] if one["api"] == "Produce"] == [1]


def test_a_produce_without_a_reply_that_only_b_refuses_is_a_difference(
    first: Wire, proxy: Compared, pair: tuple[Broker, Broker]
) -> None:
    create(first, "refused")
    with pair[1].lab.fault("error", error="CORRUPT_MESSAGE", api="Produce", topic="refused", times=1):
        send_silently(first, "refused", b"1")
        first.ask("ApiVersions", 3, m.ApiVersionsRequest(client_software_name="t", client_software_version="1"))
        proxy.await_difference("Produce", "responses[refused].partition_responses[0].error_code")
    proxy.end()
    (shown,) = (one for one in proxy.events if one["event"] == "difference")
    assert (shown["a"], shown["b"]) == ("0", "2")


def test_a_produce_without_a_reply_that_both_refuse_closes_the_connection_and_is_none(
    first: Wire, proxy: Compared
) -> None:
    create(first, "both")
    data = bytearray(batch(b"1"))
    data[-1] ^= 1  # the checksum is wrong now
    first.send(request_frame("Produce", 9, produce_message("both", bytes(data), acks=0)))
    with pytest.raises(Closed):
        first.read_frame()
    proxy.end()
    assert_same(proxy, "CreateTopics")


def test_a_produce_without_a_reply_that_only_a_refuses_is_a_difference(
    first: Wire, proxy: Compared, pair: tuple[Broker, Broker]
) -> None:
    create(first, "only-a")
    with pair[0].lab.fault("error", error="CORRUPT_MESSAGE", api="Produce", topic="only-a", times=1):
        send_silently(first, "only-a", b"1")
        with pytest.raises(Closed):
            first.read_frame()
    proxy.await_difference("Produce", "connection")
    proxy.end()
    (shown,) = (one for one in proxy.events if one["event"] == "difference")
    assert (shown["a"], shown["b"]) == ("<closed the connection>", "<took the records>")


def test_a_reader_that_is_between_the_two_brokers_asks_both_again(
    first: Wire, second: Wire, proxy: Compared, pair: tuple[Broker, Broker]
) -> None:
    """A lists topics before it makes one, B afterwards."""
    with (
        pair[0].lab.hold_requests(api="Metadata", at="reply") as replies,
        pair[1].lab.hold_requests(api="Metadata") as hold,
    ):
        second.say("Metadata", 9, m.MetadataRequest(topics=None))
        replies.held(at_least=1)
        hold.held(at_least=1)
        create(first, "between")
        until(lambda: "between" in [one["topic"] for one in pair[1].lab.get("topics")["topics"]], "B's topic")
    assert "between" not in [one.name for one in second.reply("Metadata", 9).topics]
    proxy.end()
    assert_same(proxy, "Metadata", "CreateTopics")
