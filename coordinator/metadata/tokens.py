"""Delegation tokens: the controller's handlers (DelegationTokenControlManager, KIP-48, KIP-373).

`policy` is None where tokens are disabled. Principals are written as in ACLs: `User:alice`.
"""

from __future__ import annotations

from copy import copy

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.features import TOKENS_SINCE
from ..group.ids import kafka_uuid
from ..security.tokens import TokenPolicy, TokenRoom, has_expired, may_renew
from ..shard import Decision, Result
from .controller import Controller
from .state import MetadataState

USER_TYPE = "User"
TIME_MAX = (1 << 63) - 1
SWEPT_AT_ONCE = 2000  # expired tokens: more would take too long to be taken out of the tables
NAMES_BYTES_MAX = 4 << 10  # of the principals that a token names


def owner_of(request: messages.CreateDelegationTokenRequest, requester: str) -> str:
    """Returns whom a new token is for: the requester, unless the request names another principal."""
    name = request.owner_principal_name
    return f"{request.owner_principal_type}:{name}" if name else requester


def named(principal: str) -> tuple[str, str]:
    """Returns the type and the name of a principal."""
    kind, _, name = principal.partition(":")
    return kind, name


def created(
    request: messages.CreateDelegationTokenRequest, requester: str, code: int = Errors.NONE
) -> messages.CreateDelegationTokenResponse:
    """Returns a reply that names the principals, the owner as the request does: there may be a colon in the type."""
    owner_type, owner_name = requester_type, requester_name = named(requester)
    if request.owner_principal_name:
        owner_type, owner_name = request.owner_principal_type or "", request.owner_principal_name
    return messages.CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
    )


def create(
    controller: Controller,
    policy: TokenPolicy | None,
    request: messages.CreateDelegationTokenRequest,
    requester: str,
    now_ms: int,
) -> Result[messages.CreateDelegationTokenResponse]:
    """Creates a token; the reply has its id and its HMAC, or the error. Raises ApiError(POLICY_VIOLATION): there are
    too many tokens, or the token has too many renewers.
    """
    owner = owner_of(request, requester)
    reply = created(request, requester)
    refused = _refused(controller.state, policy)
    if policy is None or refused:
        reply.error_code = refused
        return Result([], reply)
    if any(one.principal_type != USER_TYPE for one in request.renewers):
        reply.error_code = Errors.INVALID_PRINCIPAL_TYPE
        return Result([], reply)
    renewers = [f"{one.principal_type}:{one.principal_name}" for one in request.renewers]
    _check_room(controller.state, policy.room, owner, [owner, requester, *renewers])
    latest = _after(now_ms, _at_most(policy.lifetime_ms_max, request.max_lifetime_ms))
    token = messages.DelegationTokenRecord(
        token_id=kafka_uuid(controller.new_id()),
        owner=owner,
        requester=requester,
        renewers=renewers,
        issue_timestamp=now_ms,
        max_timestamp=latest,
        expiration_timestamp=min(latest, _after(now_ms, policy.expiry_ms)),
    )
    reply.issue_timestamp_ms = now_ms
    reply.expiry_timestamp_ms = token.expiration_timestamp
    reply.max_timestamp_ms = token.max_timestamp
    reply.token_id = token.token_id
    reply.hmac = policy.hmacs.make(token.token_id)
    return Result([token], reply)


def renew(
    controller: Controller,
    policy: TokenPolicy | None,
    request: messages.RenewDelegationTokenRequest,
    principal: str,
    now_ms: int,
) -> Result[messages.RenewDelegationTokenResponse]:
    """Lets a token live longer, but not beyond its last moment; the reply has until when, or the error."""
    r = messages.RenewDelegationTokenResponse
    token = _found(controller.state, policy, request.hmac)
    if isinstance(token, int):
        return Result([], r(error_code=token))
    assert policy is not None  # without it no token is found
    if has_expired(token, now_ms):
        return Result([], r(error_code=Errors.DELEGATION_TOKEN_EXPIRED))
    if not may_renew(token, principal):
        return Result([], r(error_code=Errors.DELEGATION_TOKEN_OWNER_MISMATCH))
    expiry_ms = _at_most(policy.expiry_ms, request.renew_period_ms)
    changed = _until(token, _after(now_ms, expiry_ms))
    return Result([changed], r(expiry_timestamp_ms=changed.expiration_timestamp))


