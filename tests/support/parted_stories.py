"""Stories over three nodes, each of which is a broker and a controller, whose network can be parted."""

from __future__ import annotations

from functools import partial

from ottla.broker.later import drive

from ..oracle.quorum import PartedQuorum
from .differential import Tally
from .node_stories import AFTERWARDS_MS, Story, description
from .poll import until
from .stories.quorum import asked, of_quorums
from .transcripts import Transcript
from .wire import Wire

PATIENCE_S = 5.0
RESIGNED_MS = 3010  # one and a half times `controller.quorum.fetch.timeout.ms`, and a moment


class Parted(Story):
    """A story in which the network can be parted."""

    def __init__(self, kafka: PartedQuorum | None, tally: Tally, transcript: Transcript, **settings: str) -> None:
        super().__init__(kafka, tally, transcript, **{"ottla.controller.node": "1", **settings})
        self._network = kafka
        of_quorums(self)

    def part(self, *sides: list[int]) -> None:
        """Nodes reach those on their own side alone; no session has expired yet."""
        lives = self.world.broker.node_lives
        parted = drive(lives.part([[lives.find(node) for node in side] for side in sides]))
        if self._network is not None:
            self._network.part(*sides)
        self.world.pass_ms(10)
        parted.get()

    def state_at(self, node: int, topic: str, index: int = 0) -> tuple[int, int]:
        """The leader of a partition and its epoch, as a node knows them."""
        reply = self.at(node).ours.ask("DescribeTopicPartitions", 0, description(topic))
        found = reply.topics[0].partitions[index]
        return found.leader_id, found.leader_epoch

    def controller_address(self, node: int) -> tuple[str, int]:
        """Where the other nodes of Kafka reach the controller at a node."""
        return ("", 1) if self._network is None else self._network.controller_address(node)

    def has_resigned(self, controller: int) -> None:
        """Waits until a controller that reaches no majority is none any more. It answers until then."""
        self.world.pass_ms(RESIGNED_MS)
        if self._network is not None:
            until(partial(self._is_silent, self._network.address(controller)), f"node {controller} resigns")

    @staticmethod
    def _is_silent(address: str) -> bool:
        with Wire(address, timeout=PATIENCE_S) as wire:
            try:
                wire.ask("DescribeQuorum", 2, asked())
            except TimeoutError:
                return True
        return False

    def sessions_expire(self) -> None:
        """Whom the controller does not reach it fences."""
        self.world.pass_ms(AFTERWARDS_MS)

    def join(self) -> None:
        """All nodes reach each other, and have the time to follow."""
        joined = drive(self.world.broker.node_lives.join())
        if self._network is not None:
            self._network.join()
        self.sessions_expire()
        joined.get()
