"""Messages as JSON text: the same as `as_plain`, with what it adds and masks."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from ottla.broker.config.secrets import MASK, SENSITIVE, is_secret, masked
from ottla.protocol import codec, schema
from ottla.protocol import messages as m
from ottla.protocol.codec import as_plain
from ottla.protocol.json_text import Masks, json_writer, may_have_secrets
from ottla.protocol.structs import Struct

from ..support.ask import batch, produce_message
from ..support.generate import Generator

MASKS = Masks(SENSITIVE, is_secret, MASK)


def text(name: str, version: int, value: Struct) -> Any:
    return json.loads(json_writer(name, version, MASKS)(value))


def _as_written(plain: Any, found: Any) -> Any:
    """A plain message with the fields that the version has, and with what the text says of records."""
    if isinstance(found, dict) and isinstance(plain, str):
        return found
    if isinstance(plain, dict):
        return {key: _as_written(value, found[key]) for key, value in plain.items() if key in found}
    if isinstance(plain, list):
        return [_as_written(*pair) for pair in zip(plain, found, strict=True)]
    return plain


NAMES = ("MetadataResponse", "ConsumerGroupHeartbeatRequest", "CreateTopicsRequest", "DescribeClientQuotasResponse",
         "AlterUserScramCredentialsRequest", "FetchResponse", "DescribeTopicPartitionsResponse")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_text_is_that_of_the_plain_form(name: str) -> None:
    loaded = schema.load(name)
    version = loaded.valid.high
    for seed in range(20):
        value = Generator(loaded, version, random.Random(seed)).message()
        found = text(name, version, value)
        assert found == _as_written(masked(as_plain(value)), found)


def test_arrays_that_are_encoded_already_are_written_too() -> None:
    array: Any = codec.encoded("MetadataResponse", 12, "topics")
    array.append(m.MetadataResponse.MetadataResponseTopic(name="orders"))
    (found,) = text("MetadataResponse", 12, m.MetadataResponse(topics=array))["topics"]
    assert found["name"] == "orders"


def test_records_say_their_size_and_what_their_first_batch_is() -> None:
    data = batch(b"x", b"y", producer_id=7, producer_epoch=1, base_sequence=3)
    message = produce_message("orders", data)
    records = text("ProduceRequest", 9, message)["topic_data"][0]["partition_data"][0]["records"]
    assert records == {
        "bytes": len(data), "base_offset": 0, "last_offset_delta": 1, "count": 2, "attributes": 0, "producer_id": 7,
        "producer_epoch": 1, "base_sequence": 3, "crc": int.from_bytes(data[17:21]),
    }  # fmt: skip
    for short in (b"", data[:60], bytes(100)):
        message = produce_message("orders", short)
        records = text("ProduceRequest", 9, message)["topic_data"][0]["partition_data"][0]["records"]
        assert records == {"bytes": len(short)}


def test_what_may_have_secrets_is_known_by_its_schema() -> None:
    found = {name for name in ("Metadata", "Produce", "SaslAuthenticate", "AlterConfigs", "CreateDelegationToken",
                               "DescribeConfigs", "AlterUserScramCredentials")
             if any(may_have_secrets(f"{name}{kind}", MASKS) for kind in ("Request", "Response"))}  # fmt: skip
    assert found == {"SaslAuthenticate", "AlterConfigs", "CreateDelegationToken", "DescribeConfigs",
                     "AlterUserScramCredentials"}  # fmt: skip
