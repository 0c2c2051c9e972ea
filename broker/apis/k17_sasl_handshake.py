"""SaslHandshake, versions 0 and 1: ILLEGAL_SASL_STATE, as from a Kafka whose listener has no SASL (KIP-43)."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import Errors
from ..context import Context


def handle(context: Context, request: Any) -> Any:
    return messages.SaslHandshakeResponse(error_code=Errors.ILLEGAL_SASL_STATE)
