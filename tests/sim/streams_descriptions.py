"""Descriptions of the application's topology (KIP-1331) in the simulator of streams groups, and what must hold of them:
what the group's log says is stored is there, and what was acknowledged is shown until the group goes or the process
ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.world import Answer
from .streams_threads import APPLICATION, RETRIABLE

if TYPE_CHECKING:
    from .streams import Sim

PLUGIN = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
U = m.StreamsGroupTopologyDescriptionUpdateRequest
NOT_STORED, STORED = 1, 3
GONE = {int(e) for e in (Errors.UNKNOWN_MEMBER_ID, Errors.GROUP_ID_NOT_FOUND)}
KEPT = {int(e) for e in (Errors.NON_EMPTY_GROUP, Errors.GROUP_ID_NOT_FOUND)}
"""Errors of a deletion that changes nothing."""
WAIT_MS = 3_700_000  # the longest time between two questions, and some


class Pushed(NamedTuple):
    """A description on its way. `floor`: its number, or 0 if others were on their way, which may be stored after it."""

    number: int
    floor: int
    answer: Answer


class Descriptions:
    """What threads have sent, and what the broker has to show of it."""

    def __init__(self, sim: Sim) -> None:
        self.sim = sim
        self.count = 0
        self.waiting: list[Pushed] = []
        self.is_forgotten = False  # the process has ended since one was stored
        self.shows_from: int | None = None  # this one or a later one is shown; None: there may be none
        self.deletion: Answer | None = None

    def push(self, member_id: str) -> None:
        """A thread describes its topology: one node, whose name is a number. Trouble may lose the answer."""
        self.count += 1
        node = U.TopologyDescriptionNode(name=str(self.count), node_type=1)
        parts = [U.TopologyDescriptionSubtopology(subtopology_id="0", nodes=[node])]
        request = U(group_id=APPLICATION, member_id=member_id, topology_epoch=0)
        request.topology_description = U.TopologyDescription(subtopologies=parts)
        floor = 0 if self.waiting else self.count
        answer = self.sim.world.send("StreamsGroupTopologyDescriptionUpdate", 0, request)
        self.waiting.append(Pushed(self.count, floor, answer))

    def delete_group(self) -> None:
        """What it takes with it is no more awaited."""
        if self.deletion is None:
            request = m.DeleteGroupsRequest(groups_names=[APPLICATION])
            self.deletion = self.sim.world.send("DeleteGroups", 2, request)

    def forget(self) -> None:
        """The process ends: so do its memory and what it had not answered."""
        if self.deletion is not None:
            self._gone()
        self.waiting.clear()
        self.shows_from = None
        self.is_forgotten = True

    def _gone(self) -> None:
        """The group may be deleted."""
        self.deletion = self.shows_from = None
        self.sim.forget_group()

    # what must hold

    def check(self) -> None:
        group = self.sim.group
        runtime = self.sim.host.runtime
        if group is None or runtime.state.value != "active":
            self.shows_from = None if group is None else self.shows_from
            return
        committed = runtime.committed_offset
        if not group.members.items(committed):
            self.shows_from = None  # a group without members and offsets loses its description with time
        stored = group.described_epoch(committed)
        shown = self._shown(stored)
        assert stored < 0 or shown is not None or self.is_forgotten, "what the log says is stored is not there"
        if self.shows_from is not None and self.deletion is None and not self.waiting:
            assert shown is not None, f"the description {self.shows_from} is not shown"
            assert shown >= self.shows_from, f"the description {shown} is shown, and {self.shows_from} came later"

    def hear(self) -> None:
        waiting = []
        for one in self.waiting:
            if not one.answer.done:
                waiting.append(one)
            elif one.answer.reply is None:
                self.shows_from = None
            else:
                code = one.answer.reply.error_code
                assert code in {0, *GONE, *RETRIABLE}, f"{code} {one.answer.reply.error_message}"
                if code == 0:
                    self.is_forgotten = False
                    self.shows_from = one.floor or self.shows_from
                elif code in RETRIABLE:
                    self.shows_from = None  # it may have been noted that another one comes
        self.waiting = waiting
        if self.deletion is not None and self.deletion.done:
            if self.deletion.reply is not None and self.deletion.reply.results[0].error_code in KEPT:
                self.deletion = None
            else:
                self._gone()

    def _shown(self, stored: int) -> int | None:
        descriptions = self.sim.world.broker.groups.descriptions
        assert descriptions is not None
        found = descriptions.found(APPLICATION, 0, stored)
        return None if found is None else int(found.subtopologies[0].nodes[0].name)

    def settle(self) -> None:
        """Members are asked until the description is stored."""
        until_ms = self.sim.now_ms + WAIT_MS
        while self.sim.group is None or self.sim.group.described_epoch() < 0:
            assert self.sim.now_ms < until_ms, f"no member was asked for the description: {self.sim.group}"
            self.sim.go_on(5000)
        request = m.StreamsGroupDescribeRequest(group_ids=[APPLICATION], include_topology_description=True)
        (found,) = self.sim.world.ask("StreamsGroupDescribe", 1, request).groups
        known = self._shown(self.sim.group.described_epoch())
        assert found.topology_description_status == (NOT_STORED if known is None else STORED), found
