"""Request headers, whose client id is read without the codec."""

from __future__ import annotations

import pytest
from ottla.protocol import codec, headers, messages
from ottla.protocol.errors import MalformedMessage


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("client_id", ["wire", "", None, "ü€", "x" * 300, "x" * 32_767])
def test_the_client_id_of_a_header_is_that_of_its_schema(version: int, client_id: str | None) -> None:
    header = messages.RequestHeader(request_api_key=3, request_api_version=12, correlation_id=7, client_id=client_id)
    data = bytes(codec.build("RequestHeader", version, header)) + b"message"
    found = headers.client_id_of(version, memoryview(data))
    parsed, start = headers.parse_request_header(version, data)
    assert found == (parsed.client_id, start) == (client_id, len(data) - len("message"))


def test_a_header_with_tagged_fields_is_skipped_whole() -> None:
    header = messages.RequestHeader(client_id="wire", unknown_tags=[(5, b"abc")])
    data = bytes(codec.build("RequestHeader", 2, header))
    assert headers.client_id_of(2, data) == ("wire", len(data))


@pytest.mark.parametrize("version", [1, 2])
def test_a_header_that_ends_too_early_is_malformed(version: int) -> None:
    header = messages.RequestHeader(client_id="wire")
    data = bytes(codec.build("RequestHeader", version, header))
    for end in range(8, len(data)):
        with pytest.raises(MalformedMessage):
            headers.client_id_of(version, data[:end])
