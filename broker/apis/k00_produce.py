"""Produce, versions 3 to 13: appends one record batch per partition.

3 record batches (KIP-98); 5 log start offset; 7 zstd (KIP-110); 8 record errors (KIP-467); 9 flexible; 10 the new leader
(KIP-951); 11 and 12 transactions of KIP-890; 13 topic ids (KIP-516). 0 to 2 are listed and refused.
The first batch of a transaction in a partition waits for the transaction's coordinator; version 12 and newer add the partition themselves.
acks=0 gets no reply; an error then ends the connection. acks=all waits for the high watermark, at most `timeout.ms`.
One record at a time takes 0.7 to 0.85 of the time that Kafka takes, by how Python was built: most of it is the kernel's.
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages, records
from ...protocol.errors import ApiError, Errors
from ...storage import validation
from ...storage.producers import Verification
from ...storage.validation import MAGIC_AT, InvalidRecords
from ..appending import append, verifies
from ..context import Context
from ..dispatch import CLOSE, NO_REPLY
from ..later import Later
from ..partition import Partition
from ..verification import PRODUCE_ABORTABLE_SINCE, PRODUCE_ADDS_SINCE, Mode, ask_coordinator, mode_of

TOPIC_IDS_SINCE = 13
LEADERS_SINCE = 10
WITHOUT_START_OFFSET = frozenset((Errors.NOT_LEADER_OR_FOLLOWER, Errors.MESSAGE_TOO_LARGE, Errors.CORRUPT_MESSAGE, Errors.KAFKA_STORAGE_ERROR))
ADMIN_CLIENT = "__admin_client"
TRANSACTIONAL_AT = 22  # the byte of a batch's attributes that has the bit
UNVERIFIABLE = frozenset((Errors.NETWORK_EXCEPTION, Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_COORDINATOR))


def handle(context: Context, request: Any) -> Any:
    for topic in request.topic_data:
        for wanted in topic.partition_data:
            if _is_transactional(wanted.records):
                return _in_transaction(context, request)
    return _append_all(context, request, {})


def _append_all(context: Context, request: Any, verified: dict[int, Verification | ApiError]) -> Any:
    """Appends what can be appended. `verified`: what is known of the first batches of transactions, by the identity of the request's parts."""
    acks = request.acks
    response = messages.ProduceResponse()
    waits: list[tuple[Partition, int, Any]] = []
    failed = False
    for topic in request.topic_data:
        out = messages.ProduceResponse.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        for wanted in topic.partition_data:
            answer, partition, end = _one(context, topic, wanted, acks, verified.get(id(wanted)))
            out.partition_responses.append(answer)
            if answer.error_code:
                failed = True
            elif acks == -1 and partition is not None:
                waits.append((partition, end, answer))
        response.responses.append(out)
    if acks == 0:
        return CLOSE if failed else NO_REPLY
    if failed and context.version >= LEADERS_SINCE:
        _name_leaders(context, response)
    if waits:
        context.broker.settle_moves()  # most high watermarks are there at once, and nothing needs to be parked
        waits = [(partition, end, answer) for partition, end, answer in waits if partition.high_watermark < end]
        if waits:
            return _wait(context, response, waits, request.timeout_ms)
    return response


def _one(context: Context, topic: Any, wanted: Any, acks: int, verified: Verification | ApiError | None) -> tuple[Any, Partition | None, int]:
    """The answer for one partition, and up to where acks=all has to wait. Kafka gives reasons for records, not for batches."""
    answer = messages.ProduceResponse.PartitionProduceResponse(index=wanted.index, base_offset=-1)
    try:
        partition = _find(context, topic, wanted.index)
        at = validation.single_batch(wanted.records if wanted.records is not None else b"", context.version)
        if acks not in (-1, 0, 1):
            raise ApiError(Errors.INVALID_REQUIRED_ACKS)
        if isinstance(verified, ApiError):
            raise verified
    except ApiError as error:
        answer.error_code, answer.error_message = error.code, error.message
        return answer, None, 0
    try:
        return answer, partition, append(context.broker, partition, wanted.records, at, acks, answer, verified)
    except InvalidRecords as error:
        answer.error_code, answer.error_message = error.code, error.text
        answer.log_start_offset = partition.start_offset
        answer.record_errors = [
            messages.ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text) for index, text in error.errors
        ]
    except ApiError as error:
        answer.error_code = error.code
        if error.code == Errors.NOT_LEADER_OR_FOLLOWER and context.version >= LEADERS_SINCE:
            answer.current_leader.leader_id, answer.current_leader.leader_epoch = context.node_id, partition.leader_epoch
        if error.code not in WITHOUT_START_OFFSET:
            answer.log_start_offset = partition.start_offset
    return answer, partition, 0


# transactions


def _is_transactional(data: Any) -> bool:
    return (
        data is not None
        and len(data) > TRANSACTIONAL_AT
        and bool(data[TRANSACTIONAL_AT] & records.TRANSACTIONAL_MASK)
        and data[MAGIC_AT] == records.MAGIC
    )


