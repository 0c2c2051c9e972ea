"""SCRAM credentials of users: the controller's handler (ScramControlManager, KIP-554) and what is told of them.

Nobody logs in with them, as there is no SASL here; a Kafka that goes on with the directory knows them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..hashing import java_order
from ..shard import Result
from .controller import Controller
from .state import MetadataState

DIGESTS = {1: "sha256", 2: "sha512"}  # by mechanism
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384
RECORD = "UserScramCredentialRecord"


def alter(controller: Controller, request: Any) -> Result:
    """Credentials deleted and upserted; the reply has each user once, with what went wrong."""
    errors: dict[str, ApiError] = {}
    wanted: dict[str, Any] = {}
    for one in (*request.deletions, *request.upsertions):
        if one.name in errors:
            continue
        if wanted.pop(one.name, None) is not None:
            errors[one.name] = ApiError(Errors.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
            continue
        try:
            _check(controller.state, one)
        except ApiError as error:
            errors[one.name] = error
        else:
            wanted[one.name] = one
    done = [user for kind in (True, False) for user in java_order(name for name, one in wanted.items() if _is_deletion(one) is kind)]
    outcome: list[tuple[str, ApiError | None]] = [*((user, None) for user in done), *((user, errors[user]) for user in java_order(errors))]
    return Result([_record(wanted[user]) for user in done], outcome)


def _is_deletion(one: Any) -> bool:
    return isinstance(one, messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion)


def _check(state: MetadataState, one: Any) -> None:
    """ApiError."""
    if not one.name:
        raise ApiError(Errors.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if one.mechanism not in DIGESTS:
        raise ApiError(Errors.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if _is_deletion(one):
        if (RECORD, one.name, one.mechanism) not in state.others:
            raise ApiError(Errors.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    elif one.iterations < ITERATIONS_MIN:
        raise ApiError(Errors.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    elif one.iterations > ITERATIONS_MAX:
        raise ApiError(Errors.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    elif not one.salted_password:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)  # Java has no keys for it


def _record(one: Any) -> Any:
    """A deletion, or what a server keeps of a salted password (RFC 5802)."""
    if _is_deletion(one):
        return messages.RemoveUserScramCredentialRecord(name=one.name, mechanism=one.mechanism)
    digest = DIGESTS[one.mechanism]
    client_key = hmac.digest(one.salted_password, b"Client Key", digest)
    return messages.UserScramCredentialRecord(
        name=one.name,
        mechanism=one.mechanism,
        salt=one.salt,
        stored_key=hashlib.new(digest, client_key).digest(),
        server_key=hmac.digest(one.salted_password, b"Server Key", digest),
        iterations=one.iterations,
    )


def described(state: MetadataState, users: list[str]) -> Iterator[tuple[str, list[Any], ApiError | None]]:
    """The users of a request, or all where it names none: their credentials' records, or why there are none."""
    credentials: dict[str, list[Any]] = {}
    for key, record in state.others.items():
        if key[0] == RECORD:
            credentials.setdefault(record.name, []).append(record)
    counts = Counter(users or list(credentials))
    for user in java_order(counts):
        error = None
        if counts[user] > 1:
            error = ApiError(Errors.DUPLICATE_RESOURCE, f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}")
        elif user not in credentials:
            error = ApiError(Errors.RESOURCE_NOT_FOUND, f"Attempt to describe a user credential that does not exist: {user}")
        yield user, [] if error else sorted(credentials[user], key=lambda record: record.mechanism), error


def users_of(request: Any) -> Iterable[str]:
    """Whom an alteration is about, each once, as Kafka orders them."""
    return java_order({one.name: None for one in (*request.deletions, *request.upsertions)})
