"""What holds in every moment of a cluster's history; each class is a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Protocol

from ottla.coordinator.metadata.state import NO_LEADER
from ottla.coordinator.metadata.state import Partition as State
from ottla.protocol.errors import Errors

from ..support.world import World
from .cluster_clients import Producer
from .cluster_network import Check
from .cluster_truth import Told, Truth, agreed, ends_reassignment, puts_back, rows_of

STALE = {int(Errors.FENCED_LEADER_EPOCH), int(Errors.UNKNOWN_LEADER_EPOCH), int(Errors.NOT_LEADER_OR_FOLLOWER)}
ABSENT = {int(Errors.UNKNOWN_TOPIC_OR_PARTITION), int(Errors.UNKNOWN_TOPIC_ID)}
WITH_LEADERS = ("Fetch", "ListOffsets", "OffsetForLeaderEpoch", "Produce")
LATE = {int(Errors.COORDINATOR_NOT_AVAILABLE), int(Errors.COORDINATOR_LOAD_IN_PROGRESS)}


class Cluster(Protocol):
    """What the invariants see of a history."""

    world: World
    truth: Truth
    producers: list[Producer]
    unclean_topics: set[str]
    asks_unclean: bool  # an unclean election was asked for, and may still come


class Invariant:
    """`followed`: a partition changes; `delivered`: a request reaches a node, and its reply must pass what is returned;
    `holds`: nothing happens.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def followed(self, told: Told, before: State, after: State) -> None:
        """Raises AssertionError."""

    def delivered(self, node: int, name: str, message: Any) -> Check | None:
        return None

    def holds(self) -> None:
        """Raises AssertionError."""

    def began_again(self) -> None:
        """The process has ended, and another one has begun."""


class OneNodeLeadsInAnEpoch(Invariant):
    def followed(self, told: Told, before: State, after: State) -> None:
        assert after.leader_epoch >= before.leader_epoch, f"the epoch of {told.name} goes back"
        if after.leader != before.leader:
            assert after.leader_epoch > before.leader_epoch, f"{told.name} has another leader in the same epoch"
        known = told.leaders.setdefault(after.leader_epoch, after.leader)
        assert known == after.leader, f"{known} and {after.leader} lead {told.name} in epoch {after.leader_epoch}"


class LeadersAreInSync(Invariant):
    def followed(self, told: Told, before: State, after: State) -> None:
        assert set(after.isr) <= set(after.replicas), f"{told.name} has {after.isr} in sync of {after.replicas}"
        assert not set(after.isr) & set(after.elr), f"{told.name} has replicas that are in sync and eligible"
        if after.leader != NO_LEADER:
            assert after.leader in after.isr, f"the leader of {told.name} is not in sync: {after}"


class LeadersHaveAllCommittedRecords(Invariant):
    """Unless no one who has them is there, and an unclean election is allowed."""

    def followed(self, told: Told, before: State, after: State) -> None:
        elected = after.leader
        if elected in (before.leader, NO_LEADER) or after.partition_epoch > before.partition_epoch + 1:
            return
        clean = {*before.isr, *before.elr}
        if elected in clean or ends_reassignment(before, after):
            return
        cluster = self.cluster
        there = clean & set(after.replicas) & cluster.truth.active() & cluster.truth.active_before
        there -= cluster.truth.crashed
        assert not there, f"{elected} is elected for {told.name} with {sorted(there)} there: {before}"
        topic = told.name.rpartition("-")[0]
        is_allowed = topic in cluster.unclean_topics or cluster.asks_unclean or before.last_known_elr == (elected,)
        assert is_allowed, f"no setting allowed the unclean election of {elected} for {told.name}: {before}"


class ReplicasThatJoinAreThere(Invariant):
    def followed(self, told: Told, before: State, after: State) -> None:
        if puts_back(before, after):
            return
        truth = self.cluster.truth
        gone = set(after.isr) - set(before.isr) - {after.leader} - truth.active() - truth.active_before
        assert not gone, f"{sorted(gone)} are in sync for {told.name}, and are fenced: {after}"


class TooFewReplicasCommitNothing(Invariant):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._under: dict[str, tuple[int, int, int]] = {}

    def holds(self) -> None:
        for told, partition in self.cluster.truth.open():
            if not partition.is_under_min_isr:
                self._under.pop(told.name, None)
                continue
            now = told.state.partition_epoch, partition.min_insync_replicas, partition.high_watermark
            before = self._under.setdefault(told.name, now)
            assert before[:2] != now[:2] or before[2] >= now[2], f"{partition} commits with too few replicas in sync"
            self._under[told.name] = now

    def began_again(self) -> None:
        self._under.clear()