def _in_transaction(context: Context, request: Any) -> Any:
    """Batches whose transaction is open in their partition are appended; for others the coordinator is asked first."""
    if request.transactional_id is None:
        return _refused(request, Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None)
    headers = [
        (topic, wanted, records.header_at(wanted.records))
        for topic in request.topic_data
        for wanted in topic.partition_data
        if _is_transactional(wanted.records) and len(wanted.records) >= records.HEADER_SIZE
    ]
    if len({(header.producer_id, header.producer_epoch) for _, _, header in headers}) > 1:
        return _refused(request, Errors.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID")
    if context.version < PRODUCE_ADDS_SINCE and not verifies(context.broker):
        return _append_all(context, request, {})
    verified: dict[int, Verification | ApiError] = {}
    asked: dict[tuple[str, int], list[int]] = {}  # the parts of the request by their partition
    raises, now = context.version >= PRODUCE_ADDS_SINCE, context.broker.schedule.now_ms()
    for topic, wanted, header in headers:
        try:
            partition = _find(context, topic, wanted.index)
            producers = partition.open_log().producers
            found = producers.begin_verification(header.producer_id, header.producer_epoch, header.base_sequence, raises, now)
        except ApiError as error:
            verified[id(wanted)] = ApiError(error.code)
            continue
        if found is not None:
            verified[id(wanted)] = found
            asked.setdefault((partition.topic, partition.index), []).append(id(wanted))
    if not asked:
        return _append_all(context, request, verified)
    for topic in request.topic_data:
        for wanted in topic.partition_data:
            if wanted.records is not None:  # it is the connection's, for as long as nobody waits
                wanted.records = memoryview(bytearray(wanted.records))
    return _verify(context, request, verified, asked, headers[0][2])


async def _verify(
    context: Context, request: Any, verified: dict[int, Verification | ApiError], asked: dict[tuple[str, int], list[int]], header: Any
) -> Any:
    from ...coordinator.transaction.shard import Producer

    broker, config = context.broker, context.broker.config
    mode = mode_of(context.version, PRODUCE_ABORTABLE_SINCE, PRODUCE_ADDS_SINCE)
    producer = Producer(header.producer_id, header.producer_epoch)
    patience_ms = min(config["add.partitions.to.txn.retry.backoff.max.ms"], config["request.timeout.ms"])
    until_ms = broker.schedule.monotonic_ms() + patience_ms
    while True:
        refused = await ask_coordinator(broker, request.transactional_id, producer, asked.keys(), mode)
        ended = Errors.CONCURRENT_TRANSACTIONS in refused.values()  # the markers of the transaction before are being written
        if not ended or mode is not Mode.ADDS or broker.schedule.monotonic_ms() >= until_ms:
            break
        await broker.pause(config["add.partitions.to.txn.retry.backoff.ms"])
    for key, code in refused.items():
        for part in asked[key]:
            verified[part] = _unverified(code, mode)
    outcome = _append_all(context, request, verified)
    return await outcome if isinstance(outcome, Later) else outcome


def _unverified(code: int, mode: Mode) -> ApiError:
    """What a producer is told of a batch that was not verified."""
    if code == Errors.INVALID_TXN_STATE:
        return ApiError(code, "Partition was not added to the transaction")
    if code in UNVERIFIABLE or (code == Errors.CONCURRENT_TRANSACTIONS and mode is not Mode.ADDS):
        text = f"Unable to verify the partition has been added to the transaction. Underlying error: {Errors(code).name}"
        return ApiError(Errors.NOT_ENOUGH_REPLICAS, text)
    return ApiError(code)


def _refused(request: Any, code: int, text: str | None) -> Any:
    """The same error for everything."""
    if request.acks == 0:
        return CLOSE
    r = messages.ProduceResponse
    return r(
        responses=[
            r.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    r.PartitionProduceResponse(index=p.index, error_code=code, error_message=text, base_offset=-1, log_append_time_ms=-1)
                    for p in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def _find(context: Context, topic: Any, index: int) -> Partition:
    broker = context.broker
    if context.version >= TOPIC_IDS_SINCE:
        name = broker.image.topic_names.get(topic.topic_id)
        if name is None:
            raise ApiError(Errors.UNKNOWN_TOPIC_ID)
    else:
        name = topic.name
    partition = broker.partitions.by_name.get((name, index))
    if partition is None:
        raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
    if broker.is_internal(name) and context.client_id != ADMIN_CLIENT:
        raise ApiError(Errors.INVALID_TOPIC_EXCEPTION)
    return partition


def _wait(context: Context, response: Any, waits: list[tuple[Partition, int, Any]], timeout_ms: int) -> Later[Any]:
    """Finished when every partition's high watermark is there, or the time is over; the records stay either way."""
    outcome: Later[Any] = Later()
    left = len(waits)
    timer: list[Any] = []

    def reached(later: Later[None], answer: Any) -> None:
        nonlocal left
        left -= 1
        if isinstance(later.error, ApiError):
            answer.error_code = later.error.code
            answer.error_message = later.error.message
        if left == 0:
            for one in timer:
                one.cancel()
            outcome.finish(response)

    parked: list[tuple[Later[None], Any]] = []
    for partition, end, answer in waits:
        later = partition.wait_for(end)
        parked.append((later, answer))
        later.when_done(lambda done, answer=answer: reached(done, answer))  # type: ignore[misc]

    def over() -> None:
        for later, answer in parked:
            if not later.done:
                answer.error_code = int(Errors.REQUEST_TIMED_OUT)
                later.cancel()
        outcome.finish(response)

    if not outcome.done and any(p.follower.policy.kind != "immediate" or p.end_offset > p.leader_bound() for p, _, _ in waits):
        timer.append(context.broker.schedule.later(max(0, timeout_ms), lambda: context.broker.event(over)))

    def cancel() -> None:
        for later, _ in parked:
            later.cancel()
        for one in timer:
            one.cancel()

    outcome.on_cancel = cancel
    return outcome


def _name_leaders(context: Context, response: Any) -> None:
    """Tells clients that came to the wrong place where the leader is (KIP-951)."""
    from .k01_fetch import node_endpoints

    told = any(p.current_leader.leader_id >= 0 for t in response.responses for p in t.partition_responses)
    if told:
        response.node_endpoints = node_endpoints(context, messages.ProduceResponse.NodeEndpoint)
