"""All share-partitions and share sessions of this broker (KIP-932)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

from ...coordinator.metadata.delta import MetadataDelta
from ...protocol.errors import ApiError, Errors, default_message
from ..controller.controller import MetadataController
from ..later import Later, failed
from ..metrics import Summary
from ..replica.appender import Appender
from ..replica.partition import Partition
from ..replica.partitions import Partitions
from ..settings import Settings
from ..turn import Turn
from .coordinators import ShareCoordinators
from .sessions import SessionKey, ShareSession, ShareSessions

# a broker starts without the engine, the persister and the queues, and imports them with its first share group
if TYPE_CHECKING:
    from ...coordinator.share.partition import Acknowledgement
    from ...coordinator.share.state import PartitionKey
    from .dead_letters import DeadLetters
    from .persister import Persister
    from .share_partition_leader import SharePartitionLeader

FEATURE = "share.version"
FENCING = frozenset(
    (
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.FENCED_STATE_EPOCH,
        Errors.GROUP_ID_NOT_FOUND,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
    )
)


class SharePartitionManager:
    """All share-partitions of this broker, and its share sessions."""

    def __init__(
        self,
        turn: Turn,
        settings: Settings,
        partitions: Partitions,
        appender: Appender,
        metadata: MetadataController,
        states: ShareCoordinators,
    ) -> None:
        self.turn = turn
        self.settings = settings
        self.image = settings.image
        self.logs = partitions
        self.appender = appender
        self.metadata = metadata
        self.states = states
        self.partitions: dict[PartitionKey, SharePartitionLeader] = {}
        self._of_group: dict[str, dict[PartitionKey, SharePartitionLeader]] = {}
        self.sessions = self._new_sessions()
        self.acknowledged: Counter[int] = Counter()  # records by the type of their acknowledgement
        self.load_ms = Summary()  # of share-partitions
        self.acquire_ms: dict[str, Summary] = {}  # by group: how long fetches waited for records
        # by group: the percentage of the fetched partitions that returned records
        self.acquire_ratio: dict[str, Summary] = {}
        self._persister: Persister | None = None
        self._dead_letters: DeadLetters | None = None
        self._everywhere = self

    def of_node(self, partitions: Partitions) -> SharePartitionManager:
        """Returns the share-partitions as the connections of one node see them, with sessions of its own."""
        found = copy(self)
        found.logs = partitions
        found.sessions = found._new_sessions()
        return found

    def _new_sessions(self) -> ShareSessions:
        return ShareSessions(lambda: self.settings.value("group.share.max.share.sessions"), self.release, self._emptied)

    @property
    def persister(self) -> Persister:
        if self._everywhere is not self:
            return self._everywhere.persister
        if self._persister is None:
            from .persister import persister

            self._persister = persister(self.turn, self.settings.config, self.states)
        return self._persister

    @property
    def dead_letters(self) -> DeadLetters:
        if self._everywhere is not self:
            return self._everywhere.dead_letters
        if self._dead_letters is None:
            from .dead_letters import DeadLetters

            self._dead_letters = DeadLetters(self.turn, self.settings, self.appender, self.metadata)
        return self._dead_letters

    @property
    def version(self) -> int:
        """The finalized `share.version`: 0 no share groups, 1 share groups, 2 dead-letter queues too."""
        return int(self.image.features.get(FEATURE, 0))

    def check_enabled(self) -> None:
        """Raises ApiError(UNSUPPORTED_VERSION)."""
        if self.version < 1:
            raise ApiError(Errors.UNSUPPORTED_VERSION)

    def shared(self, key: PartitionKey) -> SharePartitionLeader:
        """Returns the share-partition; creates it if it does not exist.
        Raises ApiError if the partition is not on this broker.
        """
        found = self.partitions.get(key)
        if found is None:
            from .share_partition_leader import SharePartitionLeader

            partition = self.logs.by_id.get((key.topic_id, key.partition))
            if partition is None:
                raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
            self._check_led(partition)
            partition.open_log()
            found = self.partitions[key] = SharePartitionLeader(self._everywhere, key, partition)
            self._of_group.setdefault(key.group_id, {})[key] = found
        else:
            self._check_led(found.partition)
        return found

    def _check_led(self, partition: Partition) -> None:
        if not self.logs.leads(partition):
            raise ApiError(Errors.NOT_LEADER_OR_FOLLOWER)

    def acknowledge(
        self, key: PartitionKey, member_id: str, acknowledgements: Sequence[Acknowledgement]
    ) -> Later[None]:
        """Completes when the acknowledgements of a member are written. Fails with ApiError; a node that does not lead
        the partition does not know the share-partition, as in Kafka.
        """
        found = self.partitions.get(key)
        if found is None or not self.logs.leads(found.partition):
            return failed(
                ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, default_message(Errors.UNKNOWN_TOPIC_OR_PARTITION))
            )
        return found.acknowledge(member_id, acknowledgements)

    def answered(self, group_id: str, wanted: int, found: int, waited_ms: float) -> None:
        """Records that a fetch of `wanted` partitions got records of `found` partitions."""
        self.acquire_ratio.setdefault(group_id, Summary()).add(100 * found / wanted)
        self.acquire_ms.setdefault(group_id, Summary()).add(waited_ms)

    def forget(self, group_id: str) -> None:
        """Forgets a deleted group."""
        for measures in (
            self.acquire_ms,
            self.acquire_ratio,
            self.dead_letters.written,
            self.dead_letters.produced,
            self.dead_letters.failed,
        ):
            measures.pop(group_id, None)

    def failed(self, shared: SharePartitionLeader, error: ApiError) -> None:
        """After a failed write: reads the share-partition again if another leader
        or another state epoch is in force.
        """
        if error.code in FENCING:
            self.remove(shared)

    def remove(self, shared: SharePartitionLeader) -> None:
        if self.partitions.get(shared.key) is shared:
            del self.partitions[shared.key]
            of_group = self._of_group[shared.key.group_id]
            del of_group[shared.key]
            if not of_group:
                del self._of_group[shared.key.group_id]
        shared.fence()

    def reload(self, partition: Partition) -> list[str]:
        """Drops a partition's share-partitions, so that they are read again, as after a change of the leader; returns
        their groups.
        """
        found = [s for s in self.partitions.values() if s.partition is partition]
        for shared in found:
            self.remove(shared)
        return [f"{shared.key.group_id}:{partition.name}" for shared in found]

    # sessions

    def release(self, session: ShareSession) -> None:
        """Releases the records that a member holds."""
        from ...coordinator.share.state import PartitionKey

        group_id, member_id = session.key
        for topic_id, index in session.entries:
            shared = self.partitions.get(PartitionKey(group_id, topic_id, index))
            if shared is not None:
                shared.release(member_id)

    def end_session(self, key: SessionKey) -> None:
        session = self.sessions.end(key)
        if session is not None:
            self.release(session)

    def _emptied(self, group_id: str) -> None:
        for shared in list(self._of_group.get(group_id, {}).values()):
            if self.logs.leads(shared.partition):
                self.remove(shared)

    def metadata_changed(self, delta: MetadataDelta) -> None:
        """Does nothing without share groups: then there are no sessions and no share-partitions."""
        if FEATURE in delta.features and self.version < 1:
            self.sessions.clear()
            for shared in list(self.partitions.values()):
                self.remove(shared)
