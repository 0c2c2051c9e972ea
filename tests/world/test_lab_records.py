"""Records in the lab: found by offset, time and key, decoded, written; and what a topic is in sum, and its deletion."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.lab.records import routes as record_routes
from ottla.broker.lab.records.views import text_of
from ottla.protocol import compression, records
from ottla.protocol.records import Record, Template

from ..support.ask import produce_message
from ..support.lab import LabWorld
from ..support.topic_world import create, set_policy
from ..support.transaction_world import begun
from ..support.transaction_world import world as transaction_world
from ..support.world import World


@pytest.fixture
def site() -> LabWorld:
    world = World()
    create(world, "orders", 2)
    return LabWorld(world)


def put(site: LabWorld, *rows: Record, codec: int = compression.NONE) -> None:
    """One batch."""
    data = bytes(records.encode(list(rows), Template(codec=codec)))
    reply = site.world.ask("Produce", 9, produce_message("orders", data))
    assert reply.responses[0].partition_responses[0].error_code == 0


def listed(site: LabWorld, query: str = "", place: str = "orders/0") -> Any:
    status, found = site.reply(f"GET /v1/records/{place}", query=query)
    assert status == 200, found
    return found


def offsets(found: Any) -> list[int]:
    return [one["offset"] for one in found["records"]]


def test_a_record_is_shown_with_its_headers_and_its_batch(site: LabWorld) -> None:
    put(site, Record(b"a", b"one", 1000), Record(b"b", None, 2000, headers=[("by", b"shop"), ("no", None)]))
    first, second = listed(site)["records"]
    assert (first["offset"], first["timestamp"], first["key"], first["value"]) == (0, 1000, "a", "one")
    assert (second["value"], second["value_bytes"], second["batch_offset"]) == (None, None, 0)
    assert second["headers"] == [{"name": "by", "value": "shop"}, {"name": "no", "value": None}]


def test_records_are_found_by_offset_from_either_end_by_time_and_by_key(site: LabWorld) -> None:
    for number in range(6):
        put(site, Record(b"even" if number % 2 == 0 else b"odd", b"%d" % number, 1000 * number))
    assert offsets(listed(site, "offset=4")) == [4, 5]
    assert offsets(listed(site, "offset=-2")) == [4, 5]
    assert offsets(listed(site, "timestamp=2500")) == [3, 4, 5]
    assert offsets(listed(site, "timestamp=9000")) == []
    assert offsets(listed(site, "key=odd")) == [1, 3, 5]
    assert offsets(listed(site, "key=0x6f6464&offset=2")) == [3, 5]
    assert offsets(listed(site, "contains=4")) == [4]
    assert offsets(listed(site, "offset=99")) == []


@pytest.mark.parametrize("codec", [compression.NONE, compression.GZIP, compression.ZSTD])
def test_a_page_ends_within_a_batch_and_the_next_one_begins_there(site: LabWorld, codec: int) -> None:
    put(site, *(Record(None, b"%d" % number, 1) for number in range(5)), codec=codec)
    page = listed(site, "limit=2")
    assert (offsets(page), page["next"], page["is_end"]) == ([0, 1], 2, False)
    page = listed(site, "offset=2&limit=3")
    assert (offsets(page), page["next"], page["is_end"]) == ([2, 3, 4], 5, True)


def test_records_above_the_high_watermark_are_shown_beside_it(site: LabWorld) -> None:
    set_policy(site.world, "orders", "held")
    site.ask("POST /v1/records/orders", value="unseen")
    found = listed(site)
    assert (offsets(found), found["high_watermark"], found["log_end_offset"]) == ([0], 0, 1)


def test_a_search_ends_after_some_work_and_says_where_it_goes_on(
    site: LabWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        put(site, Record(b"last" if number == 39 else b"other", b"x" * 1000, 1))
    monkeypatch.setattr(record_routes, "SEARCHED_BYTES_MAX", 10_000)
    at, pages = 0, 0
    while not (page := listed(site, f"key=last&offset={at}"))["is_end"]:
        assert page["next"] > at
        at, pages = page["next"], pages + 1
    assert offsets(page) == [39]
    assert pages >= 2


def test_a_large_batch_is_opened_over_several_turns(site: LabWorld) -> None:
    put(site, *(Record(None, b"%d" % number * 200, 1) for number in range(2000)), codec=compression.GZIP)
    found = site.send("GET /v1/records/orders/0", query="offset=1999")
    assert not getattr(found, "done", True)
    assert offsets(listed(site, "offset=1999")) == [1999]


def test_a_reply_is_bounded_in_bytes(site: LabWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    put(site, *(Record(None, b"x" * 100, 1) for _ in range(10)))
    monkeypatch.setattr(record_routes, "REPLY_BYTES_MAX", 250)
    page = listed(site)
    assert (offsets(page), page["next"], page["is_end"]) == ([0, 1, 2], 3, False)


def test_long_values_are_cut_and_their_length_is_said(site: LabWorld) -> None:
    put(site, Record(None, b"x" * 10_000, 1))
    (short,) = listed(site, "shown=16")["records"]
    assert (short["value"], short["value_bytes"]) == ("x" * 16, 10_000)


@pytest.mark.parametrize(
    ("data", "shown", "text"),
    [
        (None, 10, None),
        (b"", 10, ""),
        (b"two\nlines\t", 20, "two\nlines\t"),
        (b"\x00\xff", 10, "0x00ff"),
        (b"\x1b[31m", 10, "0x1b5b33316d"),
        ("é€".encode(), 4, "é"),  # a character that is cut is left out
        ("é€".encode(), 5, "é€"),
        (b"\xff" + b"x" * 20, 4, "0xff787878"),
    ],
)
def test_bytes_are_shown_as_text_or_in_hexadecimal_digits(data: bytes | None, shown: int, text: str | None) -> None:
    assert text_of(data, shown) == text


def test_a_damaged_batch_is_shown_with_what_is_wrong(site: LabWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    put(site, Record(None, b"good", 1))
    log = site.world.broker.partitions.by_name["orders", 0].open_log()
    segment, batch = next(log.batches_from(0))
    data = bytearray(segment.read_batch(batch))
    data[-1] ^= 1
    monkeypatch.setattr(segment, "read_batch", lambda _: bytes(data))
    (bad,) = listed(site)["records"]
    assert "the CRC of the batch is wrong" in bad["problem"]


def test_markers_and_internal_topics_are_decoded() -> None:
    world = transaction_world()
    writer = begun(world)
    site = LabWorld(world)
    found = listed(site, place="__cluster_metadata/0")["records"]
    assert "TopicRecord" in {one["type"] for one in found}
    names = [one["topic"] for one in site.ask("GET /v1/topics")["topics"]]
    assert "__transaction_state" in names
    kinds = {
        one["type"]: one["decoded"]
        for partition in site.ask("GET /v1/topics/__transaction_state")["partitions"]
        for one in listed(site, place=f"__transaction_state/{partition['partition']}")["records"]
    }
    assert kinds["TransactionLog"]["key"] == {"transactional_id": "x"}
    del writer


def test_a_written_record_is_read_by_clients(site: LabWorld) -> None:
    done = site.ask("POST /v1/records/orders", partition=1, key="a", value="one", headers={"by": "hand"}, timestamp=5)
    assert done == {"topic": "orders", "partition": 1, "offset": 0, "high_watermark": 1}
    done = site.ask("POST /v1/records/orders", partition=1, key="00ff", encoding="hex")
    assert done["offset"] == 1
    first, second = listed(site, place="orders/1")["records"]
    assert (first["key"], first["value"], first["timestamp"], first["headers"]) == (
        *("a", "one", 5),
        [{"name": "by", "value": "hand"}],
    )
    assert (second["key"], second["value"]) == ("0x00ff", None)


@pytest.mark.parametrize(
    ("at", "body", "status", "words"),
    [
        ("POST /v1/records/absent", {"value": "x"}, 404, "partition absent-0 does not exist"),
        ("POST /v1/records/orders", {"value": "x", "partition": 2}, 404, "partition orders-2 does not exist"),
        ("POST /v1/records/orders", {"value": "xyz", "encoding": "hex"}, 400, "value: is not written as hex"),
        ("POST /v1/records/orders", {"key": "é", "encoding": "base64"}, 400, "key: is not written as base64"),
        ("POST /v1/records/__cluster_metadata", {"value": "x"}, 409, "__cluster_metadata is an internal topic"),
        ("POST /v1/records/compacted", {"value": "x"}, 409, "cannot accept message without key"),
        ("POST /v1/records/small", {"value": "x" * 1000}, 409, "larger than the max message size"),
        ("GET /v1/records/orders/0", None, 400, "timestamp: cannot be given beside offset"),
    ],
)
def test_what_is_refused_says_why(site: LabWorld, at: str, body: Any, status: int, words: str) -> None:
    create(site.world, "compacted", 1, cleanup_policy="compact")
    create(site.world, "small", 1, max_message_bytes="100")
    query = "offset=1&timestamp=1" if body is None else ""
    found, text = site.refused(at, body, query)
    assert found == status
    assert words in text


def test_a_topic_is_deleted(site: LabWorld) -> None:
    assert site.ask("DELETE /v1/topics/orders") == {"deleted": "orders"}
    assert site.refused("GET /v1/topics/orders")[0] == 404
    assert site.refused("DELETE /v1/topics/orders")[0] == 404


def test_a_topic_is_not_deleted_where_the_configuration_forbids_it() -> None:
    world = World(None, 0, delete_topic_enable="false")
    create(world, "orders")
    site = LabWorld(world)
    assert site.refused("DELETE /v1/topics/orders") == (409, "Topic deletion is disabled.")
    assert site.ask("GET /v1/topics/orders")["topic"] == "orders"


def test_topics_are_listed_with_the_sums_over_their_partitions(site: LabWorld) -> None:
    create(site.world, "other")
    site.ask("POST /v1/records/orders", value="seen")
    site.ask("POST /v1/hold", topic="orders", partition=1)
    site.ask("POST /v1/records/orders", value="unseen", partition=1)
    found = site.ask("GET /v1/topic-sums")
    assert (found["total"], found["next"]) == (2, None)
    orders, other = found["topics"]
    assert (orders["partitions"], orders["records"], orders["hidden"], orders["policy"]) == (2, 2, 1, None)
    assert (other["topic"], other["records"], other["policy"]) == ("other", 0, "immediate")
    status, page = site.reply("GET /v1/topic-sums", query="limit=1&name=o*")
    assert (status, page["total"], page["next"]) == (200, 2, "orders")