class TheHighWatermarkNeverGoesBack(Invariant):
    """But for an unclean election; in Kafka also on a new leader, which does not know the last one's yet."""

    def holds(self) -> None:
        for told, partition in self.cluster.truth.open():
            end = partition.high_watermark
            assert end >= told.high_watermark, (
                f"the high watermark of {told.name} goes back from {told.high_watermark} to {end}"
            )
            told.high_watermark = end


class ReplicasInSyncHaveWhatIsCommitted(Invariant):
    """A leader that is cut off does not hear that a replica has left, which may have lost the end of its log since."""

    def holds(self) -> None:
        for told, partition in self.cluster.truth.open():
            replicas = partition.replica_set
            if replicas is None or partition.is_under_min_isr or told.losses:
                continue
            end, replicated = partition.end_offset, partition.follower.replicated
            left = set(replicas.isr).difference(told.state.isr)
            counted = [n for n in (*replicas.isr, *replicas.asked, *replicas.unanswered) if n not in left]
            least = min((replicas.end_of(n, end, replicated) for n in counted if n in replicas), default=end)
            assert partition.high_watermark <= least, (
                f"{partition} has committed more than its replicas in sync have, {least}"
            )


class LogsAgreeBelowTheHighWatermark(Invariant):
    """Whoever reads a log from its start finds what was committed at any time."""

    def holds(self) -> None:
        for told, partition in self.cluster.truth.open():
            found = rows_of(partition, 0)
            same = agreed(told.rows, found)
            words = f"{found[same : same + 3]} and not {told.rows[same : same + 3]}; {len(found)} and {len(told.rows)}"
            assert same == len(found), f"{told.name} has other committed records from {same} on: {words} in all"
            assert told.is_recovering or same == len(told.rows), f"{told.name} has lost committed records: {words}"
            epochs = [epoch for epoch, _ in found]
            assert epochs == sorted(epochs), f"the epochs of {told.name} go back"


class AcknowledgedRecordsSurviveCleanElections(Invariant):
    def holds(self) -> None:
        by_key = self.cluster.truth.partitions
        for one in self.cluster.producers:
            told = by_key.get((one.topic_id, one.index))
            if told is None or one.acks != -1 or told.losses:
                continue
            there = {value for _, value in told.rows}
            for value, offset in one.acked.items():
                assert value in there, f"{value!r} was acknowledged at {offset} of {told.name}, and is not there"
                assert offset < 0 or told.rows[offset][1] == value, f"{value!r} is not at {offset} of {told.name}"


class IdempotentRecordsAreThereOnce(Invariant):
    def holds(self) -> None:
        for told in self.cluster.truth.partitions.values():
            counts = Counter(value for _, value in told.rows)
            for one in self.cluster.producers:
                if one.is_idempotent and f"{one.topic}-{one.index}" == told.name:
                    for value in one.acked:
                        assert counts[value] <= 1, f"{value!r} is {counts[value]} times in {told.name}"


def _led(message: Any) -> Iterator[tuple[str, int, int]]:
    """Yields topic, partition and the client's leader epoch of a request about partitions."""
    for topic in message.topic_data if hasattr(message, "topic_data") else message.topics:
        name = topic.topic if hasattr(topic, "topic") else topic.name
        for part in topic.partition_data if hasattr(topic, "partition_data") else topic.partitions:
            yield name, _index(part), getattr(part, "current_leader_epoch", -1)


def _index(part: Any) -> int:
    for field in ("partition_index", "index", "partition"):
        if hasattr(part, field):
            return int(getattr(part, field))
    raise AttributeError(f"{part} has no number")


def _answered(reply: Any) -> Iterator[tuple[str, int, int]]:
    """Yields topic, partition and error of a reply about partitions."""
    for topic in reply.responses if hasattr(reply, "responses") else reply.topics:
        name = topic.topic if hasattr(topic, "topic") else topic.name
        for part in topic.partition_responses if hasattr(topic, "partition_responses") else topic.partitions:
            yield name, _index(part), part.error_code


class AClientWithAStaleEpochIsAlwaysTold(Invariant):
    """And so is one that asks a node that does not lead, as far as the node knows: it may be cut off."""

    def delivered(self, node: int, name: str, message: Any) -> Check | None:
        wrong: dict[tuple[str, int], tuple[int, State]] = {}
        image = self.cluster.truth.known_to(node)
        for topic, index, epoch in _led(message) if name in WITH_LEADERS else ():
            found = image.topics.get(topic)
            state = image.partitions.get((found.id, index)) if found is not None else None
            if state is not None and (state.leader != node or epoch not in (-1, state.leader_epoch)):
                wrong[topic, index] = epoch, state
        if not wrong:
            return None

        def check(reply: Any) -> None:
            for topic, index, code in _answered(reply):
                if (topic, index) in wrong:
                    epoch, state = wrong[topic, index]
                    assert code in STALE | ABSENT, (
                        f"{name} of {topic}-{index} in epoch {epoch} at node {node} was told {code}; {state}"
                    )
                    if node in state.replicas and epoch not in (-1, state.leader_epoch) and code in STALE:
                        older = epoch < state.leader_epoch
                        assert (code == Errors.FENCED_LEADER_EPOCH) == older or code == Errors.NOT_LEADER_OR_FOLLOWER

        return check


