"""Metadata, versions 0 to 13: returns brokers, topics and their partitions.

**Behaviour**
- Topics that are created by this request are reported as UNKNOWN_TOPIC_OR_PARTITION in this reply, as in Kafka.
- Where a topic is requested by its id, those without one are left out.

**Versions**
- 0 an empty list means all topics; from 1 on null does. Replicas that are not alive are left out
- 1 controller, rack, internal topics
- 2 cluster id
- 4 the client can forbid automatic creation
- 5 offline replicas
- 7 leader epoch
- 8 authorized operations (KIP-430)
- 9 flexible
- 10 topic ids in the reply (KIP-516); from 12 on also in the request
- 11 no authorized operations of the cluster (KIP-700)
- 13 a top-level error (KIP-1102)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ...coordinator.metadata import topics as topic_rules
from ...coordinator.metadata.configs import check_name, error_of_absent
from ...coordinator.metadata.format import CLUSTER_METADATA
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.schema import NO_UUID
from ..client_quotas import Usage
from ..error_places import Place, array, codes
from ..internal_topics import is_internal
from ..later import Steps
from ..net.answers import Answers, answer_each, topic_piece
from ..net.context import Context
from ..security.authorization import Check, Refusal, authorized_operations
from ..steps import STEP_ELEMENTS, Pace, slices
from ..topic_pieces import Piece
from ._leadership import leadership
from ._nodes import controller_id, neighbours, reachable
from .k60_describe_cluster import OPERATIONS, cluster_operations

if TYPE_CHECKING:
    Wanted = messages.MetadataRequest.MetadataRequestTopic
    Topic = messages.MetadataResponse.MetadataResponseTopic
    Described = Topic | Piece

TOPICS = Check(Operation.DESCRIBE, ResourceType.TOPIC, "topics.name", Refusal.ELEMENT)
CREATES = Check(Operation.CREATE, ResourceType.CLUSTER, refusal=Refusal.ELEMENT)
CREATES_TOPIC = Check(Operation.CREATE, ResourceType.TOPIC, "topics.name", Refusal.ELEMENT)
AUTHORIZATION = (TOPICS, CREATES, CREATES_TOPIC, OPERATIONS)
NOT_ASKED = -(1 << 31)  # operations, where the client does not want them
FEW = 64  # topics that are described in one step
T = TypeVar("T")
Key = tuple[str | None, bytes]
_TOPICS = array("topics", "topics", null="", topic="name", topic_id="topic_id")
ERRORS = (
    Place("the whole", codes("REBOOTSTRAP_REQUIRED"), since=13),
    Place(
        "each topic",
        codes(
            "UNKNOWN_TOPIC_OR_PARTITION LEADER_NOT_AVAILABLE INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED "
            "INVALID_REQUEST UNKNOWN_TOPIC_ID"
        ),
        (_TOPICS,),
    ),
    Place(
        "each partition",
        codes("LEADER_NOT_AVAILABLE REPLICA_NOT_AVAILABLE LISTENER_NOT_FOUND"),
        (
            _TOPICS,
            array("partitions", None, partition="partition_index"),
        ),
        others=(("leader_id", -1),),
        of_whole=False,
        is_kept=True,
    ),
)


def handle(
    context: Context,
    request: messages.MetadataRequest,
) -> messages.MetadataResponse | Steps[messages.MetadataResponse]:
    wanted = request.topics
    if wanted is None or (context.version == 0 and not wanted):
        described = sorted(context.broker.image.topics)
        return (
            _all(context, request, described) if context.authorizer is None else _allowed(context, request, described)
        )
    if context.version < 12 and any(t.topic_id != NO_UUID or t.name is None for t in wanted):
        return messages.MetadataResponse(topics=[_refused(t) for t in wanted], cluster_id=None)
    if len(wanted) > STEP_ELEMENTS:
        return _many(context, request, wanted)
    chosen = _chosen(context, {_key(one): one for one in wanted})
    return _some(context, request, chosen, _to_create(context, request, chosen))


async def _many(context: Context, request: messages.MetadataRequest, wanted: list[Wanted]) -> messages.MetadataResponse:
    """Finds out in steps which topics are requested, and which of them are created; and answers."""
    distinct: dict[Key, Wanted] = {}
    missing: dict[str, None] = {}
    for some in slices(wanted):
        for one in some:
            distinct[_key(one)] = one
        missing |= dict.fromkeys(_to_create(context, request, some))
        await context.broker.turn.next()
    chosen = _chosen(context, distinct)
    outcome = _some(context, request, chosen, list(missing) if chosen[0].topic_id == NO_UUID else [])
    return outcome if isinstance(outcome, messages.MetadataResponse) else await outcome


def _some(
    context: Context, request: messages.MetadataRequest, wanted: list[Wanted], missing: list[str]
) -> messages.MetadataResponse | Steps[messages.MetadataResponse]:
    """Creates the topics that are missing, and answers. `wanted`: without repetitions."""
    if missing and context.authorizer is not None:
        return _create_allowed(context, request, wanted, missing)
    if missing:
        return _create_and_answer(context, request, wanted, missing)
    return _answer(context, request, wanted, lambda t: True, lambda t: _one(context, request, t))


def _all(
    context: Context, request: messages.MetadataRequest, described: list[str]
) -> messages.MetadataResponse | Steps[messages.MetadataResponse]:
    topics = context.broker.image.topics
    return _answer(
        context, request, described, lambda name: name in topics, lambda name: _topic(context, request, name)
    )


async def _allowed(
    context: Context, request: messages.MetadataRequest, described: list[str]
) -> messages.MetadataResponse:
    """Like `_all`, without the topics that the principal may not describe."""
    described, _ = await TOPICS.parted(context, described, str)
    outcome = _all(context, request, described)
    return outcome if isinstance(outcome, messages.MetadataResponse) else await outcome


async def _create_allowed(
    context: Context, request: messages.MetadataRequest, wanted: list[Wanted], missing: list[str]
) -> messages.MetadataResponse:
    """Creates the topics that the principal may create, and answers."""
    missing, _ = await TOPICS.parted(context, missing, str)
    if not CREATES.allows(context):
        missing, _ = await CREATES_TOPIC.parted(context, missing, str)
    return await _create_and_answer(context, request, wanted, missing)


def _may_create(context: Context, name: str) -> bool:
    return CREATES.allows(context) or CREATES_TOPIC.allows(context, name)


def _answer(
    context: Context,
    request: messages.MetadataRequest,
    asked: list[T],
    is_there: Callable[[T], bool],
    answer: Callable[[T], Described],
) -> messages.MetadataResponse | Steps[messages.MetadataResponse]:
    """Returns the reply for the requested topics that exist, in steps if they are many."""
    if len(asked) <= FEW:
        few = Answers(context).array("topics")
        for one in asked:
            few.append(answer(one))
        return _response(context, request, few)

    async def in_steps() -> messages.MetadataResponse:
        await context.broker.turn.next()  # which topics are asked for was found out in a step of its own
        found = (one for one in asked if is_there(one))  # topics may be deleted between two steps
        return _response(context, request, await answer_each(context, "topics", found, answer))

    return in_steps()


def _key(wanted: Wanted) -> Key:
    """Returns what tells requested topics apart: the id, if there is one."""
    return (wanted.name, NO_UUID) if wanted.topic_id == NO_UUID else (None, wanted.topic_id)


def _chosen(context: Context, distinct: dict[Key, Wanted]) -> list[Wanted]:
    """Returns the topics that are answered: where one is requested by its id, those without are not, as in Kafka, and
    ids that are unknown come first. Raises ApiError(UNKNOWN_SERVER_ERROR) for a topic with neither a name nor an id.
    """
    names = context.broker.image.topic_names
    by_id = [one for (_, topic_id), one in distinct.items() if topic_id != NO_UUID]
    if by_id:
        return sorted(by_id, key=lambda one: one.topic_id in names)
    if (None, NO_UUID) in distinct:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    return list(distinct.values())


def _refused(wanted: Wanted) -> Topic:
    """Versions 10 and 11 have a field for topic ids, but Kafka refuses ids in them."""
    name = wanted.name if wanted.name is not None else ""
    return messages.MetadataResponse.MetadataResponseTopic(
        error_code=Errors.INVALID_REQUEST, name=name, topic_id=wanted.topic_id
    )


def _creates(context: Context, request: messages.MetadataRequest) -> bool:
    """Whether topics that do not exist are created."""
    return bool(request.allow_auto_topic_creation and context.broker.config["auto.create.topics.enable"])


def _to_create(context: Context, request: messages.MetadataRequest, wanted: Sequence[Wanted]) -> list[str]:
    if not _creates(context, request):
        return []
    names = dict.fromkeys(t.name for t in wanted if t.name is not None and t.topic_id == NO_UUID)
    return [name for name in names if name not in context.broker.image.topics and _is_legal(name)]


def _is_legal(name: str) -> bool:
    try:
        check_name(name)
    except ApiError:
        return False
    return name != CLUSTER_METADATA


def _create_and_answer(
    context: Context, request: messages.MetadataRequest, wanted: list[Wanted], names: list[str]
) -> Steps[messages.MetadataResponse]:
    """Starts to create the topics; this reply still says that they do not exist, as in Kafka."""
    broker = context.broker
    if names:
        broker.turn.background(_create(context, names[: topic_rules.PARTITIONS_PER_REQUEST]))

    async def answer() -> messages.MetadataResponse:
        return _response(
            context,
            request,
            await answer_each(context, "topics", wanted, lambda t: _one(context, request, t)),
        )

    return answer()


async def _create(context: Context, names: list[str]) -> None:
    """Creates topics. They count for the client's quota, which may refuse them, but this request is not throttled."""
    broker = context.broker
    r, pace, create = messages.CreateTopicsRequest, Pace(broker.turn), []
    for name in names:
        create.append(r.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1))
        if pace.is_over():
            await pace.rest()
    mutate = topic_rules.unlimited
    if context.usage is not None:
        mutate = partial(Usage(broker.quotas, context.principal, context.client_id, 0).mutate, is_strict=True)
    broker.metadata.submit(partial(topic_rules.create_topics, broker.metadata.controller, create, mutate))


