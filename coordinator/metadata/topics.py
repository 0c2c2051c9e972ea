"""Topics: creation, deletion, more partitions. The controller's handlers, with Kafka's codes and words (ReplicationControlManager)."""

from __future__ import annotations

import re
from typing import Any

from ...protocol import messages
from ...protocol.config_def import ConfigInvalid
from ...protocol.errors import ApiError, Errors
from ..shard import Result
from .configs import check_topic_config
from .controller import Controller
from .format import CLUSTER_METADATA
from .state import TOPIC, partition_record

PARTITIONS_PER_REQUEST = 10_000
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
NAME_LENGTH_MAX = 249


def check_name(name: str) -> None:
    """ApiError for a name that no topic may have."""
    reason = None
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    elif not LEGAL_NAME.fullmatch(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    if reason:
        raise ApiError(Errors.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def create_topics(controller: Controller, request: Any) -> Result:
    """The reply is a list of (topic, error or None, topic id, partitions, replication factor) in the request's order."""
    names = [t.name for t in request.topics]
    repeated = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    records: list[Any] = []
    reply: list[tuple[Any, ApiError | None, bytes, int, int]] = []
    budget = PARTITIONS_PER_REQUEST
    fresh: dict[str, str] = {}
    for topic in request.topics:
        if topic.name in repeated:
            if all(t.name != topic.name for t, *_ in reply):
                reply.append((topic, ApiError(Errors.INVALID_REQUEST, "Duplicate topic name."), bytes(16), -1, -1))
            continue
        try:
            made, topic_id, placed = _create(controller, topic, fresh, budget)
        except ApiError as error:
            reply.append((topic, error, bytes(16), -1, -1))
            continue
        budget -= len(placed)
        fresh[topic.name.replace(".", "_")] = topic.name
        records += made
        reply.append((topic, None, topic_id, len(placed), len(placed[0])))
    return Result([] if request.validate_only else records, reply)


def _create(controller: Controller, topic: Any, fresh: dict[str, str], budget: int) -> tuple[list[Any], bytes, list[list[int]]]:
    state, name = controller.state, topic.name
    if name == CLUSTER_METADATA:
        raise ApiError(Errors.INVALID_REQUEST, f"Creation of internal topic {CLUSTER_METADATA} is prohibited.")
    check_name(name)
    if name in state.topics:
        raise ApiError(Errors.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    _check_collision(state, name, fresh)
    try:
        configs = check_topic_config({c.name: c.value for c in topic.configs})
    except ConfigInvalid as error:
        raise ApiError(Errors.INVALID_CONFIG, str(error)) from None
    placed = _manual(controller, topic) if topic.assignments else _automatic(controller, topic, budget)
    topic_id = controller.new_id()
    records: list[Any] = [messages.TopicRecord(name=name, topic_id=topic_id)]
    records += [messages.ConfigRecord(resource_type=TOPIC, resource_name=name, name=key, value=value) for key, value in configs.items()]
    records += [partition_record(controller.new_partition(topic_id, i, replicas)) for i, replicas in enumerate(placed)]
    return records, topic_id, placed


def _check_collision(state: Any, name: str, fresh: dict[str, str]) -> None:
    if "." not in name and "_" not in name:
        return
    folded = name.replace(".", "_")
    other = fresh.get(folded) or next((t for t in state.topics if t.replace(".", "_") == folded), None)
    if other is not None:
        raise ApiError(Errors.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _automatic(controller: Controller, topic: Any, budget: int) -> list[list[int]]:
    count, factor = topic.num_partitions, topic.replication_factor
    if factor == 0 or factor < -1:
        raise ApiError(Errors.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0, or -1 to use the default value.")
    if count == 0 or count < -1:
        raise ApiError(Errors.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    count = controller.defaults.num_partitions if count == -1 else count
    factor = controller.defaults.replication_factor if factor == -1 else factor
    if count > budget:
        raise ApiError(Errors.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    _check_factor(controller, factor)
    return controller.place(count, factor)


def _check_factor(controller: Controller, factor: int) -> None:
    usable = controller.usable_brokers()
    if not usable:
        raise ApiError(
            Errors.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): All brokers are currently fenced.",
        )
    if factor > len(usable):
        raise ApiError(
            Errors.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} "
            f"cannot be reached because only {len(usable)} broker(s) are registered or some brokers "
            "have all their log directories cordoned.",
        )


def _manual(controller: Controller, topic: Any) -> list[list[int]]:
    if topic.replication_factor != -1:
        raise ApiError(Errors.INVALID_REQUEST, "A manual partition assignment was specified, but replication factor was not set to -1.")
    if topic.num_partitions != -1:
        raise ApiError(Errors.INVALID_REQUEST, "A manual partition assignment was specified, but numPartitions was not set to -1.")
    by_index: dict[int, list[int]] = {}
    factor: int | None = None
    for assignment in topic.assignments:
        if assignment.partition_index in by_index:
            raise ApiError(
                Errors.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {assignment.partition_index}",
            )
        check_assignment(controller, assignment.broker_ids, factor)
        factor = len(assignment.broker_ids)
        by_index[assignment.partition_index] = list(assignment.broker_ids)
    if sorted(by_index) != list(range(len(by_index))):
        raise ApiError(
            Errors.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [by_index[i] for i in range(len(by_index))]


def check_assignment(controller: Controller, replicas: list[int], factor: int | None) -> None:
    """ApiError for replicas that a partition cannot have."""
    if not replicas:
        raise ApiError(Errors.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes an empty replica list.")
    ordered = sorted(replicas)
    for before, broker_id in zip([None, *ordered], ordered, strict=False):
        if broker_id not in controller.state.brokers:
            raise ApiError(
                Errors.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered.",
            )
        if broker_id == before:
            raise ApiError(
                Errors.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes the broker {broker_id} more than once.",
            )
    if factor is not None and len(replicas) != factor:
        raise ApiError(
            Errors.INVALID_REPLICA_ASSIGNMENT,
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), "
            f"but this is not consistent with previous partitions, which have {factor} replica(s).",
        )


def delete_topics(controller: Controller, wanted: list[tuple[str | None, bytes]]) -> Result:
    """`wanted`: names or ids. The reply is a list of (name, id, error or None) in the same order."""
    state = controller.state
    records: list[Any] = []
    reply: list[tuple[str | None, bytes, ApiError | None]] = []
    gone: set[bytes] = set()
    for name, asked_id in wanted:
        topic_id = asked_id
        if name is not None:
            topic = state.topics.get(name)
            if topic is None or topic.id in gone:
                reply.append((name, topic_id, ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)))
                continue
            topic_id = topic.id
        elif topic_id not in state.topic_names or topic_id in gone:
            reply.append((None, topic_id, ApiError(Errors.UNKNOWN_TOPIC_ID)))
            continue
        gone.add(topic_id)
        records.append(messages.RemoveTopicRecord(topic_id=topic_id))
        reply.append((state.topic_names[topic_id], topic_id, None))
    return Result(records, reply)


def create_partitions(controller: Controller, request: Any) -> Result:
    """The reply is a list of (name, error or None) in the request's order."""
    names = [t.name for t in request.topics]
    records: list[Any] = []
    reply: list[tuple[str, ApiError | None]] = []
    for topic in request.topics:
        if names.count(topic.name) > 1:
            if all(name != topic.name for name, _ in reply):
                reply.append((topic.name, ApiError(Errors.INVALID_REQUEST, "Duplicate topic name.")))
            continue
        try:
            records += _more_partitions(controller, topic)
            reply.append((topic.name, None))
        except ApiError as error:
            reply.append((topic.name, error))
    return Result([] if request.validate_only else records, reply)


def _more_partitions(controller: Controller, topic: Any) -> list[Any]:
    state = controller.state
    known = state.topics.get(topic.name)
    if known is None:
        raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
    present = state.partition_counts[known.id]
    if topic.count == present:
        raise ApiError(Errors.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if topic.count < present:
        raise ApiError(
            Errors.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {topic.count} would not be an increase.",
        )
    more = topic.count - present
    if topic.assignments is not None and len(topic.assignments) != more:
        raise ApiError(
            Errors.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {more} additional partition(s), but only {len(topic.assignments)} assignment(s) were specified.",
        )
    if more > PARTITIONS_PER_REQUEST:
        raise ApiError(Errors.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    factor = len(state.partitions[known.id, 0].replicas)
    if topic.assignments is not None:
        placed = [list(a.broker_ids) for a in topic.assignments]
        for replicas in placed:
            check_assignment(controller, replicas, factor)
    else:
        _check_factor(controller, factor)
        placed = controller.place(more, factor, present)
    return [partition_record(controller.new_partition(known.id, present + n, r)) for n, r in enumerate(placed)]