class EpochsEndWhereTheNextBegins(Invariant):
    """OffsetForLeaderEpoch says where, which is how clients find that logs diverge."""

    def delivered(self, node: int, name: str, message: Any) -> Check | None:
        if name != "OffsetForLeaderEpoch":
            return None
        asked = {(topic.topic, part.partition): part for topic in message.topics for part in topic.partitions}
        ends: dict[tuple[str, int], int] = {}
        for told, partition in self.cluster.truth.open():
            part = asked.get((partition.topic, partition.index))
            if part is not None and not told.is_loss_new:
                later = [at for at, (epoch, _) in enumerate(told.rows) if epoch > part.leader_epoch]
                if later:
                    ends[partition.topic, partition.index] = later[0]

        def check(reply: Any) -> None:
            for topic in reply.topics:
                for part in topic.partitions:
                    end = ends.get((topic.topic, part.partition))
                    if part.error_code == 0 and end is not None:
                        assert part.end_offset == end, f"{topic.topic}-{part.partition}: {part}, and it ended at {end}"

        return check


class RepliesComeAfterTheCommit(Invariant):
    def delivered(self, node: int, name: str, message: Any) -> Check | None:
        if name != "Produce" or message.acks != -1:
            return None
        ids = self.cluster.world.broker.image.topics
        asked = {topic.name: ids[topic.name].id for topic in message.topic_data if topic.name in ids}

        def check(reply: Any) -> None:
            for topic in reply.responses:
                for part in topic.partition_responses:
                    partition = self.cluster.world.broker.partitions.by_name.get((topic.name, part.index))
                    if part.error_code or partition is None or partition.log is None:
                        continue
                    if partition.topic_id != asked.get(topic.name):
                        continue  # the topic was deleted, and is there again
                    told = self.cluster.truth.partitions.get((partition.topic_id, partition.index))
                    if told is not None and not told.losses:
                        assert partition.high_watermark > part.base_offset, (
                            f"{part.base_offset} of {partition} was acknowledged, and is not committed"
                        )

        return check


class CoordinatorsAnswerFromOneNodeInAnEpoch(Invariant):
    """A node that is cut off may go on in an epoch that is over, and commits nothing if another one was elected that
    hears of it.
    """

    def delivered(self, node: int, name: str, message: Any) -> Check | None:
        broker = self.cluster.world.broker
        if name == "OffsetCommit":
            hosts, key = broker.groups, message.group_id
        elif name == "OffsetFetch":
            hosts, key = broker.groups, message.groups[0].group_id
        else:
            return None
        topic = broker.image.topics.get(hosts.topic_name)
        state = broker.image.partitions.get((topic.id, hosts.partition_for(key))) if topic is not None else None
        if state is None or state.leader == node:
            return None
        assert topic is not None
        known = self.cluster.truth.known_to(node).partitions.get((topic.id, state.index))
        other = broker.nodes.by_id.get(state.leader)
        if known is not None and known.leader == node and (name == "OffsetFetch" or other is None or other.side != 0):
            return None

        def check(reply: Any) -> None:
            whole = reply.groups[0].error_code if name == "OffsetFetch" else 0
            topics = reply.groups[0].topics if name == "OffsetFetch" else reply.topics
            codes = [whole] if whole else [part.error_code for one in topics for part in one.partitions]
            assert set(codes) <= {int(Errors.NOT_COORDINATOR), *LATE}, (
                f"node {node} answered {name} of {key} with {codes}, and {state} coordinates it"
            )

        return check


ALWAYS: tuple[type[Invariant], ...] = (
    OneNodeLeadsInAnEpoch,
    LeadersAreInSync,
    LeadersHaveAllCommittedRecords,
    ReplicasThatJoinAreThere,
    TooFewReplicasCommitNothing,
    EpochsEndWhereTheNextBegins,
    TheHighWatermarkNeverGoesBack,
    ReplicasInSyncHaveWhatIsCommitted,
    AClientWithAStaleEpochIsAlwaysTold,
    RepliesComeAfterTheCommit,
    CoordinatorsAnswerFromOneNodeInAnEpoch,
)
SOMETIMES: tuple[type[Invariant], ...] = (  # they look at everything
    LogsAgreeBelowTheHighWatermark,
    AcknowledgedRecordsSurviveCleanElections,
    IdempotentRecordsAreThereOnce,
)
