"""Brokers that come and go, and what that does to the partitions: the controller's handlers, with Kafka's records
(ClusterControlManager and ReplicationControlManager).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.structs import Struct
from ..hashing import number_order
from ..shard import Decision, Result
from .controller import Controller, fencing
from .elections import Kind
from .registration import Broker
from .state import NO_LEADER, Partition

UNFENCED = -1
LOOKS_MAX = 1024  # at partitions, to find out whether leaders may change
Key = tuple[bytes, int]  # the id of a topic, and a partition
Handler = Callable[[], Decision[None]]
Elected = tuple[str, int, ApiError | None]  # a topic, a partition, and its error


def _left_by(
    controller: Controller, node: int, lost: Collection[int] = ()
) -> Generator[None, None, list[messages.PartitionChangeRecord]]:
    """Returns the changes of the partitions whose replica on a node is not in sync any more, in steps."""
    changes = []
    for partition in list(controller.state.partitions.values()):
        yield
        if node in partition.isr or node == partition.leader or (lost and node in partition.elr):
            left = [one for one in partition.isr if one != node]
            change = controller.change(partition, left, without=node, lost=lost)
            if change is not None:
                changes.append(change)
    return changes


def _bring_leaders(controller: Controller, node: int) -> Generator[None, None, list[messages.PartitionChangeRecord]]:
    """Returns the elections that a node makes possible, in steps."""
    changes = []
    for partition in list(controller.state.partitions.values()):
        yield
        if partition.leader == NO_LEADER:  # on any broker: unclean elections may be enabled since
            change = controller.change(partition, partition.isr, with_node=node)
            if change is not None:
                changes.append(change)
    return changes


def fence(controller: Controller, node: int) -> Decision[None]:
    """Fences a broker: it leads nothing, and its replicas are out of sync."""
    broker = controller.state.brokers.get(node)
    if broker is None:  # it was unregistered
        return Result([])
    changes = yield from _left_by(controller, node)
    return Result([*changes, *([] if broker.fenced else [fencing(broker, 1)])])


def lose_directory(controller: Controller, node: int, directory: bytes, left: list[bytes]) -> Decision[None]:
    """Takes a log directory that has failed from a broker, as Kafka's controller does after a heartbeat that names it.
    `left`: the ids of those that are left.
    """
    broker = controller.state.brokers.get(node)
    if broker is None:
        return Result([])
    changes = []
    for partition in list(controller.state.partitions.values()):
        yield
        if node not in partition.isr and node != partition.leader:
            continue
        if (node, directory) in zip(partition.replicas, partition.directories, strict=False):
            isr = [one for one in partition.isr if one != node]
            change = controller.change(partition, isr, without=node)
            if change is not None:
                changes.append(change)
    if not broker.log_dirs:  # the metadata version does not have them
        return Result(changes)
    record = messages.BrokerRegistrationChangeRecord(broker_id=node, broker_epoch=broker.epoch, log_dirs=left)
    return Result([record, *changes])


def unfence(controller: Controller, node: int) -> Decision[None]:
    """Lets a broker lead again, and elects it where no one else can be. One in controlled shutdown stays fenced until
    it registers again.
    """
    broker = controller.state.brokers.get(node)
    if broker is None or not broker.fenced or broker.in_controlled_shutdown:
        return Result([])
    changes = yield from _bring_leaders(controller, node)
    return Result([fencing(broker, UNFENCED), *changes])


def unfence_now(controller: Controller, node: int) -> Result[None]:
    """As `unfence`, before the first event."""
    steps = unfence(controller, node)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            decided: Result[None] = done.value
            return decided


def shut_down(controller: Controller, node: int) -> Decision[None]:
    """Begins the controlled shutdown of a broker: others lead before it stops."""
    broker = controller.state.brokers.get(node)
    if broker is None:
        return Result([])
    begun = messages.BrokerRegistrationChangeRecord(broker_id=node, broker_epoch=broker.epoch, in_controlled_shutdown=1)
    changes = yield from _left_by(controller, node)
    return Result([*([] if broker.in_controlled_shutdown else [begun]), *changes])


def unregister(controller: Controller, node: int) -> Decision[None]:
    """Forgets a broker, and takes its partitions from it. Raises ApiError(BROKER_ID_NOT_REGISTERED)."""
    broker = controller.state.brokers.get(node)
    if broker is None:
        raise ApiError(Errors.BROKER_ID_NOT_REGISTERED, f"Broker ID {node} is not currently registered")
    changes = yield from _left_by(controller, node)
    return Result([*changes, messages.UnregisterBrokerRecord(broker_id=node, broker_epoch=broker.epoch)])


def register(
    controller: Controller, request: Broker, next_offset: Callable[[], int], was_clean: bool
) -> Decision[None]:
    """Registers a broker that starts again, fenced. After a crash its replicas may have lost committed records
    (KIP-966). `next_offset`: returns the offset of the next record; the broker's epoch is the offset of its own.
    """
    node = request.id
    changes: list[messages.PartitionChangeRecord] = []
    if not was_clean:
        changes = yield from _left_by(controller, node, lost=(node,))
    epoch = next_offset() + len(changes)
    registered = request._replace(epoch=epoch, fenced=True, in_controlled_shutdown=False)
    return Result([*changes, registered.at(controller.state.metadata_version).record()])


def alter_isr(controller: Controller, wanted: Mapping[Key, tuple[Partition, tuple[int, ...]]]) -> Decision[None]:
    """Changes in-sync replicas as leaders ask (AlterPartition). `wanted`: the state of which a leader knew, and the
    replicas; one that is outdated, or names a broker that is fenced, is left out. A leader has its replicas in a set
    of Java's, in whose order they become those of the partition.
    """
    changes: list[Struct] = []
    for key, (known, isr) in wanted.items():
        yield
        partition = controller.state.partitions.get(key)
        if partition is None or partition.partition_epoch != known.partition_epoch:
            continue
        if not all(map(controller.is_active, isr)):
            continue
        change = controller.change(partition, number_order(isr), is_recovered=True)
        if change is not None:
            changes.append(change)
    return Result(changes)


def elect(controller: Controller, kind: Kind, wanted: Iterable[tuple[str, int]] | None) -> Decision[list[Elected]]:
    """Elects leaders by request. `wanted`: topics and partitions; None for all, of which those that need no election
    are left out of the reply.
    """
    state, reply = controller.state, []
    every = ((name, index) for name, topic in state.topics.items() for index in range(state.partition_counts[topic.id]))
    records: list[Struct] = []
    for name, index in list(every) if wanted is None else wanted:
        yield
        error: ApiError | None = None
        try:
            records.append(_election(controller, kind, name, index))
        except ApiError as refused:
            error = refused
        if wanted is not None or error is None or error.code != Errors.ELECTION_NOT_NEEDED:
            reply.append((name, index, error))
    return Result(records, reply)


def may_balance(controller: Controller) -> bool:
    """Whether the preferred replica of a partition, which another leads, may lead. Of many partitions, one may."""
    partitions = controller.state.partitions.values()
    return len(partitions) > LOOKS_MAX or any(
        one.leader != one.replicas[0] and controller.change(one, one.isr, kind=Kind.PREFERRED) is not None
        for one in partitions
    )


def elect_uncleanly(controller: Controller) -> Decision[None]:
    """Elects leaders for the partitions that have none, where unclean elections are enabled."""
    changes: list[Struct] = []
    for partition in list(controller.state.partitions.values()):
        yield
        if _may_elect_uncleanly(controller, partition):
            change = controller.change(partition, partition.isr, kind=Kind.UNCLEAN)
            if change is not None:
                changes.append(change)
    return Result(changes)


def may_elect_uncleanly(controller: Controller) -> bool:
    """Whether a partition has no leader and may get one by an unclean election. Of many partitions, one may."""
    partitions = controller.state.partitions.values()
    return len(partitions) > LOOKS_MAX or any(_may_elect_uncleanly(controller, one) for one in partitions)


def _may_elect_uncleanly(controller: Controller, partition: Partition) -> bool:
    name = controller.state.topic_names.get(partition.topic_id)
    return partition.leader == NO_LEADER and name is not None and controller.may_lose(name)


def lead(controller: Controller, name: str, index: int, node: int | None) -> Decision[None]:
    """Lets a replica in sync lead a partition, which no request of Kafka's does. `node`: None for the next one.
    Raises ApiError(UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED, ELIGIBLE_LEADERS_NOT_AVAILABLE).
    """
    partition = _partition(controller, name, index)
    at = partition.replicas.index(partition.leader) + 1 if partition.leader in partition.replicas else 0
    in_order = [*partition.replicas[at:], *partition.replicas[:at]]
    fit = [one for one in in_order if one in partition.isr and controller.may_lead(partition, one)]
    if node is None:
        fit = [one for one in fit if one != partition.leader]
    elif node == partition.leader:
        raise ApiError(Errors.ELECTION_NOT_NEEDED, f"{name}-{index} is led by node {node}")
    else:
        fit = [one for one in fit if one == node]
    if not fit:
        whom = "no other replica is" if node is None else f"node {node} is not"
        in_sync = ", ".join(map(str, partition.isr)) or "none"
        words = f"{name}-{index}: {whom} alive and in sync (in sync: {in_sync})"
        raise ApiError(Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE, words)
    yield
    return Result([messages.PartitionChangeRecord(partition_id=index, topic_id=partition.topic_id, leader=fit[0])])


def shrink(controller: Controller, name: str, index: int, left: Collection[int]) -> Decision[None]:
    """Takes replicas out of those in sync, as a leader does. Raises ApiError(UNKNOWN_TOPIC_OR_PARTITION)."""
    partition = _partition(controller, name, index)
    yield
    change = controller.change(partition, [one for one in partition.isr if one not in left], is_recovered=True)
    return Result([] if change is None else [change])


def _partition(controller: Controller, name: str, index: int) -> Partition:
    """Raises ApiError(UNKNOWN_TOPIC_OR_PARTITION)."""
    topic = controller.state.topics.get(name)
    if topic is None:
        raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = controller.state.partitions.get((topic.id, index))
    if partition is None:
        raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    return partition


def _election(controller: Controller, kind: Kind, name: str, index: int) -> messages.PartitionChangeRecord:
    """Raises ApiError."""
    partition = _partition(controller, name, index)
    has_it = partition.leader == partition.replicas[0] if kind is Kind.PREFERRED else partition.leader != NO_LEADER
    if has_it:
        raise ApiError(Errors.ELECTION_NOT_NEEDED)
    change = controller.change(partition, partition.isr, kind=kind)
    if change is None:
        preferred = kind is Kind.PREFERRED
        raise ApiError(Errors.PREFERRED_LEADER_NOT_AVAILABLE if preferred else Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    return change
