"""Produce, versions 3 to 13: appends one record batch per partition.

**Behaviour**
- A partition that is named several times gets the records that are given for it last.
- Records that are no batch at all refuse all of a request, and part of a batch behind a whole one is dropped.
- Partitions that the client may not use, those that do not exist, and those whose records are no batch, come last in a
  reply, in this order.
- acks=0 gets no reply; an error then closes the connection.
- acks=all waits for the high watermark, at most `timeout.ms`; the records stay in the log after a timeout.
- Records are decompressed only if the batch header gives a reason (`storage.validation`). Batches that take long are
  decompressed in steps, so that the event loop continues.
- A batch may decompress to at most 32 times its size or 32 MiB, whichever is more (Kafka: 2 GiB).
- The first batch of a transaction in a partition waits until the transaction coordinator has verified it (KIP-890).

**Versions**
- 0 to 2 are listed but refused, as in Kafka
- 3 record batches (KIP-98)
- 5 log start offset
- 7 zstd (KIP-110)
- 8 errors of single records (KIP-467)
- 9 flexible
- 10 the new leader (KIP-951)
- 11, 12 transactions version 2 (KIP-890); from 12 on partitions are added to the transaction implicitly
- 13 topic ids (KIP-516)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages, records
from ...protocol.errors import ApiError, Errors
from ...storage import validation
from ...storage.producers import Verification
from ..error_places import Place, Text, array, codes
from ..error_replies import answers_with_error
from ..later import Later, Steps
from ..net.context import Context
from ..replica.appender import Batch
from ..replica.opening import many_unopened, open_in_steps
from ..replica.partition import Partition
from ..replies import CLOSE, NO_REPLY, Silence
from ..security.authorization import Check, Refusal
from ..steps import STEP_ELEMENTS, Pace, TooLong, opened_in_steps, slices
from ._produce_appends import TOPIC_IDS_SINCE, Appending, answered_when_reached, find, is_transactional
from ._produce_order import SMALL, add_refused
from ._produce_verification import Verifications
from ._repeated_produces import note

if TYPE_CHECKING:
    Topic = messages.ProduceRequest.TopicProduceData
    Wanted = messages.ProduceRequest.PartitionProduceData
    Answer = messages.ProduceResponse.PartitionProduceResponse
    Reply = messages.ProduceResponse | Silence
    Outcome = Reply | Later[Reply] | Steps[Reply]

TRANSACTIONS = Check(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id", Refusal.IN_HANDLER)
TOPICS = Check(Operation.WRITE, ResourceType.TOPIC, "topic_data.name", Refusal.ELEMENT)
AUTHORIZATION = (TRANSACTIONS, TOPICS)
PARTITIONS = Place(
    "each partition",
    codes(
        "CORRUPT_MESSAGE UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT "
        "MESSAGE_TOO_LARGE INVALID_TOPIC_EXCEPTION RECORD_LIST_TOO_LARGE NOT_ENOUGH_REPLICAS "
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND INVALID_REQUIRED_ACKS TOPIC_AUTHORIZATION_FAILED "
        "CLUSTER_AUTHORIZATION_FAILED INVALID_TIMESTAMP UNSUPPORTED_VERSION UNSUPPORTED_FOR_MESSAGE_FORMAT "
        "OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER INVALID_PRODUCER_EPOCH INVALID_TXN_STATE "
        "INVALID_PRODUCER_ID_MAPPING CONCURRENT_TRANSACTIONS TRANSACTIONAL_ID_AUTHORIZATION_FAILED "
        "KAFKA_STORAGE_ERROR UNKNOWN_PRODUCER_ID UNSUPPORTED_COMPRESSION_TYPE INVALID_RECORD "
        "PRODUCER_FENCED UNKNOWN_TOPIC_ID TRANSACTION_ABORTABLE"
    ),
    (
        array("responses", "topic_data", topic="name", topic_id="topic_id"),
        array("partition_responses", "partition_data", partition="index"),
    ),
    others=(("base_offset", -1),),
    text=Text.OWN,
)
ERRORS = (PARTITIONS,)


async def narrowed(context: Context, request: messages.ProduceRequest) -> Callable[[Reply], Reply] | None:
    names = context.broker.image.topic_names
    by_id = context.version >= TOPIC_IDS_SINCE

    def name_of(topic: Topic) -> str | None:
        return names.get(bytes(topic.topic_id)) if by_id else topic.name

    if _has_transactional(request) and not _may_use_transaction(context, request):
        return None  # `handle` refuses the request as a whole
    allowed, refused = await TOPICS.parted(context, request.topic_data, name_of)
    if not refused:
        return None
    error = _unreadable(request)
    if error is not None:  # Kafka looks at batches before it asks for rights
        request.topic_data = _last_of_each(request.topic_data)
        raise error
    allowed, refused = _last_of_each(allowed), _last_of_each(refused)
    request.topic_data = allowed
    count = sum(len(topic.partition_data) for topic in (*allowed, *refused))
    tried = _tried(context, allowed) if count <= SMALL else 0  # more are not in this order

    def complete(response: Reply) -> Reply:
        if isinstance(response, Silence):
            return CLOSE
        answers = _errors(context, refused, ApiError(TOPICS.code))
        if count > STEP_ELEMENTS:
            response.responses += answers
        else:
            add_refused(context, response, answers, tried)
        return response

    return complete


def _tried(context: Context, topics: Iterable[Topic]) -> int:
    """Returns how many partitions are there and have a batch."""
    return sum(
        _existing(context, topic, wanted.index) is not None and _batch_of(context, wanted) is not None
        for topic in topics
        for wanted in topic.partition_data
    )


def handle(context: Context, request: messages.ProduceRequest) -> Outcome:
    if context.broker.replicas.opening:
        unopened = many_unopened(one for topic in request.topic_data for one in _partitions(context, topic))
        if unopened:
            return _when_open(context, request, unopened)
    note(context, request)
    return _handle(context, request)


def _partitions(context: Context, topic: Topic) -> Iterator[Partition | None]:
    broker = context.broker
    name = topic.name if context.version < TOPIC_IDS_SINCE else broker.image.topic_names.get(topic.topic_id)
    return (broker.partitions.by_name.get((name or "", wanted.index)) for wanted in topic.partition_data)


async def _when_open(context: Context, request: messages.ProduceRequest, unopened: list[Partition]) -> Reply:
    _keep_records(wanted for topic in request.topic_data for wanted in topic.partition_data)
    await open_in_steps(context.broker.turn, unopened)
    return await _finished(_handle(context, request))


def _handle(context: Context, request: messages.ProduceRequest) -> Outcome:
    topics = request.topic_data
    if len(topics) != 1 or len(topics[0].partition_data) != 1:
        request.topic_data = _last_of_each(topics)
        error = _unreadable(request)
        if error is not None:
            return failed(context, request, error)
    if _has_transactional(request):
        return _in_transaction(context, request)
    count = 0
    for topic in request.topic_data:
        count += len(topic.partition_data)
    return _append_all(context, request, {}) if count <= STEP_ELEMENTS else _append_in_steps(context, request)


def _last_of_each(named: Iterable[Topic]) -> list[Topic]:
    """Returns each partition once, with the records that are given for it last, and no topic without partitions: Kafka
    puts them into a table.
    """
    topics: dict[tuple[str, bytes], Topic] = {}
    for topic in named:
        if not topic.partition_data:
            continue
        first = topics.setdefault((topic.name, bytes(topic.topic_id)), topic)
        if first is not topic:
            first.partition_data = [*first.partition_data, *topic.partition_data]
    for topic in topics.values():
        last = {wanted.index: wanted for wanted in topic.partition_data}
        if len(last) < len(topic.partition_data):
            topic.partition_data = list(last.values())
    return list(topics.values())


def _unreadable(request: messages.ProduceRequest) -> ApiError | None:
    """Returns the error of the first records that are no batch at all. Kafka refuses all of a request with it, if it
    comes to it while it looks for a batch of a transaction.
    """
    for topic in request.topic_data:
        for wanted in topic.partition_data:
            error = None if wanted.records is None else validation.unreadable(wanted.records)
            if error is not None:
                return error
            if is_transactional(wanted.records):
                return None
    return None


def _append_all(
    context: Context,
    request: messages.ProduceRequest,
    verified: dict[int, Verification | ApiError],
) -> Outcome:
    """Appends all batches that can be appended at once. `verified`: the verifications of first batches of transactions,
    by `id()` of the partition data in the request.
    """
    response = messages.ProduceResponse()
    appending = Appending(context, request, verified)
    for topic in request.topic_data:
        out = messages.ProduceResponse.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        response.responses.append(out)
        for wanted in topic.partition_data:
            try:
                answer = appending.one(topic, wanted)
            except TooLong:
                answer = messages.ProduceResponse.PartitionProduceResponse(index=wanted.index, base_offset=-1)
                appending.long.append((out.partition_responses, len(out.partition_responses), topic, wanted))
            out.partition_responses.append(answer)
    if appending.long:
        return _append_long(context, request, response, appending)
    return answered_when_reached(context, request, response, appending)


async def _append_long(
    context: Context,
    request: messages.ProduceRequest,
    response: messages.ProduceResponse,
    appending: Appending,
) -> Reply:
    """Appends the batches whose records take long to decompress, one after the other and in steps."""
    _keep_records(wanted for _, _, _, wanted in appending.long)
    for answers, place, topic, wanted in appending.long:
        opened: Batch | ApiError
        try:
            at = validation.single_batch(wanted.records, context.version)
            opened = await opened_in_steps(
                context.broker.turn,
                context.broker.appender.open_batch(find(context, topic, wanted.index), wanted.records, at),
            )
        except ApiError as error:
            opened = error
        answers[place] = appending.one(topic, wanted, opened)
    outcome = answered_when_reached(context, request, response, appending)
    return await _finished(outcome)


async def _append_in_steps(context: Context, request: messages.ProduceRequest) -> Reply:
    """Like `_append_all`, but some partitions per step; acks=all waits for all of them at the end."""
    _keep_records(wanted for topic in request.topic_data for wanted in topic.partition_data)
    pace = Pace(context.broker.turn)
    outcomes: list[Reply | Later[Reply]] = []
    for step in slices([(topic, wanted) for topic in request.topic_data for wanted in topic.partition_data]):
        outcome = _append_all(context, _with(request, step), {})
        outcomes.append(outcome if isinstance(outcome, (messages.ProduceResponse, Silence, Later)) else await outcome)
        if pace.is_over(len(step)):
            await pace.rest()
    if request.acks == 0:
        return CLOSE if CLOSE in outcomes else NO_REPLY
    response = messages.ProduceResponse()
    topics: dict[tuple[str, bytes], messages.ProduceResponse.TopicProduceResponse] = {}
    for outcome in outcomes:
        part = await _finished(outcome)
        assert not isinstance(part, Silence)  # which only answers acks=0
        response.node_endpoints = response.node_endpoints or part.node_endpoints
        for topic in part.responses:
            first = topics.setdefault((topic.name, bytes(topic.topic_id)), topic)
            if first is not topic:
                first.partition_responses += topic.partition_responses
    response.responses = list(topics.values())
    await pace.rest()  # such a reply takes a while to encode
    return response


def _with(request: messages.ProduceRequest, parts: Sequence[tuple[Topic, Wanted]]) -> messages.ProduceRequest:
    """Returns the same request with only some of its partitions."""
    r = messages.ProduceRequest
    topics: dict[int, Topic] = {}
    for topic, wanted in parts:
        part = topics.get(id(topic))
        if part is None:
            part = topics[id(topic)] = r.TopicProduceData(name=topic.name, topic_id=topic.topic_id)
        part.partition_data.append(wanted)
    return r(
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=list(topics.values()),
    )


def _keep_records(parts: Iterable[Wanted]) -> None:
    """Copies the records of some partitions, because the connection reuses its buffer once the handler waits."""
    for wanted in parts:
        if wanted.records is not None:
            wanted.records = memoryview(bytearray(wanted.records))


# transactions


def _has_transactional(request: messages.ProduceRequest) -> bool:
    for topic in request.topic_data:
        for wanted in topic.partition_data:
            if is_transactional(wanted.records):
                return True
    return False


def _may_use_transaction(context: Context, request: messages.ProduceRequest) -> bool:
    return request.transactional_id is not None and TRANSACTIONS.allows(context, request.transactional_id)


def _in_transaction(context: Context, request: messages.ProduceRequest) -> Outcome:
    """Appends batches whose transaction is open in their partition;
    asks the transaction coordinator first about other batches.
    """
    transactional_id = request.transactional_id
    if transactional_id is None or not _may_use_transaction(context, request):
        return failed(context, request, ApiError(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    found = [
        (partition, wanted, at.header)
        for topic in request.topic_data
        for wanted in topic.partition_data
        if is_transactional(wanted.records)
        and (partition := _existing(context, topic, wanted.index)) is not None
        and (at := _batch_of(context, wanted)) is not None
        and at.header.producer_id >= 0  # without a producer there is no transaction
    ]
    if len({(header.producer_id, header.producer_epoch) for _, _, header in found}) > 1:
        text = "Transactional records contained more than one producer ID"
        return failed(context, request, ApiError(Errors.INVALID_PRODUCER_ID_MAPPING, text))
    verifications = Verifications(context)
    if not verifications.are_needed:
        return _append_all(context, request, {})
    for partition, wanted, header in found:
        try:
            verifications.begin(partition, id(wanted), header)
        except ApiError as error:
            verifications.found[id(wanted)] = ApiError(error.code)
    if not verifications.to_ask:
        return _append_all(context, request, verifications.found)
    _keep_records(wanted for topic in request.topic_data for wanted in topic.partition_data)
    return _append_verified(context, request, verifications, transactional_id, found[0][2])


def _existing(context: Context, topic: Topic, index: int) -> Partition | None:
    try:
        return find(context, topic, index)
    except ApiError:
        return None


def _batch_of(context: Context, wanted: Wanted) -> records.BatchAt | None:
    """Returns the batch for a partition, None if it is refused."""
    try:
        return validation.single_batch(wanted.records, context.version)
    except ApiError:
        return None


async def _append_verified(
    context: Context,
    request: messages.ProduceRequest,
    verifications: Verifications,
    transactional_id: str,
    header: records.BatchHeader,
) -> Reply:
    await verifications.ask(transactional_id, header)
    return await _finished(_append_all(context, request, verifications.found))


async def _finished(outcome: Outcome) -> Reply:
    return outcome if isinstance(outcome, (messages.ProduceResponse, Silence)) else await outcome


def failed(context: Context, request: messages.ProduceRequest, error: ApiError) -> Reply:
    """Returns a reply with the same error for every partition; with acks=0 the connection is closed."""
    if request.acks == 0:
        return CLOSE
    return messages.ProduceResponse(responses=_errors(context, request.topic_data, error))


def _errors(
    context: Context, topics: Iterable[Topic], error: ApiError
) -> list[messages.ProduceResponse.TopicProduceResponse]:
    return answers_with_error(context.api, context.version, PARTITIONS, topics, error)
