"""Where the active controller is: outside of the nodes, where it never fails, or at one of them.

Outside of them it has the first node's id, and the other nodes are observers of the metadata log.

Where it is at a node, the nodes are the voters of the metadata log, except for those that RemoveRaftVoter has made
observers (KIP-853), and a controller needs the majority of the voters. It fails with its node: the voters elect another
one, at once when the node stops, which resigns, and after `controller.quorum.fetch.timeout.ms` when it is killed,
paused or cut off. Until then the metadata does not change: what brokers and clients ask of the controller waits
(`Events`). One that is cut off does not hear of it: its side has it, for reads, until it resigns, after one and a half
times that timeout.

There is one log all the same: voters are as far as it is while they are reached. A restart makes all nodes voters.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ...protocol.errors import ApiError, Errors
from ..clock import Cancellable
from ..config.config import Config
from ..config.nodes import Node, NodeRefused, Nodes, NodeState
from ..later import Later, finished
from ..replica.partition import Partition
from ..turn import Turn

logger = logging.getLogger("ottla.org.apache.kafka.controller.QuorumController")
ANYWHERE = -1  # ottla.controller.node: the controller is at no node
REACH_MS = 60_000  # how long a broker tries to reach the active controller for a client, as Kafka's does
FORGET_MS = 300_000  # after which the leader forgets an observer that does not fetch


class Fetched(NamedTuple):
    """Up to where the leader knows a replica of the metadata log to be, and since when. -1: it has not heard of it."""

    end_offset: int
    time_ms: int


UNKNOWN = Fetched(-1, -1)


class Standing(NamedTuple):
    """An active controller as it describes itself. `fetched`: how far it knows a voter or an observer to be;
    `is_lonely`: whether it reaches too few voters.
    """

    leader: int
    leader_epoch: int
    high_watermark: int
    fetched: Callable[[int], Fetched]
    is_lonely: bool


class Quorum:
    """`begin_epoch`: called when another node is the active controller. `log`: the metadata log."""

    def __init__(
        self,
        turn: Turn,
        config: Config,
        nodes: Nodes,
        begin_epoch: Callable[[], None],
        log: Partition,
    ) -> None:
        self.turn = turn
        self.nodes = nodes
        self.timeout_ms: int = config["controller.quorum.fetch.timeout.ms"]
        self.joins: bool = config["controller.quorum.auto.join.enable"]
        self.begin_epoch = begin_epoch
        self.log = log
        given = config["ottla.controller.node"]
        self.active: int | None = None if given == ANYWHERE else given
        self.missing: Later[None] | None = None  # until there is an active controller
        self._election: Cancellable | None = None  # the next one
        self._has_resigned = False  # the active controller, because too few voters were there for too long
        self._cut_off: dict[int, Cancellable] = {}  # controllers of other sides, by node, until they resign
        self._waiting: dict[Later[None], None] = {}  # for an active controller
        self._observers: set[int] = set()
        self._away: dict[int, Fetched] = {}  # nodes that are lost, when they were
        self.changed: Callable[[], None] | None = None  # called when there is another one, or none
        self.terms = 0  # how many controllers have been active before this one
        self.since_ms = 0  # when it became active

    @property
    def leader(self) -> int:
        """The id of the active controller; -1 while there is none."""
        if self.missing is not None and not self.is_lonely:
            return -1
        return self.nodes.first.id if self.active is None else self.active

    @property
    def is_lonely(self) -> bool:
        """Whether the active controller reaches too few voters, and has not resigned yet: it answers, and changes
        nothing.
        """
        if self.missing is None or self.active is None or self._has_resigned:
            return False
        return self._is_alive(self.active) and not self.is_possible

    def lonely_at(self, side: int) -> int | None:
        """The id of a controller on this side of the network, which is not the main one, that has not resigned yet."""
        for node_id in self._cut_off:
            node = self.nodes.by_id.get(node_id)
            if node is not None and node.side == side and node.is_serving:
                return node_id
        return None

    @property
    def voters(self) -> list[int]:
        """The ids of the controllers that elect."""
        return [self.nodes.first.id] if self.active is None else self._voting

    @property
    def _voting(self) -> list[int]:
        """The voters, where the controller is at a node."""
        return [node for node in self.nodes.by_id if node not in self._observers]

    def main_side(self, sides: Sequence[Sequence[int]]) -> int:
        """Returns the number of the side of the network where a controller may be: that with most voters, the first of
        several; the first one for a controller that is at no node.
        """
        if self.active is None:
            return 0
        voters = set(self.voters)
        counts = [len(voters.intersection(side)) for side in sides]
        return counts.index(max(counts))

    @property
    def observers(self) -> Iterator[int]:
        """The ids of those that only follow the metadata log, and of which the leader has heard."""
        now_ms, voters = self.turn.now_ms(), self.voters
        for node in self.nodes.by_id:
            away = self._away.get(node)
            if node not in voters and (away is None or now_ms - away.time_ms < FORGET_MS):
                yield node

    @property
    def can_vote(self) -> Iterator[int]:
        """The ids of the observers that have a controller."""
        return iter(()) if self.active is None else self.observers

    def fetched(self, node_id: int) -> Fetched:
        """Returns how far a voter or an observer is."""
        away = None if node_id == self.leader else self._away.get(node_id)
        return away or Fetched(self.log.end_offset, self.turn.now_ms())

    def standing(self) -> Standing:
        """Returns the active controller as it describes itself now."""
        return Standing(self.leader, self.log.leader_epoch, self.log.high_watermark, self.fetched, self.is_lonely)

    def reached(self) -> Later[None]:
        """Completes when there is an active controller; fails with ApiError(REQUEST_TIMED_OUT) after a minute."""
        later: Later[None] = Later()
        if self.missing is None:
            later.finish(None)
            return later
        timer = self.turn.later(REACH_MS, lambda: later.fail(ApiError(Errors.REQUEST_TIMED_OUT)))
        self._waiting[later] = None

        def ended(*_: Later[None]) -> None:
            timer.cancel()
            del self._waiting[later]

        later.on_cancel = ended
        later.when_done(ended)
        return later

    @property
    def waiting(self) -> int:
        """How many wait for an active controller."""
        return len(self._waiting)

    def answers(self) -> Later[None]:
        """Like `reached`, for what changes nothing. A broker forwards one request at a time: a lonely controller does
        not get it after one that waits.
        """
        return finished(None) if self.is_lonely and not self.waiting else self.reached()

    # changes that are asked for

    def place(self, node: Node | None) -> None:
        """Moves the active controller to a node; None: to no node, where it never fails. Raises NodeRefused."""
        if node is not None and not self._is_fit(node):
            raise NodeRefused(f"node {node.id} is {'cut off' if node.is_cut else node.state.value}")
        if node is not None and self.active is not None and node.id in self._observers:
            raise NodeRefused(f"node {node.id} is no voter of the metadata log: AddRaftVoter makes it one")
        if node is not None and not self._has_majority(self._voting):
            raise NodeRefused(f"node {node.id} does not reach most voters of the metadata log")
        self._begin(None if node is None else node.id)

    def add(self, node_id: int) -> None:
        """Makes an observer a voter."""
        self._observers.discard(node_id)

    def remove(self, node_id: int) -> None:
        """Makes a voter, which is not the last one, an observer. The active controller resigns, and so does one that
        does not reach most of the voters that are left.
        """
        self._observers.add(node_id)
        if node_id == self.active or not self.is_possible:
            self.missing = Later()
            self._tell()
            self._elect()

    # what happens to nodes

    def joined(self, node: Node) -> None:
        """A node was added: an observer, unless controllers join by themselves (KIP-1186)."""
        if not self.joins:
            self._observers.add(node.id)

    def left(self, node: Node) -> None:
        """A node was removed."""
        self._observers.discard(node.id)
        self._away.pop(node.id, None)
        if self.missing is not None:
            self._elect_later()

    def lost(self, node: Node, *, resigned: bool = False) -> None:
        """A node is stopped, killed, paused or cut off. `resigned`: it has asked the others to elect another one."""
        self._away[node.id] = Fetched(self.log.end_offset, self.turn.now_ms())
        if node.is_cut and node.id == self.active and self.missing is None:
            self._cut_off[node.id] = self.turn.later(self._resigns_ms, partial(self._resigned, node.id))
        if self.active is None or (node.id != self.active and self.is_possible):
            return
        self.missing = self.missing or Later()
        self._tell()
        if resigned and node.id == self.active:
            self._elect()
        else:
            self._elect_later()

    def came(self, node: Node) -> None:
        """A node runs, goes on or is reached again. The active controller is the active one still, if it was away for a
        short time.
        """
        self._away.pop(node.id, None)
        if node.id in self._cut_off:
            self._resigned(node.id)
        if self.missing is None or self.active is None or not self.is_possible:
            return
        if self._is_alive(self.active) and not self._has_resigned:
            self._go_on()
        else:
            self._elect_later()

    @property
    def is_possible(self) -> bool:
        """Whether enough voters are there to have a controller: more than half of them."""
        return self.active is None or self._has_majority(self.voters)

    def _has_majority(self, voters: list[int]) -> bool:
        return 2 * sum(map(self._is_alive, voters)) > len(voters)

    def _fit_voters(self) -> list[int]:
        return [node for node in self.voters if self._is_alive(node)]

    def _is_alive(self, node_id: int) -> bool:
        node = self.nodes.by_id.get(node_id)
        return node is not None and self._is_fit(node)

    @staticmethod
    def _is_fit(node: Node) -> bool:
        return not node.is_cut and (node.is_serving or node.state is NodeState.STARTING)

    def _elect_later(self) -> None:
        """Followers miss a leader for as long as their timeout, and a leader misses them for half as long again."""
        if self._election is None:
            is_last = self.is_lonely or (self.active in self._cut_off and not self.is_possible)
            wait_ms = self._resigns_ms if is_last else self.timeout_ms
            self._election = self.turn.later(wait_ms, self._elect)

    @property
    def _resigns_ms(self) -> int:
        return self.timeout_ms * 3 // 2

    def _resigned(self, node_id: int) -> None:
        """A controller of another side is none any more, or its side has joined the main one."""
        self._cut_off.pop(node_id).cancel()

    def _elect(self) -> None:
        self._election = None
        if self.missing is None or self.turn.stopped:
            return
        if self.is_possible:
            self._begin(self._fit_voters()[0])
        else:
            self._has_resigned = True

    def _begin(self, node_id: int | None) -> None:
        if node_id != self.active or self._has_resigned:
            self.active = node_id
            self._has_resigned = False
            self.terms += 1
            self.since_ms = self.turn.schedule.monotonic_ms()
            self.begin_epoch()
            self._away = dict.fromkeys(self._away, UNKNOWN)
            logger.info("the active controller is %s", "at no node" if node_id is None else f"node {node_id}")
        self._go_on()

    def _go_on(self) -> None:
        if self._election is not None:
            self._election.cancel()
            self._election = None
        missing, self.missing = self.missing, None
        if missing is not None:
            missing.finish(None)
        for one in list(self._waiting):
            one.finish(None)
        self._tell()

    def _tell(self) -> None:
        if self.changed is not None:
            self.changed()
