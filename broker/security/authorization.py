"""What a principal must be allowed for each API, and the checks of it.

An API's file declares its checks in `AUTHORIZATION`. Dispatch makes those of the whole request: they need the cluster,
or the group or transactional id that a field of the request names. The handler makes the others, through `Check`. The
table in the documentation is computed from the declarations. Without an authorizer everything is allowed, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum
from operator import attrgetter
from typing import Final, NamedTuple, Protocol, TypeVar

from ...coordinator.security.acls import CLUSTER_NAME, SUPPORTED, Operation, ResourceType
from ...coordinator.security.authorizer import Authorizer
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..later import Steps
from ..peer import Peer
from ..steps import Pace
from ..turn import Turn

T = TypeVar("T")
CLUSTER: Final = "the cluster"
_NAME: Callable[[object], str | None] = attrgetter("name")
_ERRORS = {
    ResourceType.TOPIC: Errors.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: Errors.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: Errors.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: Errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: Errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


class Caller(Protocol):
    """Who asks: the context of a request."""

    @property
    def principal(self) -> str: ...

    @property
    def client_host(self) -> str: ...

    @property
    def authorizer(self) -> Authorizer | None: ...

    @property
    def turn(self) -> Turn: ...

    @property
    def audit(self) -> Audit | None:
        """What notes decisions."""

    @property
    def peer(self) -> Peer: ...

    @property
    def client_id(self) -> str | None: ...

    @property
    def api_name(self) -> str: ...


class Audit(Protocol):
    """What notes the authorizer's decisions and log-ins."""

    def right(self, caller: Caller, check: Check, name: str | None, is_allowed: bool) -> None:
        """Notes a decision. `name`: of the resource; None for any resource of the type."""

    def login(self, peer: Peer, mechanism: str, reason: str | None) -> None:
        """Notes a log-in, with the reason if it failed."""


class Refusal(Enum):
    """What a check refuses."""

    REQUEST = "the request"  # checked by dispatch
    IN_HANDLER = "the request, as the API's own rules say"
    ELEMENT = "the element"
    LEFT_OUT = "nothing; it is left out of the reply"


class Check(NamedTuple):
    """One operation on one resource. `names`: the field of the request, or of the reply, with the resource's name."""

    operation: Operation
    resource_type: ResourceType
    names: str = CLUSTER
    refusal: Refusal = Refusal.REQUEST

    @property
    def error(self) -> ApiError | None:
        """The error for a refused resource; None if it is left out of the reply."""
        return None if self.refusal is Refusal.LEFT_OUT else ApiError(self.code)

    @property
    def code(self) -> int:
        return int(_ERRORS[self.resource_type])

    def allows(self, caller: Caller, name: str = CLUSTER_NAME) -> bool:
        """Whether the principal of a request may do the operation on the resource with this name."""
        authorizer = caller.authorizer
        if authorizer is None:
            return True
        allowed = authorizer.allows(caller.principal, caller.client_host, self.operation, self.resource_type, name)
        if caller.audit is not None:
            caller.audit.right(caller, self, name, allowed)
        return allowed

    def require(self, caller: Caller, name: str = CLUSTER_NAME) -> None:
        """Raises ApiError with the authorization error of the resource type: the principal may not do it."""
        if not self.allows(caller, name):
            raise ApiError(self.code)

    def allows_any(self, caller: Caller) -> bool:
        """Whether the principal may do the operation on at least one resource of the type."""
        authorizer = caller.authorizer
        if authorizer is None:
            return True
        allowed = authorizer.allows_any(caller.principal, caller.client_host, self.operation, self.resource_type)
        if caller.audit is not None:
            caller.audit.right(caller, self, None, allowed)
        return allowed

    async def parted(
        self,
        caller: Caller,
        elements: Iterable[T],
        name_of: Callable[[T], str | None] = _NAME,
        pace: Pace | None = None,
    ) -> tuple[list[T], list[T]]:
        """Returns the elements whose resources the principal may use, and the others; in steps if they are many.

        `name_of`: returns the name of an element's resource; None for an element that is not checked. `pace`: counts
        what the request has checked before, too.
        """
        allowed: list[T] = []
        refused: list[T] = []
        pace = Pace(caller.turn) if pace is None else pace
        for element in elements:
            name = name_of(element)
            (allowed if name is None or self.allows(caller, name) else refused).append(element)
            if pace.is_over():
                await pace.rest()
        return allowed, refused

    async def denied(self, caller: Caller, names: Iterable[str]) -> Collection[str]:
        """Returns the names of resources that the principal may not use; in steps if they are many."""
        if caller.authorizer is None:
            return ()
        _, denied = await self.parted(caller, dict.fromkeys(names), str)
        return frozenset(denied)


Authorization = tuple[Check, ...]
"""What an API's file declares."""
Complete = Callable[[object], object]
"""Adds the errors of the parts of a request that were refused to its reply."""
Narrow = Callable[..., Steps[Complete | None]]
"""An API's `narrowed(context, request)`: takes the parts out of a request that the principal may not use."""


def check_request(caller: Caller, api: str, checks: Authorization, request: messages.Struct) -> None:
    """Makes the checks of a whole request. Raises ApiError with an authorization error."""
    for check in checks:
        if check.refusal is Refusal.REQUEST:
            name = CLUSTER_NAME if check.names is CLUSTER else getattr(request, check.names)
            if not check.allows(caller, name):
                raise refused(caller, api, check)


def refused(caller: Caller, api: str, check: Check) -> ApiError:
    """Returns the error of a request; that of the cluster says which permission is missing."""
    if check.resource_type is not ResourceType.CLUSTER:
        return ApiError(check.code)
    text = f"Request {api} of {caller.principal} needs {check.operation.name} permission."
    return ApiError(check.code, text)


def authorized_operations(caller: Caller, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
    """Returns the bits of the operations that the principal may do on a resource (KIP-430)."""
    authorizer = caller.authorizer
    if authorizer is None:
        return sum(1 << operation for operation in SUPPORTED[resource_type])
    return authorizer.operations(caller.principal, caller.client_host, resource_type, name)


def rows(name: str, checks: Authorization) -> Iterator[tuple[str, str, str, str, str]]:
    """Yields the rows of the documentation's table: API, operation, resource, its name, and what is refused."""
    for check in checks:
        error = check.error
        what = check.refusal.value if error is None else f"{check.refusal.value}: {Errors(check.code).name}"
        yield name, check.operation.name, check.resource_type.name, check.names, what
