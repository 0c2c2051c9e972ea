"""Messages from the JSON of a trace: the compiled form gives what the slow one gives, and refuses what no broker
writes.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol import schema
from ottla.verdict.events import BatchHead
from ottla.verdict.from_trace import event_of, message_of
from ottla.verdict.json_reader import Changed, json_reader

from ..support.ask import batch, produce_message
from ..support.generate import Generator
from ..support.seeds import seeds
from ..support.written import NAMES, written

HEARTBEAT: dict[str, Any] = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(10, 1))
def test_each_message_of_each_version_is_that_of_the_slow_form(seed: int) -> None:
    for name in NAMES:
        loaded = schema.load(name)
        for version in range(loaded.valid.low, loaded.valid.high + 1):
            value = Generator(loaded, version, random.Random(seed), unknown_tags=False).message()
            found = written(name, version, value)
            slow = message_of(name, found)
            assert (fast := json_reader(name, version)(found)) == slow, f"{name} v{version}, seed {seed}"
            assert repr(fast) == repr(slow)


def test_records_are_the_head_of_their_first_batch() -> None:
    data = batch(b"x", b"y", producer_id=7, producer_epoch=1, base_sequence=3)
    crc = int.from_bytes(data[17:21])
    for records, head in ((data, BatchHead(len(data), 0, 2, 7, 1, 3, crc)), (b"short", BatchHead(5))):
        found: Any = json_reader("ProduceRequest", 9)(written("ProduceRequest", 9, produce_message("t", records)))
        assert found.topic_data[0].partition_data[0].records == head


def test_a_field_of_another_type_a_missing_and_an_unknown_one_are_refused() -> None:
    read = json_reader("HeartbeatRequest", 4)
    assert read(HEARTBEAT).group_id == "g"  # type: ignore[attr-defined]
    for wrong in ({"generation_id": "1"}, {"generation_id": True}, {"group_id": None}, {"group_instance_id": 3}):
        with pytest.raises(Changed):
            read({**HEARTBEAT, **wrong})
    others: list[Any] = [{**HEARTBEAT, "more": 1}, {"group_id": "g"}, [], None]
    for other in others:
        with pytest.raises((Changed, TypeError, KeyError)):
            read(other)
    records = {"bytes": 5, "base_offset": 0, "last_offset_delta": 0, "count": "one", "attributes": 0}
    part = {"name": "t", "partition_data": [{"index": 0, "records": records}]}
    with pytest.raises(Changed):
        json_reader("ProduceRequest", 9)({"transactional_id": None, "acks": 1, "timeout_ms": 1, "topic_data": [part]})


def test_tags_that_the_schema_does_not_have_are_kept() -> None:
    beat = m.HeartbeatRequest(group_id="g", unknown_tags=[(9, b"\x01")])
    line = {"event": "request", "key": 12, "version": 4, "message": written("HeartbeatRequest", 4, beat)}
    found: Any = event_of(line, frozenset((12,)), frozenset((12,)))
    assert found.message == beat


def test_a_message_of_a_line_that_lacks_fields_is_read_as_far_as_it_goes() -> None:
    line = {"event": "request", "key": 12, "version": 4, "message": {"group_id": "g", "more": []}}
    found: Any = event_of(line, frozenset((12,)), frozenset((12,)))
    assert found.message == m.HeartbeatRequest(group_id="g")
