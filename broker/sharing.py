"""All share-partitions and share sessions of this broker (KIP-932)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..protocol.errors import ApiError, Errors, default_message
from .later import Later
from .metrics import Summary
from .partition import Partition
from .share_sessions import SessionKey, ShareSession, ShareSessions

if TYPE_CHECKING:  # a broker starts without the engine, the persister and the queues, and gets them with its first share group
    from ..coordinator.share.partition import Acknowledgement
    from ..coordinator.share.state import PartitionKey
    from .broker import Broker
    from .dead_letters import DeadLetters
    from .persister import Persister
    from .share_partition import Shared

FEATURE = "share.version"
FENCING = frozenset((Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_STATE_EPOCH, Errors.GROUP_ID_NOT_FOUND, Errors.UNKNOWN_TOPIC_OR_PARTITION))


class Sharing:
    """All share-partitions of this broker, and its share sessions."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.partitions: dict[PartitionKey, Shared] = {}
        self.sessions = ShareSessions(lambda: broker.value("group.share.max.share.sessions"), self.release, self._emptied)
        self.acknowledged: Counter[int] = Counter()  # records by the type of their acknowledgement
        self.load_ms = Summary()  # of share-partitions
        self.acquire_ms: dict[str, Summary] = {}  # by group: how long fetches waited for records
        self.acquire_ratio: dict[str, Summary] = {}  # and of how many percent of their partitions they got some
        self._persister: Persister | None = None
        self._dead_letters: DeadLetters | None = None

    @property
    def persister(self) -> Persister:
        if self._persister is None:
            from .persister import persister

            self._persister = persister(self.broker)
        return self._persister

    @property
    def dead_letters(self) -> DeadLetters:
        if self._dead_letters is None:
            from .dead_letters import DeadLetters

            self._dead_letters = DeadLetters(self.broker)
        return self._dead_letters

    @property
    def version(self) -> int:
        """The finalized `share.version`: 0 no share groups, 1 share groups, 2 dead-letter queues too."""
        return int(self.broker.image.features.get(FEATURE, 0))

    def check_enabled(self) -> None:
        """ApiError(UNSUPPORTED_VERSION)."""
        if self.version < 1:
            raise ApiError(Errors.UNSUPPORTED_VERSION)

    def shared(self, key: PartitionKey) -> Shared:
        """The share-partition, made where it is not there. ApiError where the partition is not on this broker."""
        found = self.partitions.get(key)
        if found is None:
            from .share_partition import Shared

            partition = self.broker.partitions.by_id.get((key.topic_id, key.partition))
            if partition is None:
                raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
            partition.open_log()
            found = self.partitions[key] = Shared(self, key, partition)
        return found

    def acknowledge(self, key: PartitionKey, member_id: str, acknowledgements: Sequence[Acknowledgement]) -> Later[None]:
        """Finished when what a member says is written. Fails with ApiError."""
        found = self.partitions.get(key)
        if found is None:
            later: Later[None] = Later()
            later.fail(ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, default_message(Errors.UNKNOWN_TOPIC_OR_PARTITION)))
            return later
        return found.acknowledge(member_id, acknowledgements)

    def answered(self, group_id: str, wanted: int, found: int, waited_ms: float) -> None:
        """A fetch of so many partitions got records of some of them."""
        self.acquire_ratio.setdefault(group_id, Summary()).add(100 * found / wanted)
        self.acquire_ms.setdefault(group_id, Summary()).add(waited_ms)

    def forget(self, group_id: str) -> None:
        """A group has been deleted."""
        for measures in (self.acquire_ms, self.acquire_ratio, self.dead_letters.written, self.dead_letters.produced, self.dead_letters.failed):
            measures.pop(group_id, None)

    def failed(self, shared: Shared, error: ApiError) -> None:
        """A write failed: where another leader or another state is in force, the share-partition is read anew."""
        if error.code in FENCING:
            self.remove(shared)

    def remove(self, shared: Shared) -> None:
        if self.partitions.get(shared.key) is shared:
            del self.partitions[shared.key]
        shared.fence()

    def reload(self, partition: Partition) -> list[str]:
        """Forgets a partition's share-partitions, so that they are read anew, as when the leader moves away and back; their groups."""
        found = [s for s in self.partitions.values() if s.partition is partition]
        for shared in found:
            self.remove(shared)
        return [f"{shared.key.group_id}:{partition.name}" for shared in found]

    # sessions

    def release(self, session: ShareSession) -> None:
        """Gives back what a member holds."""
        from ..coordinator.share.state import PartitionKey

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
        for shared in [s for s in self.partitions.values() if s.key.group_id == group_id]:
            self.remove(shared)

    def features_changed(self) -> None:
        """Without share groups there are no sessions and no share-partitions."""
        if self.version < 1:
            self.sessions.clear()
            for shared in list(self.partitions.values()):
                self.remove(shared)
