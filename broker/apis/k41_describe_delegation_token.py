"""DescribeDelegationToken, versions 1 to 3: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as on every connection to Kafka that nobody logged in to (KIP-48).

2 flexible; 3 requesters (KIP-373).
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import Errors
from ..context import Context


def handle(context: Context, request: Any) -> Any:
    return messages.DescribeDelegationTokenResponse(error_code=Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
