"""ExpireDelegationToken, versions 1 and 2: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as on every connection to Kafka that nobody logged in to (KIP-48).

2 flexible.
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import Errors
from ..context import Context


def handle(context: Context, request: Any) -> Any:
    return messages.ExpireDelegationTokenResponse(error_code=Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1)
