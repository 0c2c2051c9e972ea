"""In which format a broker that emulates an earlier release stores messages (`message.format.version`)."""

from __future__ import annotations

import pytest
from ottla.broker.config.config import ConfigError
from ottla.protocol import legacy, records
from ottla.protocol import messages as m
from ottla.protocol.compression import GZIP, NONE
from ottla.protocol.errors import Errors

from ..support.ask import produce_message
from ..support.emulated import fetched, messages_in, put, sent, with_topic, world_of
from ..support.topic_world import produced
from ..support.world import World


def stored(world: World, name: str = "t") -> list[tuple[int, int, int]]:
    """Version, offset and codec of what the log of a partition has."""
    found = []
    for segment, batch in world.broker.partitions.get(name, 0).open_log().batches_from(0):
        attributes = segment.read_batch(batch)[17] if batch.header is None else batch.header.attributes
        found.append((batch.magic, batch.last_offset, attributes & records.CODEC_MASK))
    return found


def set_format(world: World, version: str, name: str = "t") -> None:
    r = m.IncrementalAlterConfigsRequest
    config = r.AlterableConfig(name="message.format.version", config_operation=0, value=version)
    resource = r.AlterConfigsResource(resource_type=2, resource_name=name, configs=[config])
    assert world.ask("IncrementalAlterConfigs", 0, r(resources=[resource])).responses[0].error_code == 0


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_messages_are_stored_in_the_format_of_the_release(codec: int) -> None:
    for release, magic in (("0.8.2", 0), ("0.9", 0), ("0.10.0", 1), ("0.10.2", 1), ("0.11", 2), ("3.9", 2)):
        world = with_topic(release)
        put(world, sent(b"a", b"b", magic=0, codec=codec))
        assert {one[0] for one in stored(world)} == {magic}, release
        assert stored(world)[-1][1:] == (1, codec)
        assert messages_in(fetched(world)) == [(0, b"a"), (1, b"b")]


def test_a_topic_has_the_format_that_its_configuration_says() -> None:
    world = with_topic("2.8")
    put(world, sent(b"a"))
    for version in ("0.9.0", "0.10.2-IV0", "2.8"):
        set_format(world, version)
        put(world, sent(b"b", b"c", codec=GZIP))
        new = records.encode([records.Record(b"k", b"new", 1_700_000_000_000, 0)])
        assert put(world, bytes(new), version=3, acks=-1).error_code == 0
    assert stored(world) == [
        *((2, 0, NONE), (0, 2, GZIP), (0, 3, NONE), (1, 5, GZIP), (1, 6, NONE), (2, 8, GZIP), (2, 9, NONE))
    ]
    values = [b"a", b"b", b"c", b"new", b"b", b"c", b"new", b"b", b"c", b"new"]
    for fetch_version in (0, 2):
        found: list[tuple[int, bytes | None]] = []
        while len(found) < len(values):
            found += messages_in(fetched(world, len(found), fetch_version))
        assert found == list(enumerate(values)), "each format is converted to that of the client"


def test_a_batch_of_an_idempotent_producer_has_no_older_form() -> None:
    world = with_topic("1.1", log_message_format_version="0.10.2")
    template = records.Template(producer_id=1, producer_epoch=0, base_sequence=0)
    batch = bytes(records.encode([records.Record(b"k", b"v", 1_700_000_000_000, 0)], template))
    assert put(world, batch, version=3).error_code == Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT
    assert stored(world) == []


def test_formats_are_checked() -> None:
    for release, settings, words in (
        ("1.1", {"log_message_format_version": "9.9"}, "Version `9.9` is not a valid version"),
        ("0.10.2", {"log_message_format_version": "0.11.0"}, "Version `0.11.0` is not a valid version"),
        ("1.1", {"inter_broker_protocol_version": "0.10.2"}, "can only be used when inter.broker.protocol.version"),
    ):
        with pytest.raises(ConfigError, match=words):
            world_of(release, **settings)
    world = with_topic("3.9", log_message_format_version="0.10.2")  # which does not count since 3.0
    put(world, sent(b"a"))
    assert stored(world)[0][0] == 2


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_the_time_of_an_append_takes_the_place_of_the_producers(codec: int) -> None:
    world = with_topic("0.10.2", log_message_timestamp_type="LogAppendTime")
    answer = put(world, sent(b"a", b"b", magic=1, codec=codec), version=2)
    now = answer.log_append_time_ms
    assert (answer.error_code, world.broker.schedule.now_ms() - now in (0, 1)) == (0, True)
    found = legacy.decode(bytes(fetched(world, 0, 2).records))
    assert [(one.offset, one.timestamp, one.append_time) for one in found] == [(0, now, True), (1, now, True)]


def test_what_is_stored_in_a_later_format_is_not_converted_where_that_is_forbidden() -> None:
    world = with_topic("2.8", log_message_downconversion_enable="false")
    assert bytes(fetched(world).records) == b"", "there is nothing to convert"
    put(world, sent(b"a"))
    for version in (0, 3):
        answer = fetched(world, 0, version)
        assert (answer.error_code, answer.high_watermark, bytes(answer.records)) == (35, -1, b"")
    set_format(world, "0.9.0")
    put(world, sent(b"b"))
    assert messages_in(fetched(world, 1)) == [(1, b"b")]


def test_sets_that_take_long_are_appended_one_after_the_other() -> None:
    world = with_topic("0.9")
    large = sent(*[b"x" * 50] * 4000, codec=GZIP)
    answers = [world.send("Produce", 1, produce_message("t", large, acks=1)) for _ in range(3)]
    answers.append(world.send("Produce", 1, produce_message("t", sent(b"small"), acks=1)))
    world.pass_ms(1000)
    assert [produced(one.reply).base_offset for one in answers] == [0, 4000, 8000, 12000]
    assert [one[1] for one in stored(world)] == [3999, 7999, 11999, 12000]
