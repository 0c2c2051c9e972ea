"""SaslAuthenticate, versions 0 to 2: ILLEGAL_SASL_STATE, as from a Kafka whose listener has no SASL (KIP-152). 2 flexible."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import Errors
from ..context import Context

AUTHENTICATED = "SaslAuthenticate request received after successful authentication"


def handle(context: Context, request: Any) -> Any:
    return messages.SaslAuthenticateResponse(error_code=Errors.ILLEGAL_SASL_STATE, error_message=AUTHENTICATED)
