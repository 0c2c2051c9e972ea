"""What the APIs that change a delegation token share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...coordinator.metadata.controller import Controller
from ...coordinator.security.tokens import TokenPolicy
from ...coordinator.shard import Result
from ...protocol import messages
from ...protocol.errors import Errors
from ..error_places import CONTROLLER, Place, codes
from ..net.context import Context
from ..security.tokens import may_ask_for_tokens

Q = TypeVar("Q")
R = TypeVar("R", messages.RenewDelegationTokenResponse, messages.ExpireDelegationTokenResponse)
Decide = Callable[[Controller, TokenPolicy | None, Q, str, int], Result[R]]
"""The controller's handler: gets the request, the principal and the wall time."""
OF_A_CHANGE = (
    Place(
        "the whole",
        CONTROLLER
        + codes(
            "UNSUPPORTED_VERSION DELEGATION_TOKEN_AUTH_DISABLED DELEGATION_TOKEN_NOT_FOUND "
            "DELEGATION_TOKEN_OWNER_MISMATCH DELEGATION_TOKEN_REQUEST_NOT_ALLOWED "
            "DELEGATION_TOKEN_AUTHORIZATION_FAILED DELEGATION_TOKEN_EXPIRED INVALID_TIMESTAMP"
        ),
    ),
)


async def change(context: Context, request: Q, decide: Decide[Q, R], response: type[R]) -> R:
    """Has the controller change a token, unless the connection may not ask for tokens."""
    if not may_ask_for_tokens(context.peer):
        return response(error_code=Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1)
    broker, principal = context.broker, context.principal
    metadata = broker.metadata
    policy = None if broker.tokens is None else broker.tokens.policy
    return await metadata.forward(
        lambda: decide(metadata.controller, policy, request, principal, broker.schedule.now_ms())
    )
