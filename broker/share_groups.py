"""Calls from the group coordinator to the share coordinator, and the results that go back (KIP-932): what a heartbeat
begins, and what administrators ask for by the protocol or by the lab.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from ..coordinator.group.ids import kafka_uuid
from ..coordinator.group.share import share_partitions
from ..coordinator.share.state import PartitionKey
from ..protocol import messages
from ..protocol.errors import ApiError, Errors
from .later import Later
from .retrying import backoffs_ms
from .share.persister import RETRIABLE
from .steps import Pace

if TYPE_CHECKING:
    from ..coordinator.group.share.heartbeat import Unset
    from .broker import Broker

T = TypeVar("T")
logger = logging.getLogger("ottla.org.apache.kafka.coordinator.group.GroupCoordinatorService")
STEP_KEYS = 16  # share-partitions for which calls are made before the loop runs: each is a write of the coordinator
Failures = dict[tuple[bytes, int], ApiError]
"""the errors by topic id and partition"""


async def each(
    broker: Broker,
    keys: Iterable[PartitionKey],
    call: Callable[[PartitionKey], Later[T]],
    pace: Pace | None = None,
) -> tuple[dict[PartitionKey, T], Failures]:
    """Makes a call of `Persister.once` for every share-partition, for those of a step at once; returns results and
    errors. `keys` are distinct, and taken some in each step.

    Share-partitions whose coordinator is not available are tried again together, after one wait. `pace`: of a request
    that makes calls for many groups or topics, one after another.
    """
    results: dict[PartitionKey, T] = {}
    errors: Failures = {}
    left, pace = iter(keys), pace or Pace(broker.turn, STEP_KEYS)
    await broker.share_partitions.persister.prepare()
    for backoff_ms in backoffs_ms():
        again: list[PartitionKey] = []
        while step := list(islice(left, STEP_KEYS)):
            outcomes: list[T | ApiError] = await Later.all([call(key) for key in step])
            for key, outcome in zip(step, outcomes, strict=True):
                if not isinstance(outcome, ApiError):
                    results[key] = outcome
                elif backoff_ms is not None and outcome.code in RETRIABLE:
                    again.append(key)
                else:
                    errors[key.topic_id, key.partition] = outcome
            if pace.is_over(len(step)):
                await pace.rest()
        if not again or backoff_ms is None:
            break
        left = iter(again)
        await broker.turn.pause(backoff_ms)
    return results, errors


def keys_of(group_id: str, topics: Mapping[bytes, Iterable[int]]) -> Iterator[PartitionKey]:
    """Yields the share-partitions of a group, each once."""
    for topic_id, partitions in topics.items():
        for index in sorted(set(partitions)):
            yield PartitionKey(group_id, topic_id, index)


async def initialize(broker: Broker, unset: Unset) -> None:
    """Initializes the share-partitions that a heartbeat found without state, and records the outcome in the group."""
    partitions = {topic: of for topic, (of, _) in unset.topics.items()}
    starts = {topic: start for topic, (_, start) in unset.topics.items()}

    def call(key: PartitionKey) -> Later[None]:
        return broker.share_partitions.persister.once.initialize(key, unset.state_epoch, starts[key.topic_id])

    if sum(map(len, partitions.values())) > STEP_KEYS:
        await broker.turn.next()  # the heartbeat has gone through all of them
    _, errors = await each(broker, keys_of(unset.group_id, partitions), call)
    try:
        await note_initialized(broker, unset.group_id, partitions, errors)
    except ApiError as error:
        logger.warning("share group %s: cannot record its share-partitions as initialized: %s", unset.group_id, error)


async def note_initialized(
    broker: Broker,
    group_id: str,
    partitions: Mapping[bytes, frozenset[int]],
    errors: Failures,
) -> None:
    """Second step of an initialization: records in the group
    that its share-partitions have a state. Raises ApiError.
    """
    if errors:
        logger.warning(
            "share group %s: some share-partitions were not initialized: %s", group_id, next(iter(errors.values()))
        )
    note = share_partitions.uninitialized if errors else share_partitions.initialized
    await broker.groups.write(
        group_id,
        "uninitialize-share-partitions" if errors else "initialize-share-partitions",
        lambda shard: note(shard, group_id, partitions),
    )


async def delete_states(broker: Broker, group_id: str, topics: Mapping[bytes, frozenset[int]]) -> Failures:
    """Deletes the state of share-partitions at the share coordinator; returns the errors. As in Kafka, all fail where
    a partition is below 0, or a topic has no partitions.
    """
    if any(min(of, default=-1) < 0 for of in topics.values()):
        error = ApiError(Errors.UNKNOWN_SERVER_ERROR)
        return {(topic, index): error for topic, of in topics.items() for index in of}
    _, errors = await each(broker, keys_of(group_id, topics), broker.share_partitions.persister.once.delete)
    return errors


async def alter_offsets(
    broker: Broker, request: messages.AlterShareGroupOffsetsRequest
) -> messages.AlterShareGroupOffsetsResponse:
    """Sets start offsets of a group without members. Raises ApiError."""
    response, epoch, offsets = await broker.groups.write(
        request.group_id, "alter-share-group-offsets", lambda shard: share_partitions.alter(shard, request)
    )
    persister = broker.share_partitions.persister.once
    _check_numbers(request.group_id, offsets)
    _, errors = await each(
        broker,
        keys_of(request.group_id, offsets),
        lambda key: persister.initialize(key, epoch, offsets[key.topic_id][key.partition]),
    )
    if not errors and offsets:
        await note_initialized(
            broker, request.group_id, {topic: frozenset(of) for topic, of in offsets.items()}, errors
        )
    for topic in response.responses:
        for partition in topic.partitions:
            failed = errors.get((bytes(topic.topic_id), partition.partition_index))
            if failed is not None:
                failed.put_into(partition)
    return response


def _check_numbers(group_id: str, topics: Mapping[bytes, Iterable[int]]) -> None:
    """Raises ApiError(UNKNOWN_SERVER_ERROR) for a partition below 0, as Kafka's share coordinator does."""
    for topic_id, partitions in topics.items():
        if any(index < 0 for index in partitions):
            place = f"{group_id} {kafka_uuid(topic_id)} {min(partitions)}"
            words = f"Initialize share group parameters has invalid partitionId - {place}"
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR, words)


async def delete_offsets(
    broker: Broker, request: messages.DeleteShareGroupOffsetsRequest
) -> messages.DeleteShareGroupOffsetsResponse:
    """Deletes topics of a group without members. Raises ApiError."""
    r = messages.DeleteShareGroupOffsetsResponse
    refused, wanted = await broker.groups.write(
        request.group_id,
        "initiate-delete-share-group-offsets",
        lambda shard: share_partitions.begin_delete(shard, request),
    )
    errors = await delete_states(broker, request.group_id, wanted)
    names = {topic: broker.groups.image.topic_name(topic) or "" for topic in wanted}
    failed = {topic: error for (topic, _), error in errors.items()}
    done = {topic: name for topic, name in names.items() if topic not in failed}
    results = []
    if done:
        results = await broker.groups.write(
            request.group_id,
            "complete-delete-share-group-offsets",
            lambda shard: share_partitions.complete_delete(shard, request.group_id, done),
        )
    for topic, why in failed.items():
        refused.append(why.put_into(r.DeleteShareGroupOffsetsResponseTopic(topic_name=names[topic], topic_id=topic)))
    return r(responses=results + refused)
