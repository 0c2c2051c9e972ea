"""Errors in replies."""

from __future__ import annotations

import pytest
from ottla.protocol import messages
from ottla.protocol.errors import ApiError, Errors, default_message


@pytest.mark.parametrize(
    ("message", "with_default", "expected"),
    [
        ("why", True, "why"),
        ("why", False, "why"),
        ("", True, ""),
        (None, True, default_message(Errors.INVALID_REQUEST)),
        (None, False, None),
    ],
)
def test_an_error_fills_a_reply_with_its_message_or_kafkas(
    message: str | None, with_default: bool, expected: str | None
) -> None:
    reply = messages.UpdateFeaturesResponse(throttle_time_ms=7)
    assert ApiError(Errors.INVALID_REQUEST, message).put_into(reply, with_default) is reply
    assert reply == messages.UpdateFeaturesResponse(throttle_time_ms=7, error_code=42, error_message=expected)
