"""SCRAM credentials of users: the controller's handlers (ScramControlManager, KIP-554)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.features import SCRAM_SINCE
from ..hashing import java_order
from ..security.scram import (
    BY_NUMBER,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    ScramCredential,
    ScramMechanism,
    credential_of,
)
from ..shard import Decision, Result
from .controller import Controller
from .state import MetadataState

Described = tuple[str, list[messages.UserScramCredentialRecord], ApiError | None]
"""A user, its credentials, and its error."""

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    Deletion = messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion
    Upsertion = messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion


def alter(
    controller: Controller,
    request: messages.AlterUserScramCredentialsRequest,
) -> Decision[list[tuple[str, ApiError | None]]]:
    """Deletes and upserts credentials; the reply has each user once, with the error.
    Raises ApiError(UNSUPPORTED_VERSION).
    """
    _check_version(controller.state)
    errors: dict[str, ApiError] = {}
    wanted: dict[str, Deletion | Upsertion] = {}
    for one in _changes(request):
        yield
        if one.name in errors:
            continue
        if wanted.pop(one.name, None) is not None:
            errors[one.name] = ApiError(
                Errors.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
            )
            continue
        try:
            _check(controller.state, one)
        except ApiError as error:
            errors[one.name] = error
        else:
            wanted[one.name] = one
    for name in [name for name, one in wanted.items() if not (_is_deletion(one) or one.salted_password)]:
        errors[name] = ApiError(Errors.UNKNOWN_SERVER_ERROR)  # Java refuses an empty key, once the others are checked
        del wanted[name]
    done = [
        user
        for kind in (True, False)
        for user in java_order(name for name, one in wanted.items() if _is_deletion(one) is kind)
    ]
    outcome: list[tuple[str, ApiError | None]] = [
        *((user, None) for user in done),
        *((user, errors[user]) for user in java_order(errors)),
    ]
    records = []
    for user in done:
        yield
        records.append(_record(wanted[user]))
    return Result(records, outcome)


def _check_version(state: MetadataState) -> None:
    """Raises ApiError(UNSUPPORTED_VERSION)."""
    if state.metadata_version < SCRAM_SINCE:
        raise ApiError(Errors.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")


def _changes(request: messages.AlterUserScramCredentialsRequest) -> list[Deletion | Upsertion]:
    return [*request.deletions, *request.upsertions]


def _is_deletion(one: Deletion | Upsertion) -> TypeIs[Deletion]:
    return isinstance(one, messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion)


def _check(state: MetadataState, one: Deletion | Upsertion) -> None:
    """Raises ApiError."""
    if not one.name:
        raise ApiError(Errors.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if one.mechanism not in BY_NUMBER:
        raise ApiError(Errors.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if _is_deletion(one):
        if (one.name, one.mechanism) not in state.credentials:
            raise ApiError(Errors.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    elif one.iterations < ITERATIONS_MIN:
        raise ApiError(Errors.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    elif one.iterations > ITERATIONS_MAX:
        raise ApiError(Errors.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def _record(one: Deletion | Upsertion) -> messages.RemoveUserScramCredentialRecord | messages.UserScramCredentialRecord:
    """Returns the record of a deletion, or with the keys that a server derives from a salted password (RFC 5802)."""
    if _is_deletion(one):
        return messages.RemoveUserScramCredentialRecord(name=one.name, mechanism=one.mechanism)
    mechanism = BY_NUMBER[one.mechanism]
    return record_of(
        one.name, mechanism, credential_of(mechanism.digest, one.salted_password, one.salt, one.iterations)
    )


def record_of(user: str, mechanism: ScramMechanism, keys: ScramCredential) -> messages.UserScramCredentialRecord:
    return messages.UserScramCredentialRecord(
        name=user,
        mechanism=mechanism.number,
        salt=keys.salt,
        stored_key=keys.stored_key,
        server_key=keys.server_key,
        iterations=keys.iterations,
    )


def put(controller: Controller, user: str, found: Mapping[str, ScramCredential | None]) -> Result[None]:
    """Makes credentials of a user, by mechanism, what someone else has derived from a password; None removes one.
    Raises ApiError(UNSUPPORTED_VERSION).
    """
    _check_version(controller.state)
    records: list[messages.Struct] = []
    for name, keys in found.items():
        mechanism = MECHANISMS[name]
        if keys is not None:
            records.append(record_of(user, mechanism, keys))
        elif (user, mechanism.number) in controller.state.credentials:
            records.append(messages.RemoveUserScramCredentialRecord(name=user, mechanism=mechanism.number))
    return Result(records, None)


def described(
    state: MetadataState,
    users: list[str],
) -> Iterator[Described]:
    """Yields the credentials of the requested users, or of all users if none is named, or the errors."""
    credentials: dict[str, list[messages.UserScramCredentialRecord]] = {}
    for record in state.credentials.values():
        credentials.setdefault(record.name, []).append(record)
    counts = Counter(users or list(credentials))
    for user in java_order(counts):
        error = None
        if counts[user] > 1:
            error = ApiError(
                Errors.DUPLICATE_RESOURCE,
                f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}",
            )
        elif user not in credentials:
            error = ApiError(
                Errors.RESOURCE_NOT_FOUND, f"Attempt to describe a user credential that does not exist: {user}"
            )
        yield user, [] if error else sorted(credentials[user], key=lambda record: record.mechanism), error