def _one(context: Context, request: messages.MetadataRequest, wanted: Wanted) -> Described:
    name, image = wanted.name, context.broker.image
    t = messages.MetadataResponse.MetadataResponseTopic
    if wanted.topic_id != NO_UUID:
        name = image.topic_names.get(wanted.topic_id)
        if name is None:
            return t(error_code=Errors.UNKNOWN_TOPIC_ID, topic_id=wanted.topic_id, name=None)
    if context.authorizer is not None and name is not None and not TOPICS.allows(context, name):
        is_by_name = wanted.topic_id == NO_UUID
        return t(error_code=TOPICS.code, name=name if is_by_name else None, topic_id=wanted.topic_id)
    if name is None or name not in image.topics:
        shown = name or ""
        absent = t(error_code=_absent(context, request, shown), name=name, is_internal=is_internal(shown))
        if request.include_topic_authorized_operations and absent.error_code != CREATES_TOPIC.code:
            absent.topic_authorized_operations = authorized_operations(context, ResourceType.TOPIC, shown)
        return absent
    return _topic(context, request, name)


def _absent(context: Context, request: messages.MetadataRequest, name: str) -> int:
    if context.authorizer is not None and _creates(context, request) and not _may_create(context, name):
        return CREATES_TOPIC.code
    return error_of_absent(name)


