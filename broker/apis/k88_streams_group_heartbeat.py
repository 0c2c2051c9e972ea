"""StreamsGroupHeartbeat, versions 0 and 1: a member of a streams group joins, stays or leaves (KIP-1071).

**Behaviour**
- The broker creates internal topics that do not exist, if the client may create them; a later heartbeat finds them.
- There are no warm-up tasks, and source topics cannot be named by regular expressions, as in Kafka 4.4.

**Versions**
- 1 an acceptable lag of 64 bits, missing client tags, whether a description of the topology is wanted
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from ...coordinator.group import routes
from ...coordinator.group.streams.checks import check_request
from ...coordinator.group.streams.statuses import Code
from ...coordinator.metadata import topics
from ...coordinator.metadata.configs import check_name
from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.shard import Result
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..client_quotas import Usage
from ..error_places import COORDINATOR, Place, codes
from ..group.room import NoRoom
from ..internal_topics import is_internal
from ..later import Later, after
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ._groups import WITHOUT_WORDS, client_of, may_describe_all, note_full
from ._streams_groups import is_enabled

if TYPE_CHECKING:
    from ...coordinator.group.shard import GroupShard
    from ...coordinator.group.streams.beat import Beat
    from ...coordinator.group.streams.topology import InternalTopic

GROUPS = Check(Operation.READ, ResourceType.GROUP, "group_id", Refusal.IN_HANDLER)
TOPICS = Check(Operation.DESCRIBE, ResourceType.TOPIC, "topics of the topology", Refusal.IN_HANDLER)
CREATES_ANY = Check(Operation.CREATE, ResourceType.CLUSTER, refusal=Refusal.IN_HANDLER)
CREATES = Check(Operation.CREATE, ResourceType.TOPIC, "internal topics of the topology", Refusal.IN_HANDLER)
AUTHORIZATION = (GROUPS, TOPICS, CREATES_ANY, CREATES)
SHOWN_FAILURES = 3
ASKED_SINCE = 1  # a description of the topology
ERRORS = (
    Place(
        "the whole",
        COORDINATOR
        + codes(
            "INVALID_GROUP_ID UNKNOWN_MEMBER_ID TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED "
            "CLUSTER_AUTHORIZATION_FAILED "
            "UNSUPPORTED_VERSION INVALID_REQUEST GROUP_ID_NOT_FOUND GROUP_MAX_SIZE_REACHED FENCED_INSTANCE_ID "
            "FENCED_MEMBER_EPOCH UNRELEASED_INSTANCE_ID STREAMS_INVALID_TOPOLOGY STREAMS_INVALID_TOPOLOGY_EPOCH "
            "STREAMS_TOPOLOGY_FENCED"
        ),
    ),
)


def handle(
    context: Context, request: messages.StreamsGroupHeartbeatRequest
) -> messages.StreamsGroupHeartbeatResponse | Later[messages.StreamsGroupHeartbeatResponse]:
    if not is_enabled(context):
        return messages.StreamsGroupHeartbeatResponse(error_code=int(Errors.UNSUPPORTED_VERSION))
    if not GROUPS.allows(context, request.group_id):
        return messages.StreamsGroupHeartbeatResponse(error_code=GROUPS.code)
    if request.topology is not None:
        names = _names(request.topology)
        _check_names(names)
        if not may_describe_all(context, TOPICS, names):
            return messages.StreamsGroupHeartbeatResponse(error_code=TOPICS.code)
    check_request(request)
    broker, client = context.broker, client_of(context)

    def beat(shard: GroupShard) -> Result[Beat]:
        if request.member_epoch == 0:
            broker.groups.room.check_member(shard, request.group_id, request.member_id)
        return routes.streams_group_heartbeat(shard, client, request)

    def answered(later: Later[Beat]) -> messages.StreamsGroupHeartbeatResponse:
        found = later.get()
        if found.missing:
            _create(context, request.group_id, found.response, found.missing)
        if broker.groups.descriptions is not None and request.member_epoch >= 0 and context.version >= ASKED_SINCE:
            broker.groups.descriptions.ask(broker.groups, request.group_id, found.response)
        return found.response

    return after(broker.groups.write(request.group_id, "streams-group-heartbeat", beat), answered)


def _names(topology: messages.StreamsGroupHeartbeatRequest.Topology) -> list[str]:
    """Returns the topics of a topology, each once."""
    names: dict[str, None] = {}
    for one in topology.subtopologies:
        names.update(dict.fromkeys(one.source_topics))
        names.update(dict.fromkeys(one.repartition_sink_topics))
        names.update(dict.fromkeys(topic.name for topic in one.repartition_source_topics))
        names.update(dict.fromkeys(topic.name for topic in one.state_changelog_topics))
    return list(names)


def _check_names(names: list[str]) -> None:
    """Raises ApiError(STREAMS_INVALID_TOPOLOGY)."""
    internal = [name for name in names if is_internal(name)]
    if internal:
        text = f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
        raise ApiError(Errors.STREAMS_INVALID_TOPOLOGY, text)
    invalid = [name for name in names if not _is_legal(name)]
    if invalid:
        text = f"Topic names {','.join(invalid)} are not valid topic names."
        raise ApiError(Errors.STREAMS_INVALID_TOPOLOGY, text)


def _is_legal(name: str) -> bool:
    try:
        check_name(name)
    except ApiError:
        return False
    return True


def _create(
    context: Context,
    group_id: str,
    response: messages.StreamsGroupHeartbeatResponse,
    missing: Iterable[InternalTopic],
) -> None:
    """Creates internal topics, and says in the reply why some cannot be created."""
    broker = context.broker
    names = [topic.name for topic in missing]
    if context.authorizer is not None and not CREATES_ANY.allows(context):
        denied = [name for name in names if not CREATES.allows(context, name)]
        if denied:
            _add(response, f"Unauthorized to CREATE on topics {', '.join(denied)}.")
            return
    mutate = topics.unlimited
    if context.usage is not None:
        mutate = partial(Usage(broker.quotas, context.principal, context.client_id, 0).mutate, is_strict=True)
    retry_ms = 2 * broker.groups.group_config(group_id, "streams.heartbeat.interval.ms")
    failures = broker.groups.streams_topics.failures(names)  # of earlier heartbeats
    broker.groups.streams_topics.create(missing, mutate, retry_ms)
    if failures:
        shown = ", ".join(f"{name} ({words})" for name, words in list(failures.items())[:SHOWN_FAILURES])
        more = len(failures) - SHOWN_FAILURES
        _add(response, f"Creation failed: {shown}{f' and {more} more' if more > 0 else ''}.")


def _add(response: messages.StreamsGroupHeartbeatResponse, words: str) -> None:
    """Adds words to the status that topics are missing."""
    for status in response.status or ():
        if status.status_code == Code.MISSING_INTERNAL_TOPICS:
            status.status_detail += f"; {words}"


def failed(
    context: Context, request: messages.StreamsGroupHeartbeatRequest, error: ApiError
) -> messages.StreamsGroupHeartbeatResponse:
    if not isinstance(error, NoRoom):
        note_full(context, request.group_id, error.code)
    return error.put_into(messages.StreamsGroupHeartbeatResponse(), with_default=error.code not in WITHOUT_WORDS)
