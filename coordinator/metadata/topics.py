"""Creation and deletion of topics and partitions: the controller's handlers,
with Kafka's codes and messages (ReplicationControlManager).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, TypeVar

from ...protocol import messages
from ...protocol.config_def import ConfigInvalid
from ...protocol.errors import ApiError, Errors
from ..hashing import java_order_steps
from ..shard import Decision, Result
from .configs import check_name, check_topic_config, known_to
from .controller import Controller, bounded
from .directories import takes_replicas
from .format import CLUSTER_METADATA
from .new_partitions import NewPartitions
from .state import TOPIC, MetadataState, folded_name

if TYPE_CHECKING:
    New = messages.CreateTopicsRequest.CreatableTopic
    More = messages.CreatePartitionsRequest.CreatePartitionsTopic
    # a topic, its error, its id, its number of partitions, its replication factor
    Created = tuple[New, ApiError | None, bytes, int, int]
    Named = TypeVar("Named", New, More)

Deleted = tuple[str | None, bytes, ApiError | None]
"""A topic's name and id, and its error."""
Mutate = Callable[[int], None]
"""Counts partitions that are created or deleted for a client's quota. Raises ApiError(THROTTLING_QUOTA_EXCEEDED)."""

PARTITIONS_PER_REQUEST = 10_000


def unlimited(partitions: int) -> None:
    """A `Mutate` without a quota."""


def create_topics(controller: Controller, topics: list[New], mutate: Mutate = unlimited) -> Decision[list[Created]]:
    """Creates topics. The reply is in their order, each name once, then those named twice, and the topic that nobody
    may create. Raises ApiError(POLICY_VIOLATION) for too many partitions or records.
    """
    each = _each_once(topics)
    repeated = {topic.name: (topic, True) for topic, is_repeated in each if is_repeated}
    last = yield from java_order_steps(repeated)
    once = [one for one in each if not one[1] and one[0].name != CLUSTER_METADATA]
    prohibited = [one for one in each if not one[1] and one[0].name == CLUSTER_METADATA]
    wanted = [*once, *(repeated[name] for name in last), *prohibited]
    _check_total(sum(_asked(controller, topic) for topic, _ in once), "partitions")
    records: list[messages.Struct | NewPartitions] = []
    reply: list[Created] = []
    for topic, is_repeated in wanted:
        yield
        if is_repeated:
            reply.append((topic, ApiError(Errors.INVALID_REQUEST, "Duplicate topic name."), bytes(16), -1, -1))
            continue
        try:
            made, topic_id, placed = yield from _create(controller, topic, mutate)
        except ApiError as error:
            reply.append((topic, error, bytes(16), -1, -1))
            continue
        records += made
        reply.append((topic, None, topic_id, len(placed), len(placed[0])))
    return bounded(Result(records, reply))


def _each_once(topics: list[Named]) -> list[tuple[Named, bool]]:
    """Returns the first topic of each name, and whether the name is repeated."""
    counts = Counter(topic.name for topic in topics)
    first: dict[str, Named] = {}
    for topic in topics:
        first.setdefault(topic.name, topic)
    return [(topic, counts[name] > 1) for name, topic in first.items()]


def _asked(controller: Controller, topic: New) -> int:
    """Returns how many partitions a new topic requests, before validation."""
    if topic.assignments:
        return len(topic.assignments)
    return controller.defaults.num_partitions if topic.num_partitions == -1 else max(topic.num_partitions, 0)


def _check_total(partitions: int, what: str) -> None:
    """Raises ApiError(POLICY_VIOLATION) if a request would create too many partitions in total."""
    if partitions > PARTITIONS_PER_REQUEST:
        raise ApiError(Errors.POLICY_VIOLATION, f"Excessively large number of {what} per request.")