def _topic(context: Context, request: messages.MetadataRequest, name: str) -> Piece:
    """Returns a topic that exists; as it was encoded before, if nothing of it has changed."""
    operations = NOT_ASKED
    if request.include_topic_authorized_operations:
        operations = authorized_operations(context, ResourceType.TOPIC, name)
    return topic_piece(context, name, operations, lambda: _described(context, name, operations))


def _described(context: Context, name: str, operations: int) -> Topic:
    broker, image = context.broker, context.broker.image
    topic = image.topics[name]
    out = messages.MetadataResponse.MetadataResponseTopic(
        name=name, topic_id=topic.id, is_internal=is_internal(name), topic_authorized_operations=operations
    )
    partition_class = messages.MetadataResponse.MetadataResponsePartition
    alive = frozenset(node.id for node in broker.alive()) if context.version == 0 else None
    for state in image.partitions_of(topic.id):
        leader, isr, offline = leadership(broker, name, state)
        error, replicas = Errors.LEADER_NOT_AVAILABLE if leader < 0 else Errors.NONE, list(state.replicas)
        if alive is not None:
            known, isr = [one for one in replicas if one in alive], [one for one in isr if one in alive]
            if leader >= 0 and (len(known) < len(replicas) or len(isr) < len(state.isr)):
                error = Errors.REPLICA_NOT_AVAILABLE
            replicas = known
        out.partitions.append(
            partition_class(
                error_code=error,
                partition_index=state.index,
                leader_id=leader,
                leader_epoch=state.leader_epoch,
                replica_nodes=replicas,
                isr_nodes=isr,
                offline_replicas=offline,
            )
        )
    return out


def _response(context: Context, request: messages.MetadataRequest, topics: list[Topic]) -> messages.MetadataResponse:
    broker = context.broker
    r = messages.MetadataResponse
    brokers = [
        r.MetadataResponseBroker(node_id=node.id, host=at.host, port=at.port, rack=node.rack)
        for node, at in reachable(context)
    ]
    if broker.zookeeper is not None:
        brokers += [
            r.MetadataResponseBroker(node_id=one.id, host=one.host, port=one.port, rack=one.rack)
            for one in neighbours(context)
        ]
    response = r(
        brokers=brokers,
        cluster_id=broker.cluster_id,
        controller_id=controller_id(context),
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    return response
