"""Access control entries: the controller's handlers (AclControlManager)."""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.features import RANGES_SINCE
from ..security.acls import WILDCARD, Acl, Operation, PatternType, Permission, ResourceType, as_record, named
from ..security.hosts import network_of
from ..shard import Decision, Result
from .controller import RECORDS_PER_REQUEST, Controller, bounded
from .state import MetadataState


def create(controller: Controller, wanted: Iterable[Acl]) -> Decision[list[ApiError | None]]:
    """Creates entries; the reply has the error of each, or None, also for an entry that exists."""
    state = controller.state
    outcome: list[ApiError | None] = []
    created: dict[Acl, messages.AccessControlEntryRecord] = {}
    for acl in wanted:
        yield
        try:
            check(state, acl)
        except ApiError as error:
            outcome.append(error)
            continue
        if acl not in state.acl_ids and acl not in created:
            created[acl] = as_record(controller.new_id(), acl)
        outcome.append(None)
    return bounded(Result(list(created.values()), outcome))


def check(state: MetadataState, acl: Acl) -> None:
    """Raises ApiError(INVALID_REQUEST) for an entry that cannot be created, and UNSUPPORTED_VERSION for a range of
    hosts before its metadata version.
    """
    resource_type = named(ResourceType, acl.resource_type)
    if resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise ApiError(Errors.INVALID_REQUEST, f"Invalid resourceType {resource_type.name}")
    pattern_type = named(PatternType, acl.pattern_type)
    if pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise ApiError(Errors.INVALID_REQUEST, f"Invalid patternType {pattern_type.name}")
    operation = named(Operation, acl.operation)
    if operation in (Operation.UNKNOWN, Operation.ANY):
        raise ApiError(Errors.INVALID_REQUEST, f"Invalid operation {operation.name}")
    permission = named(Permission, acl.permission)
    if permission not in (Permission.DENY, Permission.ALLOW):
        raise ApiError(Errors.INVALID_REQUEST, f"Invalid permissionType {permission.name}")
    if ":" not in acl.principal:
        text = "(no colon is present separating the principal type from the principal name)"
        raise ApiError(Errors.INVALID_REQUEST, f"Could not parse principal from `{acl.principal}` {text}")
    _check_host(state, acl.host)


def _check_host(state: MetadataState, host: str) -> None:
    if not host:
        raise ApiError(Errors.INVALID_REQUEST, "Host pattern cannot be null or empty")
    if host == WILDCARD or "/" not in host:
        return
    if state.metadata_version < RANGES_SINCE:
        text = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
        raise ApiError(Errors.UNSUPPORTED_VERSION, text)
    try:
        network_of(host)
    except ValueError as error:
        raise ApiError(Errors.INVALID_REQUEST, f"Invalid CIDR notation '{host}': {error}") from None


def delete(controller: Controller, ids: Iterable[bytes]) -> Decision[set[bytes]]:
    """Deletes the entries with these ids; the reply has the ids of those that were there."""
    records: dict[bytes, messages.RemoveAccessControlEntryRecord] = {}
    for acl_id in ids:
        yield
        if acl_id in controller.state.acls:
            records[acl_id] = messages.RemoveAccessControlEntryRecord(id=acl_id)
    return bounded(Result(list(records.values()), set(records)))


class Deletions:
    """The entries that the filters of one request delete. An entry that two filters match is deleted once."""

    def __init__(self) -> None:
        self.ids: dict[bytes, None] = {}

    def add(self, acl_id: bytes) -> None:
        """Raises ApiError(INVALID_REQUEST) if they are too many for one request."""
        if len(self.ids) >= RECORDS_PER_REQUEST:
            text = f"Cannot remove more than {RECORDS_PER_REQUEST} acls in a single delete operation."
            raise ApiError(Errors.INVALID_REQUEST, text)
        self.ids[acl_id] = None
