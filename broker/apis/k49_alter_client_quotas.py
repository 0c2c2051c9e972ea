"""AlterClientQuotas, versions 0 and 1: sets and removes limits of users, client ids and addresses (KIP-546).

**Behaviour**
- Each entity is answered once. One that is named twice gets INVALID_REQUEST; what its first entry changes is kept, as
  in Kafka.
- The name of an address may be a host name; the system resolves it, in a thread.

**Versions**
- 1 flexible
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ...coordinator.metadata import quotas
from ...coordinator.metadata.quotas import Alteration, Entity
from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.shard import Result
from ...protocol import messages
from ...protocol.errors import ApiError
from ..addresses import address, addresses_of
from ..error_places import CONTROLLER, Place, Text, array, codes
from ..later import Later, Steps
from ..net.context import Context
from ..security.authorization import Check
from ..turn import Turn

AUTHORIZATION = (Check(Operation.ALTER_CONFIGS, ResourceType.CLUSTER),)
ERRORS = (
    Place(
        "each entity",
        CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED UNSUPPORTED_VERSION INVALID_REQUEST"),
        (array("entries", "entries", entity="entity"),),
        text=Text.OF_CODE,
    ),
)


def handle(context: Context, request: messages.AlterClientQuotasRequest) -> Steps[messages.AlterClientQuotasResponse]:
    wanted = [quotas.alteration({e.entity_type: e.entity_name for e in one.entity}, one.ops) for one in request.entries]
    return _alter(context, wanted, request.validate_only)


async def _alter(context: Context, wanted: list[Alteration], validate_only: bool) -> messages.AlterClientQuotasResponse:
    metadata = context.broker.metadata
    unknown = await _unknown_hosts(context.broker.turn, wanted)
    decide = partial(quotas.alter, metadata.controller, wanted, unknown)
    outcome = await metadata.forward(lambda: Result([], decide().reply) if validate_only else decide())
    return _answer(outcome.items())


async def _unknown_hosts(turn: Turn, wanted: list[Alteration]) -> frozenset[str]:
    """Returns the names of addresses that the system cannot resolve."""
    names = {name: None for one in wanted for kind, name in one.entity if kind == quotas.IP and name}
    hosts = [name for name in names if address(name) is None]
    if not hosts:
        return frozenset()
    later: Later[frozenset[str]] = Later()

    def done(result: frozenset[str] | None, error: BaseException | None) -> None:
        later.finish(frozenset(hosts) if result is None else result)

    turn.in_thread(lambda: frozenset(host for host in hosts if not addresses_of(host)), done)
    return await later


def _answer(outcome: Iterable[tuple[Entity, ApiError | None]]) -> messages.AlterClientQuotasResponse:
    r = messages.AlterClientQuotasResponse
    entries = []
    for entity, error in outcome:
        parts = [r.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        entry = r.EntryData(entity=parts, error_message=None)
        entries.append(entry if error is None else error.put_into(entry))
    return r(entries=entries)
