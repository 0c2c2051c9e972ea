"""CreateDelegationToken, versions 1 to 3: makes a token with which clients log in as its owner (KIP-48).

**Behaviour**
- Only clients that have authenticated may ask, and not by a token: others get DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
- Without `delegation.token.secret.key` it returns DELEGATION_TOKEN_AUTH_DISABLED.
- While no controller is reached it returns REQUEST_TIMED_OUT after a minute.
- Where there are too many tokens, or the token names too many renewers, it returns POLICY_VIOLATION; Kafka has no such
  limits.

**Versions**
- 2 flexible
- 3 an owner other than the requester (KIP-373)
"""

from __future__ import annotations

from ...coordinator.metadata import tokens
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import CONTROLLER, Place, codes
from ..net.context import Context
from ..peer import ANONYMOUS
from ..security.authorization import Check, Refusal
from ..security.tokens import may_ask_for_tokens

OWNERS_SINCE = 3
CREATE_TOKENS = Check(Operation.CREATE_TOKENS, ResourceType.USER, "owner_principal_name", Refusal.IN_HANDLER)
AUTHORIZATION = (CREATE_TOKENS,)
_TYPE, _NAME = tokens.named(ANONYMOUS)
NOBODY = (
    ("principal_type", _TYPE),
    ("principal_name", _NAME),
    ("token_requester_principal_type", _TYPE),
    ("token_requester_principal_name", _NAME),
    ("issue_timestamp_ms", -1),
    ("expiry_timestamp_ms", -1),
    ("max_timestamp_ms", -1),
)
ERRORS = (
    Place(
        "the whole",
        CONTROLLER
        + codes(
            "UNSUPPORTED_VERSION DELEGATION_TOKEN_AUTH_DISABLED DELEGATION_TOKEN_REQUEST_NOT_ALLOWED "
            "DELEGATION_TOKEN_AUTHORIZATION_FAILED INVALID_PRINCIPAL_TYPE POLICY_VIOLATION"
        ),
        others=NOBODY,
    ),
)


async def handle(
    context: Context, request: messages.CreateDelegationTokenRequest
) -> messages.CreateDelegationTokenResponse:
    requester, broker = context.principal, context.broker
    if request.owner_principal_name and request.owner_principal_type is None:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)  # a name without a type is none in Java
    owner = tokens.owner_of(request, requester)
    refused = _refused(context, request, owner)
    if refused:
        return _answer(context, _error(request, requester, refused))
    metadata = broker.metadata
    policy = None if broker.tokens is None else broker.tokens.policy
    try:
        made = await metadata.forward(
            lambda: tokens.create(metadata.controller, policy, request, requester, broker.schedule.now_ms())
        )
    except ApiError as error:
        if error.code == Errors.REQUEST_TIMED_OUT:  # the answer of the node, which names no principal
            raise
        broker.limits.note(error, requester)
        made = _error(request, requester, error.code)
    return _answer(context, made)


def _refused(context: Context, request: messages.CreateDelegationTokenRequest, owner: str) -> int:
    """Returns the error of a request that the controller does not get; NONE if it gets it."""
    if not may_ask_for_tokens(context.peer):
        return Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if owner != context.principal and not CREATE_TOKENS.allows(context, owner):
        return CREATE_TOKENS.code
    if any(one.principal_type != tokens.USER_TYPE for one in request.renewers):
        return Errors.INVALID_PRINCIPAL_TYPE
    return Errors.NONE


def _error(
    request: messages.CreateDelegationTokenRequest, requester: str, code: int
) -> messages.CreateDelegationTokenResponse:
    reply = tokens.created(request, requester, code)
    reply.issue_timestamp_ms = reply.expiry_timestamp_ms = reply.max_timestamp_ms = -1
    return reply


def _answer(context: Context, reply: messages.CreateDelegationTokenResponse) -> messages.CreateDelegationTokenResponse:
    if context.version < OWNERS_SINCE:
        reply.token_requester_principal_type = reply.token_requester_principal_name = ""
    return reply
