"""Descriptions of the topologies of streams groups, kept in memory (KIP-1331): what Kafka's
InMemoryTopologyDescriptionPlugin is, and what asks for descriptions and deletes them.

A description is the text of an application's topology; the broker does nothing with it. The log of the group says
which one is stored (`coordinator.group.streams.stored_descriptions`). Like the plug-in's, this store forgets everything
when the process ends, and the group's members are not asked again then.

Kafka's plug-in takes whatever it is given. Here one that is too large is refused for good, and one for which there is
no room is asked for again later: what Kafka does if a plug-in fails in either way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import partial
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from ...coordinator.group.streams import stored_descriptions as epochs
from ...coordinator.group.streams.group import StreamsGroup
from ...coordinator.group.streams.statuses import Code
from ...protocol import codec, messages
from ...protocol.errors import ApiError, Errors
from ..limits import TOPOLOGY_DESCRIPTION_BYTES_MAX as ALL_BYTES_MAX
from ..limits import TOPOLOGY_DESCRIPTIONS, Limits

if TYPE_CHECKING:
    from ...coordinator.group.shard import GroupShard
    from ..shards.hosts import ShardHosts
    from ..turn import Turn

    Groups = ShardHosts[GroupShard]
    Description = messages.StreamsGroupDescribeResponse.TopologyDescription

VERSION = 1  # of StreamsGroupDescribe
DESCRIPTION_BYTES_MAX = 1 << 20
BACKOFF_MS, BACKOFF_MAX_MS, BACKOFF_JITTER = 30_000, 3_600_000, 0.2
MOVED = (Errors.NOT_COORDINATOR, Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.COORDINATOR_NOT_AVAILABLE)


class _Stored(NamedTuple):
    """`data`: an encoded StreamsGroupDescribe reply, which is smaller than its objects."""

    epoch: int
    data: bytes


class _Asked(NamedTuple):
    """When the members of a group were asked for the description of a topology, and when they may be asked again."""

    epoch: int
    attempts: int
    again_at_ms: int


class TopologyDescriptions:
    """The descriptions of all streams groups of a broker, and of which groups they were asked for.

    `counts`: of the group coordinators' metrics.
    """

    def __init__(self, turn: Turn, chance: Random, limits: Limits, counts: Counter[str]) -> None:
        self._turn = turn
        self._chance = chance
        self._limits = limits
        self._counts = counts
        self._stored: dict[str, _Stored] = {}
        self.bytes = 0
        self._asked: dict[str, _Asked] = {}
        self._is_cleaning = False

    # heartbeats

    def ask(self, groups: Groups, group_id: str, reply: messages.StreamsGroupHeartbeatResponse) -> None:
        """Asks the member that gets this reply for a description, if one is missing and no one was asked lately."""
        if any(one.status_code == Code.STALE_TOPOLOGY for one in reply.status or ()):
            return
        host = groups.hosts.get(groups.partition_for(group_id))
        group = None if host is None else host.shard.groups.get(group_id)
        if isinstance(group, StreamsGroup):
            epoch = group.topology_epoch
            if epoch >= 0 and epoch not in group.description_epochs and not self._was_asked(group_id, epoch):
                self._put_off(group_id, epoch)
                reply.topology_description_required = True

    def _was_asked(self, group_id: str, epoch: int) -> bool:
        asked = self._asked.get(group_id)
        return asked is not None and asked.epoch == epoch and self._turn.now_ms() < asked.again_at_ms

    def _put_off(self, group_id: str, epoch: int) -> None:
        """Has the members of a group asked again after half a minute, and after twice that each time."""
        before = self._asked.get(group_id)
        attempts = before.attempts + 1 if before is not None and before.epoch == epoch else 0
        jitter = 1 + self._chance.uniform(-BACKOFF_JITTER, BACKOFF_JITTER)
        ms = min(int(min(BACKOFF_MS << min(attempts, 16), BACKOFF_MAX_MS) * jitter), BACKOFF_MAX_MS)
        self._asked[group_id] = _Asked(epoch, attempts, self._turn.now_ms() + ms)

    # updates

    async def update(self, groups: Groups, group_id: str, epoch: int, description: Description) -> None:
        """Stores the description of the topology with this epoch.

        Raises ApiError(GROUP_ID_NOT_FOUND or STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED).
        """
        mark = partial(epochs.mark_uncertain, group_ids=[group_id], for_update=True)
        if not await groups.write_at(groups.partition_for(group_id), "mark-topology-uncertain", mark):
            raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        refused = None
        try:
            self._put(group_id, epoch, description)
            note, name = epochs.note_stored, "streams-group-set-stored-topology-epoch"
        except _TooLarge as error:
            refused = error
            note, name = epochs.note_refused, "streams-group-set-failed-topology-epoch"
        except _NoRoom:
            self._put_off(group_id, epoch)
            raise
        try:
            await groups.write_at(groups.partition_for(group_id), name, partial(note, group_id=group_id, epoch=epoch))
        except ApiError as error:
            if error.code == Errors.GROUP_ID_NOT_FOUND:
                self._drop(group_id)
            elif error.code not in MOVED:
                self._put_off(group_id, epoch)
            raise
        asked = self._asked.get(group_id)
        if asked is not None and asked.epoch == epoch:
            del self._asked[group_id]
        if refused is not None:
            raise refused

    def _put(self, group_id: str, epoch: int, description: Description) -> None:
        """Raises _TooLarge or _NoRoom."""
        r = messages.StreamsGroupDescribeResponse
        reply = r(groups=[r.DescribedGroup(topology_description=description)])
        data = bytes(codec.build(r.__name__, VERSION, reply))
        before = self._stored.get(group_id)
        after = self.bytes + _size(group_id, data) - (0 if before is None else _size(group_id, before.data))
        try:
            if len(data) > DESCRIPTION_BYTES_MAX:
                raise _TooLarge(len(data))
            if after > ALL_BYTES_MAX:
                raise _NoRoom
        except ApiError:
            self._counts["description_set_errors"] += 1
            self._limits.reached(TOPOLOGY_DESCRIPTIONS, f"group {group_id}")
            raise
        self._counts["descriptions_set"] += 1
        self._stored[group_id] = _Stored(epoch, data)
        self.bytes = after

    def _drop(self, group_id: str) -> None:
        self._asked.pop(group_id, None)
        before = self._stored.pop(group_id, None)
        if before is not None:
            self.bytes -= _size(group_id, before.data)

    # what is stored

    def of_group(self, group_id: str, epoch: int, stored_epoch: int) -> Description | None:
        """Like `found`, and counts that, as Kafka counts what a plug-in is asked for."""
        if 0 <= stored_epoch == epoch:
            self._counts["descriptions_got"] += 1
        return self.found(group_id, epoch, stored_epoch)

    def found(self, group_id: str, epoch: int, stored_epoch: int) -> Description | None:
        """Returns the description of the topology with this epoch; None if the group's log does not say that it is
        stored, or it is forgotten.
        """
        if stored_epoch < 0 or stored_epoch != epoch:
            return None
        found = self._stored.get(group_id)
        if found is None or found.epoch != epoch:
            return None
        reply = codec.parse(messages.StreamsGroupDescribeResponse.__name__, VERSION, found.data)
        description: Description = reply.groups[0].topology_description
        return description

    # groups that go

    async def delete(self, groups: Groups, index: int, group_ids: Collection[str]) -> None:
        """Deletes the descriptions of groups of one shard that are about to be deleted. Raises ApiError."""
        stored = groups.host_at(index).read(lambda shard, as_of: epochs.stored_of(shard, group_ids, as_of))
        if stored:
            await self._delete(groups, index, stored)

    def precedes(self, groups: Groups, group_id: str) -> bool:
        """Whether a description is to be deleted before a classic group takes the place of an empty streams group.
        Raises ApiError.
        """
        group = groups.host(group_id).shard.groups.get(group_id)
        return isinstance(group, StreamsGroup) and group.is_empty and group.described_epoch() != epochs.NONE

    async def delete_before(self, groups: Groups, group_id: str) -> bool:
        """Deletes the description of an empty streams group; returns whether the group is still empty.
        Raises ApiError.
        """
        mark = partial(epochs.mark_uncertain, group_ids=[group_id], for_update=False)
        marked = await groups.write_at(groups.partition_for(group_id), "mark-topology-uncertain", mark)
        self._forget(marked)
        return bool(marked)

    def note_deleted(self, groups: Groups, group_id: str) -> None:
        """Corrects what a group says that has members again, and whose description `delete_before` has deleted."""
        note = partial(epochs.note_deleted, groups.host(group_id).shard, [group_id])
        groups.host(group_id).write_later("finalize-stored-topology-epoch-after-delete-batch", note)

    async def _delete(self, groups: Groups, index: int, group_ids: Collection[str]) -> None:
        mark = partial(epochs.mark_uncertain, group_ids=group_ids, for_update=False)
        marked = await groups.write_at(index, "mark-topology-uncertain-batch", mark)
        if marked:
            self._forget(marked)
            note = partial(epochs.note_deleted, group_ids=marked)
            await groups.write_at(index, "finalize-stored-topology-epoch-after-delete-batch", note)

    def _forget(self, group_ids: Collection[str]) -> None:
        self._counts["descriptions_deleted"] += len(group_ids)
        for group_id in group_ids:
            self._drop(group_id)

    async def clean(self, groups: Groups) -> None:
        """Deletes the descriptions of groups that have neither members nor offsets, so that these can expire."""
        if self._is_cleaning:
            return
        self._is_cleaning = True
        try:
            self._counts["description_cleanups"] += 1
            for index in list(groups.hosts):
                await self._clean(groups, index)
            self._forget_asked(groups)
        finally:
            self._is_cleaning = False

    async def _clean(self, groups: Groups, index: int) -> None:
        try:
            unused = groups.host_at(index).read(epochs.without_use)
            self._counts["description_cleanup_groups"] += len(unused)
            if unused:
                await self._delete(groups, index, unused)
        except ApiError:
            return  # the next round does it: the groups still say that something is stored

    def _forget_asked(self, groups: Groups) -> None:
        """Forgets when members of groups were asked that do not exist any more."""
        existing: set[str] = set()
        for host in groups.hosts.values():
            existing.update(host.shard.groups)
        now_ms = self._turn.now_ms()
        self._asked = {name: one for name, one in self._asked.items() if name in existing or one.again_at_ms > now_ms}


class _TooLarge(ApiError):
    def __init__(self, size: int) -> None:
        text = f"The topology description has {size} bytes; at most {DESCRIPTION_BYTES_MAX} are stored."
        super().__init__(Errors.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED, text)


class _NoRoom(ApiError):
    def __init__(self) -> None:
        text = f"The broker stores as many topology descriptions as it may: {ALL_BYTES_MAX} bytes."
        super().__init__(Errors.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED, text)


def _size(group_id: str, data: bytes) -> int:
    return len(group_id) + len(data)
