"""AlterClientQuotas, versions 0 and 1: sets and removes limits of users, client ids and addresses (KIP-546).

**Behaviour**
- Each entity is answered once. One that is named twice gets INVALID_REQUEST; what its first entry changes is kept, as
  in Kafka.
- The name of an address may be a host name; the system resolves it, in a thread.

**Versions**
- 1 flexible
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...coordinator.metadata import quota_order, quotas
from ...coordinator.metadata.quotas import Alteration, Entity
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ...protocol.structs import Struct
from ..addresses import address, addresses_of
from ..error_places import CONTROLLER, Place, Text, array, codes
from ..error_replies import reply_with_error
from ..later import Later
from ..net.context import Context
from ..security.authorization import Check
from ..steps import each_in_steps
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


async def handle(context: Context, request: messages.AlterClientQuotasRequest) -> messages.AlterClientQuotasResponse:
    metadata, turn = context.broker.metadata, context.broker.turn
    wanted = await each_in_steps(turn, request.entries, _wanted)
    unknown = await _unknown_hosts(turn, wanted)
    outcome = await metadata.forward(
        partial(quotas.alter, metadata.controller, wanted, unknown),
        validate_only=request.validate_only,
        is_void=not wanted,
    )
    types = {one.entity: one.types for one in reversed(wanted)}  # of an entity that is named twice, those of the first
    in_order = [(entity, types[entity], outcome[entity]) for entity in quota_order.changed(outcome)]
    entries = await each_in_steps(turn, in_order, _entry)
    return messages.AlterClientQuotasResponse(entries=entries)


def _wanted(one: messages.AlterClientQuotasRequest.EntryData) -> Alteration:
    return quotas.alteration(one.entity, one.ops)


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


def _entry(answered: tuple[Entity, Sequence[str], ApiError | None]) -> messages.AlterClientQuotasResponse.EntryData:
    r = messages.AlterClientQuotasResponse
    entity, types, error = answered
    names = dict(entity)
    parts = [r.EntityData(entity_type=kind, entity_name=names[kind]) for kind in types]
    entry = r.EntryData(entity=parts, error_message=None)
    return entry if error is None else error.put_into(entry)


def failed(context: Context, request: messages.AlterClientQuotasRequest, error: ApiError) -> Struct:
    """Returns the error of each entity, without the tags that the request has in it."""
    reply = reply_with_error(context.api, context.version, request, error)
    assert isinstance(reply, messages.AlterClientQuotasResponse)
    made = messages.AlterClientQuotasResponse.EntityData
    for entry in reply.entries:
        entry.entity = [made(entity_type=one.entity_type, entity_name=one.entity_name) for one in entry.entity]
    return reply
