"""Deliberate bugs, each one line: the function, what stands there, and what it is replaced by. A test breaks the code
with each of them, and the simulator of streams groups must find it.
"""

from __future__ import annotations

from ottla.broker.group.streams_topics import StreamsTopics
from ottla.broker.group.topology_descriptions import TopologyDescriptions
from ottla.coordinator.group import target_assignment
from ottla.coordinator.group.streams import (
    endpoints,
    heartbeat,
    leaving,
    membership,
    records,
    replies,
    stored_descriptions,
)
from ottla.coordinator.group.streams.group import StreamsGroup
from ottla.coordinator.group.streams.reconciliation import Reconciliation
from ottla.coordinator.group.streams.sticky import _Assignment
from ottla.coordinator.runtime import Runtime

from ..support.bugs import Bug

BUGS: tuple[Bug, ...] = (
    (Reconciliation, "_is_free", "if task in group.active:", "if task in mine.active:"),
    (Reconciliation, "_may_stand_by", "if self._runs_here(task) and task not in mine.active:", "if not self.member:"),
    (Reconciliation, "_still_owns", "return True", "return False"),
    (
        Reconciliation,
        "_towards_target",
        "standby |= (mine.standby & target.active) - promoted",
        "standby |= mine.standby & target.active",
    ),
    (StreamsGroup, "_release", "self.active.pop(task)", "self.active"),
    (StreamsGroup, "remove_member", "self._drop_static(before)", "self.members"),
    (_Assignment, "_give_to_least", "if task not in process.tasks:", "if process.counts:"),
    (target_assignment, "assign", "group.targets.get(now_id) != target", "group.targets.get(now_id) is None"),
    (leaving, "remove", "epoch = epochs.after(group.epoch)", "epoch = group.epoch"),
    (membership, "loaded", "shard.await_session(group, member.id)", "shard.timers"),
    (membership, "_joining_static", "records += member_tombstones(group.id, existing.id)", "records += []"),
    (heartbeat, "_settle", "is_new = found != group.metadata_hash", "is_new = not found"),
    (replies, "reply", "changed = before.assigned != after.assigned", "changed = not after.id"),
    (endpoints, "partitions_by_endpoint", "gone = {member.id, ", "gone = {"),
    (records, "replay_current", "revoking=revoking", "revoking=NOTHING_HELD"),
    (StreamsTopics, "_created", "self._creating.difference_update(names)", "self._creating.update(names)"),
    (TopologyDescriptions, "_was_asked", "self._turn.now_ms() < asked.again_at_ms", "asked.again_at_ms > 0"),
    (TopologyDescriptions, "ask", "not self._was_asked(group_id, epoch)", "not group.described_epoch()"),
    (TopologyDescriptions, "update", "if not await groups.write_at(", "if groups.write_at("),
    (TopologyDescriptions, "_put", "self._stored[group_id] = ", "self._stored.setdefault(group_id, before) or "),
    (stored_descriptions, "mark_uncertain", "not group.is_empty or stored == NONE", "stored == NONE"),
    (stored_descriptions, "mark_uncertain", "if stored != UNCERTAIN:", "if stored == NONE:"),
    (Runtime, "_revert_batch", "self.timeline.revert(self.last_written_offset)", "self.timeline.offsets"),
    (Runtime, "_appended", "self._parked.park(parked, end)", "[self._parked.finish(one, None) for one in parked]"),
)
