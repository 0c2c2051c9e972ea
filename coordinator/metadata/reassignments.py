"""Reassignments of partitions to other replicas: the controller's handlers, with Kafka's records and messages
(ReplicationControlManager, KIP-455).

A reassignment first adds the new replicas to the old ones. It ends when all that stay are in sync (`elections`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.structs import Struct
from ..shard import Decision, Result
from .controller import Controller, bounded
from .elections import Assignment, Kind
from .state import Partition
from .topics import check_assignment

if TYPE_CHECKING:
    Wanted = messages.AlterPartitionReassignmentsRequest.ReassignableTopic
Altered = tuple[str, list[tuple[int, ApiError | None]]]  # a topic, and the errors of its partitions


def alter(controller: Controller, topics: list[Wanted], may_change_factor: bool) -> Decision[list[Altered]]:
    """Begins, changes and cancels reassignments. The reply is in the order of the request. `may_change_factor`: whether
    the number of replicas may change (KIP-860).
    """
    records: list[Struct] = []
    reply: list[Altered] = []
    for topic in topics:
        answers: list[tuple[int, ApiError | None]] = []
        for wanted in topic.partitions:
            yield
            error: ApiError | None = None
            try:
                partition = _find(controller, topic.name, wanted.partition_index)
                if wanted.replicas is None:
                    change = _cancelled(controller, topic.name, partition)
                else:
                    change = _begun(controller, partition, wanted.replicas, may_change_factor)
                if change is not None:
                    records.append(change)
            except ApiError as refused:
                error = refused
            answers.append((wanted.partition_index, error))
        reply.append((topic.name, answers))
    return bounded(Result(records, reply))


def _find(controller: Controller, name: str, index: int) -> Partition:
    """Raises ApiError(UNKNOWN_TOPIC_OR_PARTITION)."""
    topic = controller.state.topics.get(name)
    if topic is None:
        raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    found = controller.state.partitions.get((topic.id, index))
    if found is None:
        raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    return found


def _begun(
    controller: Controller, partition: Partition, replicas: list[int], may_change_factor: bool
) -> messages.PartitionChangeRecord | None:
    """Raises ApiError."""
    check_assignment(controller, replicas, None)
    if not may_change_factor:
        _check_factor(partition, len(replicas))
    adding = sorted(set(replicas).difference(partition.replicas))
    removing = sorted(set(partition.replicas).difference(replicas))
    # with nothing to add, what an earlier reassignment adds is kept, as in Kafka
    target = _assignment(
        controller,
        partition,
        (*replicas, *removing),
        tuple(adding) or partition.adding,
        tuple(removing) or partition.removing,
    )
    return controller.change(partition, partition.isr, target=target)


def _check_factor(partition: Partition, count: int) -> None:
    """Raises ApiError(INVALID_REPLICATION_FACTOR) if the number of replicas would change."""
    present = len({*partition.replicas, *partition.adding}.difference(partition.removing))
    if count != present:
        raise ApiError(
            Errors.INVALID_REPLICATION_FACTOR, f"The replication factor is changed from {present} to {count}"
        )


def _cancelled(controller: Controller, topic: str, partition: Partition) -> messages.PartitionChangeRecord | None:
    """Raises ApiError(NO_REASSIGNMENT_IN_PROGRESS), or INVALID_REPLICA_ASSIGNMENT if only new replicas are in sync."""
    if not partition.is_reassigned:
        raise ApiError(Errors.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = tuple(one for one in partition.replicas if one not in partition.adding)
    if not replicas:
        raise ApiError(
            Errors.INVALID_REPLICA_ASSIGNMENT, "Invalid replica assignment: addingReplicas contains all replicas."
        )
    isr = tuple(one for one in partition.isr if one not in partition.adding)
    may_lose = controller.may_lose(topic)
    if not isr and not may_lose:
        raise ApiError(
            Errors.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {topic}:{partition.index} because it would require an unclean "
            "leader election.",
        )
    target = _assignment(controller, partition, replicas)
    kind = Kind.UNCLEAN if may_lose else Kind.ONLINE
    return controller.change(partition, isr or replicas[:1], kind=kind, target=target)


def _assignment(
    controller: Controller,
    partition: Partition,
    replicas: tuple[int, ...],
    adding: tuple[int, ...] = (),
    removing: tuple[int, ...] = (),
) -> Assignment:
    directories = [controller.directory_of(partition, one) for one in replicas] if partition.directories else ()
    return Assignment(replicas, tuple(directories), adding, removing)
