"""DescribeDelegationToken, versions 1 to 3: lists delegation tokens, with their HMACs (KIP-48).

**Behaviour**
- A principal sees the tokens that it owns, has asked for or may renew, and those that ACLs let it see.
- `owners` is a filter: null for all tokens, and nothing is listed for an empty one.
- Expired tokens are listed until they are removed.

**Versions**
- 2 flexible
- 3 requesters (KIP-373)
"""

from __future__ import annotations

from ...coordinator.metadata.tokens import named
from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.security.tokens import TokenHmacs, concerns
from ...protocol import messages
from ...protocol.errors import Errors
from ..error_places import Place, codes
from ..net.answers import Answers
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..security.tokens import may_ask_for_tokens
from ..steps import Pace

REQUESTERS_SINCE = 3
DESCRIBE = Check(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, "tokens.token_id", Refusal.LEFT_OUT)
DESCRIBE_TOKENS = Check(Operation.DESCRIBE_TOKENS, ResourceType.USER, "tokens.principal_name", Refusal.LEFT_OUT)
AUTHORIZATION = (DESCRIBE, DESCRIBE_TOKENS)
ERRORS = (
    Place(
        "the whole",
        codes(
            "DELEGATION_TOKEN_AUTH_DISABLED DELEGATION_TOKEN_REQUEST_NOT_ALLOWED DELEGATION_TOKEN_AUTHORIZATION_FAILED"
        ),
    ),
)


async def handle(
    context: Context, request: messages.DescribeDelegationTokenRequest
) -> messages.DescribeDelegationTokenResponse:
    r = messages.DescribeDelegationTokenResponse
    tokens = context.broker.tokens
    if not may_ask_for_tokens(context.peer):
        return r(error_code=Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if tokens is None:
        return r(error_code=Errors.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = request.owners
    asked = None if owners is None else frozenset(f"{one.principal_type}:{one.principal_name}" for one in owners)
    own = frozenset((context.principal,))
    answers, pace = Answers(context), Pace(context.turn)
    made = answers.array("tokens")
    for token in list(context.broker.image.tokens.values()):
        if _is_shown(context, token, own, asked):
            await answers.add("tokens", _described(token, tokens.policy.hmacs, context.version))
        if pace.is_over():
            await pace.rest()
    return r(tokens=made)


def _is_shown(
    context: Context, token: messages.DelegationTokenRecord, own: frozenset[str], asked: frozenset[str] | None
) -> bool:
    if asked is not None and not concerns(token, asked):
        return False
    return (
        concerns(token, own) or DESCRIBE.allows(context, token.token_id) or DESCRIBE_TOKENS.allows(context, token.owner)
    )


def _described(
    token: messages.DelegationTokenRecord, hmacs: TokenHmacs, version: int
) -> messages.DescribeDelegationTokenResponse.DescribedDelegationToken:
    r = messages.DescribeDelegationTokenResponse
    owner_type, owner_name = named(token.owner)
    described = r.DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=hmacs.make(token.token_id),
    )
    for renewer in token.renewers:
        kind, name = named(renewer)
        described.renewers.append(r.DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name))
    if version >= REQUESTERS_SINCE:
        described.token_requester_principal_type, described.token_requester_principal_name = named(token.requester)
    return described
