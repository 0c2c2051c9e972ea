"""What is true of a simulated cluster, as the records of its metadata and the files of its logs say: who led in which
epoch, which elections lost records, and what was committed where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ottla.broker.group.coordinators import TOPIC_NAME as OFFSETS
from ottla.broker.replica.partition import Partition
from ottla.coordinator.metadata.delta import MetadataDelta
from ottla.coordinator.metadata.state import NO_LEADER, MetadataState
from ottla.coordinator.metadata.state import Partition as State
from ottla.protocol import records

from ..support.world import World

Key = tuple[bytes, int]  # the id of a topic, and a partition
Row = tuple[int, bytes]  # the epoch that wrote a record, and its value; control records have none


@dataclass
class Told:
    """What is known of a partition. `losses`: its unclean elections; `is_loss_new`: since the rows were read;
    `is_put_back`: only a replica is in sync that may have lost records, and it does not lead yet; `is_recovering`: the
    process was killed, and the high watermark is not yet where it was.
    """

    name: str
    state: State
    leaders: dict[int, int] = field(default_factory=dict)  # by epoch
    high_watermark: int = 0
    rows: list[Row] = field(default_factory=list)  # what was committed, by offset
    losses: int = 0
    is_loss_new: bool = False
    is_put_back: bool = False
    is_recovering: bool = False


class Truth:
    """Follows a world. `followed`: is called with each change of a partition; what it raises is kept until `read`."""

    def __init__(self, world: World) -> None:
        self.partitions: dict[Key, Told] = {}
        self.followed: Callable[[Told, State, State], None] = lambda told, before, after: None
        self.failed: list[AssertionError] = []
        self.cut: dict[int, MetadataState] = {}
        self.crashed: set[int] = set()  # while a process begins: the nodes that may have lost committed records
        self.watch(world)

    def begin_again(self, world: World, is_clean: bool, crashed: set[int]) -> None:
        """The process has ended, and another one has begun with its files. `crashed`: nodes that had been killed."""
        image = world.broker.image
        self.cut.clear()
        self.partitions = {key: told for key, told in self.partitions.items() if key in image.partitions}
        for told in self.partitions.values():
            if not is_clean:
                told.high_watermark, told.is_recovering = 0, True
        self.crashed = crashed
        self.watch(world)
        self.crashed = set()

    def watch(self, world: World) -> None:
        """Follows the broker of a world from now on."""
        self.world = world
        self.image = world.broker.image
        self.active_before = self.active()  # before the present change
        for key, state in self.image.partitions.items():
            if key not in self.partitions:
                self._add(key, state)
            elif state != self.partitions[key].state:
                self._follow(key, state)
        world.broker.metadata.watch(self._changed)

    def active(self) -> set[int]:
        """The brokers that may lead."""
        return {one.id for one in self.image.brokers.values() if not one.fenced and not one.in_controlled_shutdown}

    def known_to(self, node: int) -> MetadataState:
        """The metadata as a node knows them, which may be cut off."""
        if node not in self.cut:
            return self.image
        return self.cut[node]

    def note_cuts(self) -> None:
        """Notes what nodes that were just cut off know, and forgets that of those that were healed."""
        for node in self.world.broker.nodes:
            if not node.is_cut:
                self.cut.pop(node.id, None)
            elif node.id not in self.cut:
                self.cut[node.id] = self.image.copied()

    def losses_of_offsets(self) -> int:
        """How often a coordinator of groups was elected that may have lost commits."""
        topic = self.image.topics.get(OFFSETS)
        return sum(told.losses for key, told in self.partitions.items() if topic is not None and key[0] == topic.id)

    def open(self) -> Iterator[tuple[Told, Partition]]:
        """Yields the partitions whose logs are open."""
        for key, told in self.partitions.items():
            partition = self.world.broker.partitions.by_id.get(key)
            if partition is not None and partition.log is not None:
                yield told, partition

    def _add(self, key: Key, state: State) -> None:
        name = f"{self.image.topic_names[key[0]]}-{key[1]}"
        self.partitions[key] = Told(name, state, {state.leader_epoch: state.leader})

    def _changed(self, delta: MetadataDelta) -> None:
        for topic in delta.removed:
            for index in range(topic.partitions):
                self.partitions.pop((topic.id, index), None)
        for key in delta.new_partitions:
            if key in self.image.partitions:
                self._add(key, self.image.partitions[key])
        for key in delta.changed_partitions:
            if key in self.image.partitions and key in self.partitions:
                self._follow(key, self.image.partitions[key])
        self.active_before = self.active()

    def _follow(self, key: Key, after: State) -> None:
        told = self.partitions[key]
        before, told.state = told.state, after
        clean = {before.leader, NO_LEADER, *before.isr, *before.elr} - self.crashed
        told.is_put_back |= puts_back(before, after)
        is_unclean = after.leader not in clean and not ends_reassignment(before, after)
        if is_unclean or (told.is_put_back and after.leader != NO_LEADER):
            told.is_put_back = False
            told.losses += 1
            told.is_loss_new = True
        try:
            self.followed(told, before, after)
        except AssertionError as error:
            self.failed.append(error)

    def read(self) -> None:
        """Reads what was committed since. Raises what has gone wrong."""
        if self.failed:
            raise self.failed[0]
        for told, partition in self.open():
            end = partition.high_watermark
            told.is_recovering &= end < len(told.rows)
            if told.is_loss_new:
                told.is_loss_new = False
                del told.rows[agreed(told.rows, rows_of(partition, 0)) :]
                told.high_watermark = 0
            if end > len(told.rows):
                told.rows += rows_of(partition, len(told.rows))


def ends_reassignment(before: State, after: State) -> bool:
    """Whether a replica leads because the last one came into sync that a reassignment waited for (maybe itself)."""
    stay = tuple(one for one in before.replicas if one not in before.removing)
    return before.leader in before.removing and after.replicas == stay and after.leader in after.isr


def puts_back(before: State, after: State) -> bool:
    """Whether a reassignment was cancelled while none of the replicas that stay was in sync: the first of them is then,
    whatever it has and whether it is there or not, where unclean elections are enabled.
    """
    is_cancelled = before.is_reassigned and not after.is_reassigned
    return is_cancelled and set(before.isr) <= set(before.adding) and after.isr == after.replicas[:1]


def agreed(some: list[Row], others: list[Row]) -> int:
    """Returns the offset from which on two logs differ."""
    for offset, (one, other) in enumerate(zip(some, others, strict=False)):
        if one != other:
            return offset
    return min(len(some), len(others))


def rows_of(partition: Partition, start: int) -> list[Row]:
    """The committed records of a partition from an offset on."""
    found: list[Row] = []
    while start < partition.high_watermark:
        part = partition.read(start, 1 << 20, 0, True)
        if part is None:
            break
        data = bytes(part)
        part.release()
        for at in records.batches(data):
            for record in records.decode(data, at):
                if start <= record.offset < partition.high_watermark:
                    value = b"" if at.header.is_control else record.value or b""
                    found.append((at.header.partition_leader_epoch, value))
            start = max(start, at.header.next_offset)
    return found
