"""CreateDelegationToken, versions 1 to 3: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as on every connection to Kafka that nobody logged in to (KIP-48).

2 flexible; 3 an owner other than the requester (KIP-373).
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import Errors
from ..context import Context

USER, ANONYMOUS = "User", "ANONYMOUS"
OWNERS_SINCE = 3


def handle(context: Context, request: Any) -> Any:
    response = messages.CreateDelegationTokenResponse(
        error_code=Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=request.owner_principal_type or USER,
        principal_name=request.owner_principal_name or ANONYMOUS,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    if context.version >= OWNERS_SINCE:
        response.token_requester_principal_type, response.token_requester_principal_name = USER, ANONYMOUS
    return response
