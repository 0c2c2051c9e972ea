"""ListOffsets, versions 1 to 11: returns the offset for a timestamp,
or for a special timestamp such as earliest or latest.

**Behaviour**
- Topics and partitions are in the order of Kafka's hash tables, each once.
- To replicas, whoever says that it is one, the log has no high watermark and no last stable offset.
- An isolation level that does not exist is an unknown error of each partition.
- Requests about remote storage return no offset, as in a Kafka without remote storage.

**Versions**
- 2 isolation level (KIP-98)
- 4 leader epochs (KIP-320)
- 6 flexible
- 7 largest timestamp (KIP-734)
- 8 earliest local offset (KIP-405)
- 9 latest tiered offset (KIP-1005)
- 10 timeout for remote storage (KIP-1075)
- 11 earliest pending upload (KIP-1023)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from operator import itemgetter

from ...coordinator.scala_tables import buckets_for, hash_in_trie, partition_hash, place_in_table, trie_order
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...storage import timestamps
from ...storage.log import Log
from ...storage.timestamps import FoundOffset
from ..error_places import Place, array, codes
from ..error_replies import answers_with_error
from ..net.context import Context
from ..replica.opening import many_unopened, open_in_steps
from ..replica.partition import ISOLATION_LEVELS, Partition
from ..security.authorization import Check, Refusal
from ..steps import Allowance, Pace, TooLong, Work, at_once, opened_in_steps

TOPICS = Check(Operation.DESCRIBE, ResourceType.TOPIC, "topics.name", Refusal.ELEMENT)
AUTHORIZATION = (TOPICS,)


LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
NOT_FOUND = FoundOffset(-1, -1, -1)
EPOCHS_SINCE = 4
CONSUMER, DEBUGGER = -1, -2  # replica ids of who is no replica
PARTITIONS = Place(
    "each partition",
    codes(
        "CORRUPT_MESSAGE UNKNOWN_TOPIC_OR_PARTITION LEADER_NOT_AVAILABLE NOT_LEADER_OR_FOLLOWER "
        "REQUEST_TIMED_OUT REPLICA_NOT_AVAILABLE TOPIC_AUTHORIZATION_FAILED UNSUPPORTED_VERSION "
        "INVALID_REQUEST UNSUPPORTED_FOR_MESSAGE_FORMAT KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH "
        "UNKNOWN_LEADER_EPOCH OFFSET_NOT_AVAILABLE"
    ),
    (
        array("topics", "topics", topic="name"),
        array("partitions", "partitions", partition="partition_index"),
    ),
)
ERRORS = (PARTITIONS,)


async def narrowed(
    context: Context, request: messages.ListOffsetsRequest
) -> Callable[[messages.ListOffsetsResponse], messages.ListOffsetsResponse] | None:
    request.topics, refused = await TOPICS.parted(context, request.topics)

    def complete(response: messages.ListOffsetsResponse) -> messages.ListOffsetsResponse:
        response.topics += answers_with_error(context.api, context.version, PARTITIONS, refused, ApiError(TOPICS.code))
        return response

    return complete if refused else None


async def handle(context: Context, request: messages.ListOffsetsRequest) -> messages.ListOffsetsResponse:
    if request.isolation_level not in ISOLATION_LEVELS:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    r, pace, allowance = messages.ListOffsetsResponse, Pace(context.broker.turn), Allowance()
    counts = Counter((t.name, p.partition_index) for t in request.topics for p in t.partitions)
    if context.broker.replicas.opening:
        await open_in_steps(context.broker.turn, many_unopened(map(context.broker.partitions.by_name.get, counts)))
    topics: dict[str, dict[int, messages.ListOffsetsRequest.ListOffsetsPartition]] = {}
    hashes: dict[str, int] = {}
    for topic in request.topics:
        if topic.partitions:
            topics.setdefault(topic.name, {}).update((p.partition_index, p) for p in topic.partitions)
            hashes[topic.name] = hash_in_trie(topic.name)
        if pace.is_over(1 + len(topic.partitions)):
            await pace.rest()
    response = r()
    for name in trie_order(hashes):
        found: list[tuple[int, messages.ListOffsetsResponse.ListOffsetsPartitionResponse]] = []
        size = buckets_for(len(topics[name]))
        for index, wanted in topics[name].items():
            answer = r.ListOffsetsPartitionResponse(partition_index=index)
            try:
                if counts[name, index] > 1:
                    raise ApiError(Errors.INVALID_REQUEST)
                _tell(context, answer, await _found(context, request, name, wanted, allowance))
            except ApiError as error:
                answer.error_code = error.code
            except OSError as failure:
                answer.error_code = context.broker.log_directories.storage_error(failure).code
            found.append((place_in_table(partition_hash(name, index), size), answer))
            if pace.is_over():
                await pace.rest()
        found.sort(key=itemgetter(0))
        response.topics.append(r.ListOffsetsTopicResponse(name=name, partitions=[answer for _, answer in found]))
    return response


async def _found(
    context: Context,
    request: messages.ListOffsetsRequest,
    topic: str,
    wanted: messages.ListOffsetsRequest.ListOffsetsPartition,
    allowance: Allowance,
) -> FoundOffset:
    """Returns the response for a partition; waits only if decompressing a batch takes long. Raises ApiError."""
    found = _find(context, request, topic, wanted)
    if isinstance(found, FoundOffset):
        return found
    try:
        return at_once(found, allowance)
    except TooLong:
        again = _find(context, request, topic, wanted)
        return again if isinstance(again, FoundOffset) else await opened_in_steps(context.broker.turn, again)


def _tell(
    context: Context,
    answer: messages.ListOffsetsResponse.ListOffsetsPartitionResponse,
    found: FoundOffset,
) -> None:
    answer.timestamp, answer.offset = found.timestamp, found.offset
    if context.version >= EPOCHS_SINCE:
        answer.leader_epoch = found.leader_epoch


def _find(
    context: Context,
    request: messages.ListOffsetsRequest,
    topic: str,
    wanted: messages.ListOffsetsRequest.ListOffsetsPartition,
) -> FoundOffset | Work[FoundOffset]:
    """Returns the response for a partition, or the work of finding it in the log. Raises ApiError."""
    timestamp = wanted.timestamp
    if timestamp < 0 and context.version < SINCE.get(timestamp, 1 if timestamp >= EARLIEST else 2**15):
        raise ApiError(Errors.UNSUPPORTED_VERSION)
    partitions = context.broker.partitions
    partition = partitions.get(topic, wanted.partition_index)
    reach = partitions.check_read(partition, wanted.current_leader_epoch, may_follow=request.replica_id == DEBUGGER)
    log = partition.open_log()
    if request.replica_id != CONSUMER:
        end = log.end_offset if reach is None else reach.end
    else:
        end = partition.read_limit(request.isolation_level)[0]
        if reach is not None:  # of a leader that is cut off
            end = min(end, reach.high_watermark)
    if timestamp == LATEST:
        return FoundOffset(-1, end, partitions.known_leader(partition)[1])
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return FoundOffset(-1, log.start_offset, _epoch_at(partition, log.start_offset))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOT_FOUND
    return _search(log, timestamp, end)


def _search(log: Log, timestamp: int, end: int) -> Work[FoundOffset]:
    steps = timestamps.largest(log) if timestamp == MAX_TIMESTAMP else timestamps.first_from(log, timestamp)
    found = yield from steps
    return NOT_FOUND if found is None or found.offset >= end else found


def _epoch_at(partition: Partition, offset: int) -> int:
    epochs = partition.open_log().epochs
    return epochs.epoch_at(offset) if epochs.entries and epochs.entries[0][1] <= offset else -1