def _create(
    controller: Controller, topic: New, mutate: Mutate
) -> Generator[None, None, tuple[list[messages.Struct | NewPartitions], bytes, list[list[int]]]]:
    state, name = controller.state, topic.name
    if name == CLUSTER_METADATA:
        raise ApiError(Errors.INVALID_REQUEST, f"Creation of internal topic {CLUSTER_METADATA} is prohibited.")
    check_name(name)
    if name in state.topics:
        raise ApiError(Errors.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    _check_collision(state, name)
    empty = [c.name for c in topic.configs if c.value is None]
    if empty:
        raise ApiError(Errors.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(empty)}")
    configs = {c.name: c.value for c in topic.configs if c.value is not None}
    try:
        check_topic_config(configs, known_to(controller.defaults.release, name))
    except ConfigInvalid as error:
        raise ApiError(Errors.INVALID_CONFIG, str(error)) from None
    placed = yield from (_manual if topic.assignments else _automatic)(controller, topic)
    mutate(len(placed))
    topic_id = controller.new_id()
    records: list[messages.Struct | NewPartitions] = [messages.TopicRecord(name=name, topic_id=topic_id)]
    records += [
        messages.ConfigRecord(resource_type=TOPIC, resource_name=name, name=key, value=value)
        for key, value in configs.items()
    ]
    records += yield from controller.new_partitions(topic_id, placed)
    return records, topic_id, placed


def _check_collision(state: MetadataState, name: str) -> None:
    """Names within one request may collide, as in Kafka. Raises ApiError(INVALID_TOPIC_EXCEPTION)."""
    folded = folded_name(name)
    names = None if folded is None else state.folded_names.get(folded)
    if names:
        other = next(iter(names))
        raise ApiError(Errors.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _automatic(controller: Controller, topic: New) -> Generator[None, None, list[list[int]]]:
    count, factor = topic.num_partitions, topic.replication_factor
    if factor == 0 or factor < -1:
        raise ApiError(
            Errors.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count == 0 or count < -1:
        raise ApiError(Errors.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    count = controller.defaults.num_partitions if count == -1 else count
    factor = controller.defaults.replication_factor if factor == -1 else factor
    reason = unplaceable(controller, factor)
    if reason is not None:
        raise ApiError(
            Errors.INVALID_REPLICATION_FACTOR, f"Unable to replicate the partition {factor} time(s): {reason}"
        )
    return (yield from controller.place(count, factor))


def unplaceable(controller: Controller, factor: int) -> str | None:
    """Returns Kafka's message if no partition can get so many replicas."""
    usable = controller.usable()
    if all(one.fenced for one in usable):
        return "All brokers are currently fenced, or have all their log directories cordoned."
    if factor > len(usable):
        return (
            f"The target replication factor of {factor} cannot be reached because only {len(usable)} broker(s) are "
            "registered or some brokers have all their log directories cordoned."
        )
    return None


def _manual(controller: Controller, topic: New) -> Generator[None, None, list[list[int]]]:
    if topic.replication_factor != -1:
        raise ApiError(
            Errors.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if topic.num_partitions != -1:
        raise ApiError(
            Errors.INVALID_REQUEST, "A manual partition assignment was specified, but numPartitions was not set to -1."
        )
    by_index: dict[int, list[int]] = {}
    factor: int | None = None
    for assignment in topic.assignments:
        if by_index:
            yield
        if assignment.partition_index in by_index:
            raise ApiError(
                Errors.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {assignment.partition_index}",
            )
        check_assignment(controller, assignment.broker_ids, factor)
        _check_active(controller, assignment.partition_index, assignment.broker_ids)
        factor = len(assignment.broker_ids)
        by_index[assignment.partition_index] = list(assignment.broker_ids)
    if sorted(by_index) != list(range(len(by_index))):
        raise ApiError(
            Errors.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [by_index[i] for i in range(len(by_index))]


def check_assignment(controller: Controller, replicas: list[int], factor: int | None) -> None:
    """Raises ApiError for invalid replicas of a partition."""
    if not replicas:
        raise ApiError(
            Errors.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes an empty replica list."
        )
    ordered = sorted(replicas)
    for before, broker_id in zip([None, *ordered], ordered, strict=False):
        if broker_id not in controller.state.brokers:
            raise ApiError(
                Errors.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered.",
            )
        if not takes_replicas(controller.state.brokers[broker_id]):
            raise ApiError(
                Errors.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes broker {broker_id}, but all its log directories are "
                "cordoned.",
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


def _check_active(controller: Controller, index: int, replicas: list[int]) -> None:
    """Raises ApiError(INVALID_REPLICA_ASSIGNMENT) if none of the replicas of a new partition may lead."""
    if not any(map(controller.is_active, replicas)):
        raise ApiError(
            Errors.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown.",
        )


def delete_topics(
    controller: Controller, wanted: Sequence[tuple[str | None, bytes]], mutate: Mutate = unlimited
) -> Decision[list[Deleted]]:
    """`wanted`: names or ids. The reply is a list of (name, id, error or None) in the same order."""
    state = controller.state
    records: list[messages.Struct] = []
    reply: list[Deleted] = []
    gone: set[bytes] = set()
    for name, asked_id in wanted:
        yield
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
        try:
            mutate(state.partition_counts[topic_id])
        except ApiError as error:
            reply.append((state.topic_names[topic_id], topic_id, error))
            continue
        gone.add(topic_id)
        records.append(messages.RemoveTopicRecord(topic_id=topic_id))
        reply.append((state.topic_names[topic_id], topic_id, None))
    return bounded(Result(records, reply))


def create_partitions(
    controller: Controller, topics: list[More], mutate: Mutate = unlimited
) -> Decision[list[tuple[str, ApiError | None]]]:
    """Adds partitions to topics. The reply has each name once, with its error, those named twice first, and the others
    in the order of a Java HashSet. Raises ApiError(POLICY_VIOLATION) for too many partitions or records.
    """
    by_name = {topic.name: (topic, is_repeated) for topic, is_repeated in _each_once(topics)}
    in_order = yield from java_order_steps(by_name)
    wanted = sorted((by_name[name] for name in in_order), key=lambda one: not one[1])
    additional = sum(_additional(controller.state, topic) for topic, is_repeated in wanted if not is_repeated)
    _check_total(additional, "additional partitions")
    records: list[NewPartitions] = []
    reply: list[tuple[str, ApiError | None]] = []
    for topic, is_repeated in wanted:
        yield
        if is_repeated:
            reply.append((topic.name, ApiError(Errors.INVALID_REQUEST, "Duplicate topic name.")))
            continue
        try:
            records += yield from _more_partitions(controller, topic, mutate)
            reply.append((topic.name, None))
        except ApiError as error:
            reply.append((topic.name, error))
    return bounded(Result(records, reply))


def _additional(state: MetadataState, topic: More) -> int:
    known = state.topics.get(topic.name)
    return 0 if known is None else max(topic.count - state.partition_counts[known.id], 0)


def _more_partitions(controller: Controller, topic: More, mutate: Mutate) -> Generator[None, None, list[NewPartitions]]:
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
            f"Attempted to add {more} additional partition(s), but only {len(topic.assignments)} assignment(s) were "
            "specified.",
        )
    mutate(more)
    factor = len(state.partitions[known.id, 0].replicas)
    if topic.assignments is not None:
        placed = [list(a.broker_ids) for a in topic.assignments]
        for index, replicas in enumerate(placed, present):
            yield
            check_assignment(controller, replicas, factor)
            _check_active(controller, index, replicas)
    else:
        reason = unplaceable(controller, factor)
        if reason is not None:
            raise ApiError(Errors.INVALID_REPLICATION_FACTOR, reason)
        placed = yield from controller.place(more, factor)
    return (yield from controller.new_partitions(known.id, placed, present))