def expire(
    controller: Controller,
    policy: TokenPolicy | None,
    request: messages.ExpireDelegationTokenRequest,
    principal: str,
    now_ms: int,
) -> Result[messages.ExpireDelegationTokenResponse]:
    """Changes when a token expires, or removes it where the period is negative; the reply has the moment, or the
    error.
    """
    r = messages.ExpireDelegationTokenResponse
    token = _found(controller.state, policy, request.hmac)
    if isinstance(token, int):
        return Result([], r(error_code=token))
    if not may_renew(token, principal):
        return Result([], r(error_code=Errors.DELEGATION_TOKEN_OWNER_MISMATCH))
    if request.expiry_time_period_ms < 0:
        return Result([_removal(token)], r(expiry_timestamp_ms=now_ms))
    if has_expired(token, now_ms):
        return Result([], r(error_code=Errors.DELEGATION_TOKEN_EXPIRED))
    changed = _until(token, _after(now_ms, request.expiry_time_period_ms))
    return Result([changed], r(expiry_timestamp_ms=changed.expiration_timestamp))


def sweep(controller: Controller, now_ms: int) -> Decision[int]:
    """Removes tokens that have expired, at most `SWEPT_AT_ONCE`; the reply says how many."""
    gone: list[messages.RemoveDelegationTokenRecord] = []
    for token in list(controller.state.tokens.values()):  # what failed to be written may be taken back meanwhile
        yield
        if has_expired(token, now_ms):
            gone.append(_removal(token))
        if len(gone) == SWEPT_AT_ONCE:
            break
    return Result(gone, len(gone))


def put(controller: Controller, room: TokenRoom, token: messages.DelegationTokenRecord) -> Result[None]:
    """Takes over a token that was made elsewhere. Raises ApiError(POLICY_VIOLATION) if there is no room for it."""
    if token.token_id not in controller.state.tokens:
        _check_room(controller.state, room, token.owner, [token.owner, token.requester, *token.renewers])
    return Result([token], None)


def remove(controller: Controller, token_id: str) -> Result[None]:
    """Removes a token that was removed elsewhere."""
    token = controller.state.tokens.get(token_id)
    return Result([] if token is None else [_removal(token)], None)


def _check_room(state: MetadataState, room: TokenRoom, owner: str, names: list[str]) -> None:
    """Raises ApiError(POLICY_VIOLATION) if there is no room for another token, which names these principals."""
    if (
        len(names) - 2 > room.renewers_max
        or sum(len(one.encode("utf-8", "surrogatepass")) for one in names) > NAMES_BYTES_MAX
    ):
        raise ApiError(Errors.POLICY_VIOLATION, limit="delegation-token-renewers")
    if state.token_counts.get(owner, 0) >= room.per_owner_max:
        raise ApiError(Errors.POLICY_VIOLATION, limit="delegation-tokens-per-owner")
    if len(state.tokens) >= room.tokens_max:
        raise ApiError(Errors.POLICY_VIOLATION, limit="delegation-tokens")


def _refused(state: MetadataState, policy: TokenPolicy | None) -> int:
    """Returns the error that every request gets; NONE if tokens are enabled."""
    if policy is None:
        return Errors.DELEGATION_TOKEN_AUTH_DISABLED
    if state.metadata_version < TOKENS_SINCE:
        return Errors.UNSUPPORTED_VERSION
    return Errors.NONE


def _found(state: MetadataState, policy: TokenPolicy | None, given: bytes) -> messages.DelegationTokenRecord | int:
    """Returns the token with an HMAC, or the error."""
    refused = _refused(state, policy)
    if policy is None or refused:
        return refused
    token_id = policy.hmacs.id_of(given)
    token = None if token_id is None else state.tokens.get(token_id)
    return Errors.DELEGATION_TOKEN_NOT_FOUND if token is None else token


def _at_most(bound_ms: int, asked_ms: int) -> int:
    return min(bound_ms, asked_ms) if asked_ms > 0 else bound_ms


def _after(now_ms: int, ms: int) -> int:
    return min(now_ms + ms, TIME_MAX)


def _until(token: messages.DelegationTokenRecord, expires_at_ms: int) -> messages.DelegationTokenRecord:
    changed = copy(token)
    changed.expiration_timestamp = min(token.max_timestamp, expires_at_ms)
    return changed


def _removal(token: messages.DelegationTokenRecord) -> messages.RemoveDelegationTokenRecord:
    return messages.RemoveDelegationTokenRecord(token_id=token.token_id)
