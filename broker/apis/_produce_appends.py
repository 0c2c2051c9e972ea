"""Appends the batches of a Produce request, one per partition, and makes the parts of its reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import messages, records
from ...protocol.buffers import Data
from ...protocol.errors import ApiError, Errors
from ...storage import validation
from ...storage.producers import Verification
from ...storage.validation import InvalidRecords
from ..internal_topics import is_internal
from ..later import Later
from ..net.context import Context
from ..net.produce_waits import Wait, wait
from ..replica.appender import Batch, Gathering
from ..replica.partition import Partition
from ..replies import CLOSE, NO_REPLY, Silence
from ..steps import STEPS_AT_ONCE, Allowance
from ._nodes import node_endpoints
from ._produce_order import APPENDED, INVALID, MISSING, UNVERIFIED, put_in_order

if TYPE_CHECKING:
    Topic = messages.ProduceRequest.TopicProduceData
    Wanted = messages.ProduceRequest.PartitionProduceData
    Answer = messages.ProduceResponse.PartitionProduceResponse
    Reply = messages.ProduceResponse | Silence

TOPIC_IDS_SINCE = 13
LEADERS_SINCE = 10
WITHOUT_START_OFFSET = frozenset(
    (
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.MESSAGE_TOO_LARGE,
        Errors.RECORD_LIST_TOO_LARGE,
        Errors.CORRUPT_MESSAGE,
        Errors.KAFKA_STORAGE_ERROR,
    )
)
ADMIN_CLIENT = "__admin_client"
TRANSACTIONAL_AT = 22  # the byte of a batch's attributes that contains this bit


class Appending(Allowance):
    """The appends of one request, and its allowance of work per step."""

    __slots__ = ("context", "failed", "gathering", "long", "request", "tables", "verified", "waits")

    def __init__(
        self,
        context: Context,
        request: messages.ProduceRequest,
        verified: dict[int, Verification | ApiError],
        gathering: Gathering | None = None,
    ) -> None:
        """`gathering`: what its batch may be written together with."""
        self.left = STEPS_AT_ONCE
        self.context = context
        self.request = request
        self.verified = verified
        self.failed = False
        self.gathering = gathering
        self.tables: dict[int, int] = {}  # by `id()` of an answer, of those that are not APPENDED
        self.waits: list[Wait] = []
        # (list for the response part, its index, topic, partition data) of batches that take long
        self.long: list[tuple[list[Answer], int, Topic, Wanted]] = []

    def one(
        self,
        topic: Topic,
        wanted: Wanted,
        opened: Batch | ApiError | None = None,
        spare: Answer | None = None,
    ) -> Answer:
        """Returns the response for one partition. Kafka gives messages for records, not for batches. Raises TooLong if
        decompressing takes long. `spare`: a response without an error that is not needed any more, and is used again.
        """
        answer = spare if spare is not None else messages.ProduceResponse.PartitionProduceResponse()
        answer.index = wanted.index
        answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
        context, acks = self.context, self.request.acks
        data = wanted.records if wanted.records is not None else bytearray()
        table = MISSING
        try:
            partition = find(context, topic, wanted.index)
            table = INVALID
            at = validation.single_batch(data, context.version)
            if at.header.size < len(data):  # what is left is no batch
                wanted.records = data = data[: at.header.size]
            verified = self.verified.get(id(wanted)) if self.verified else None
            table = UNVERIFIED
            if isinstance(verified, ApiError) and verified.code != Errors.NOT_LEADER_OR_FOLLOWER:
                raise verified
            table = APPENDED
            if acks not in (-1, 0, 1):
                raise ApiError(Errors.INVALID_REQUIRED_ACKS)
            if is_internal(partition.topic) and context.client_id != ADMIN_CLIENT:
                raise ApiError(Errors.INVALID_TOPIC_EXCEPTION)
        except ApiError as error:
            told = (validation.unreadable(data) if table == MISSING and self._is_alone else None) or error
            told.put_into(answer, with_default=False)
            self.failed = True
            self.tables[id(answer)] = table
            return answer
        try:
            if isinstance(verified, ApiError):
                raise verified
            context.broker.partitions.check_led(partition)
            end = context.broker.appender.append(
                partition, data, at, acks, answer, verified, self, opened, self.gathering
            )
        except ApiError as error:
            self.failed = True
            self._refuse(partition, answer, error)
        else:
            if acks == -1:
                self.waits.append((partition, end, answer))
        return answer

    @property
    def _is_alone(self) -> bool:
        """Whether the request is for one partition; the handler looks for unreadable records in all others."""
        topics = self.request.topic_data
        return len(topics) == 1 and len(topics[0].partition_data) == 1

    def unreached(self) -> list[Wait]:
        """Advances high watermarks, which most appends reach at once, so that the reply need not be parked. Returns the
        waits for the others.
        """
        if not self.waits:
            return []
        self.context.broker.turn.settle_moves()
        return [(partition, end, answer) for partition, end, answer in self.waits if partition.high_watermark < end]

    def refused(self, partition: Partition, index: int, error: ApiError) -> Answer:
        """Returns the response for a partition whose batch was gathered, and could not be written."""
        answer = messages.ProduceResponse.PartitionProduceResponse(index=index, base_offset=-1)
        self.failed = True
        self.waits.clear()
        self._refuse(partition, answer, error)
        return answer

    def _refuse(self, partition: Partition, answer: Answer, error: ApiError) -> None:
        answer.error_code = error.code
        self.context.broker.limits.note(error, partition.name)
        if isinstance(error, InvalidRecords):
            answer.error_message = error.message_or_default
            answer.log_start_offset = partition.start_offset
            answer.record_errors = [
                messages.ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
                for index, text in error.errors
            ]
            return
        context = self.context
        if error.code == Errors.NOT_LEADER_OR_FOLLOWER and context.version >= LEADERS_SINCE:
            leader = context.broker.partitions.known_leader(partition)
            answer.current_leader.leader_id, answer.current_leader.leader_epoch = leader
        if error.code not in WITHOUT_START_OFFSET:
            answer.log_start_offset = partition.start_offset


def answered_when_reached(
    context: Context,
    request: messages.ProduceRequest,
    response: messages.ProduceResponse,
    appending: Appending,
) -> Reply | Later[Reply]:
    """Returns the reply, or what completes with the reply when the high watermarks are reached."""
    if request.acks == 0:
        return CLOSE if appending.failed else NO_REPLY
    if appending.failed:
        put_in_order(context, response, appending.tables)
        if context.version >= LEADERS_SINCE:
            _name_leaders(context, response)
    waits = appending.unreached()
    return wait(context, response, waits, request.timeout_ms) if waits else response


def is_transactional(data: Data | None) -> bool:
    return (
        data is not None
        and len(data) > TRANSACTIONAL_AT
        and bool(data[TRANSACTIONAL_AT] & records.TRANSACTIONAL_MASK)
        and data[records.MAGIC_AT] == records.MAGIC
    )


def find(context: Context, topic: Topic, index: int) -> Partition:
    broker = context.broker
    if context.version >= TOPIC_IDS_SINCE:
        name = broker.image.topic_names.get(topic.topic_id)
        if name is None:
            raise ApiError(Errors.UNKNOWN_TOPIC_ID)
    else:
        name = topic.name
    return broker.partitions.get(name, index)


def _name_leaders(context: Context, response: messages.ProduceResponse) -> None:
    """Adds the endpoints of the leaders for clients that sent to a broker that is not the leader (KIP-951)."""
    leaders = (p.current_leader.leader_id for t in response.responses for p in t.partition_responses)
    response.node_endpoints = node_endpoints(context, messages.ProduceResponse.NodeEndpoint, leaders)
