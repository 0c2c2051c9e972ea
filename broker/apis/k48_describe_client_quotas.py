"""DescribeClientQuotas, versions 0 and 1: lists the limits of the entities that a filter matches (KIP-546).

**Behaviour**
- An error of the filter returns no list of entries, not an empty one.
- `strict` leaves out entities that have further types.

**Versions**
- 1 flexible
"""

from __future__ import annotations

from ...coordinator.metadata.quota_order import Described, keys
from ...coordinator.metadata.quotas import Entity, Filter
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.structs import Struct
from ..error_places import Place, Text, codes
from ..error_replies import reply_with_error
from ..later import Steps
from ..net.answers import Answers
from ..net.context import Context
from ..security.authorization import Check
from ..steps import Pace

AUTHORIZATION = (Check(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),)
ERRORS = (
    Place(
        "the whole",
        codes("CLUSTER_AUTHORIZATION_FAILED UNSUPPORTED_VERSION INVALID_REQUEST"),
        others=(("entries", None),),
        text=Text.OWN,
    ),
)


def handle(
    context: Context, request: messages.DescribeClientQuotasRequest
) -> Steps[messages.DescribeClientQuotasResponse]:
    return _describe(context, Filter(request.components, request.strict))


async def _describe(context: Context, wanted: Filter) -> messages.DescribeClientQuotasResponse:
    r = messages.DescribeClientQuotasResponse
    pace = Pace(context.broker.turn)
    found: dict[Entity, dict[str, float]] = {}
    order = Described(wanted)
    for (entity, key), record in list(context.broker.image.quotas.items()):
        if entity not in found:
            found[entity] = {}
            order.add(entity)
        found[entity][key] = record.value
        if pace.is_over():
            await pace.rest()
    places: dict[Entity, tuple[int, ...]] = {}
    for entity in found:
        if wanted.matches(entity):
            places[entity] = order.place(entity)
        if pace.is_over():
            await pace.rest()
    answers = Answers(context)
    made = answers.array("entries")
    for entity in sorted(places, key=places.__getitem__):
        parts = [r.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        values = [r.ValueData(key=key, value=found[entity][key]) for key in keys(found[entity])]
        await answers.add("entries", r.EntryData(entity=parts, values=values))
    return r(entries=made)


def failed(context: Context, request: messages.DescribeClientQuotasRequest, error: ApiError) -> Struct:
    if error.code == Errors.CLUSTER_AUTHORIZATION_FAILED:
        error = ApiError(error.code)  # Kafka's broker says no more
    return reply_with_error(context.api, context.version, request, error)
