"""The examination `truncation` of `ottla verdict`: a consumer has read records that an unclean election cuts off.

No schedule of faults can bring that about, because it takes several nodes: a follower is held while the consumer goes
on reading, and leads when the leader is killed. A consumer that asks where its leader epoch ends goes on from there
(KIP-320). Then the killed node comes again and leads, which the other one says to those that tell it the leader epoch
they know (KIP-951). Only these two rules count: the killed node closes connections, and their clients end nothing in
good order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from .verdict_guide import Guide

if TYPE_CHECKING:
    from .testing import Broker

NAME: Final = "truncation"
RULES: Final = ("KIP-951.leader-taken", "KIP-320.truncation-found")
TOPIC: Final = "truncation"
END: Final = "end"
"""The value of the last record."""
NODES: Final = 3
SETTINGS: Final[dict[str, object]] = {
    "ottla.nodes": NODES,
    "default.replication.factor": 2,
    "replica.lag.time.max.ms": 500,
    "broker.session.timeout.ms": 1000,
    "broker.heartbeat.interval.ms": 100,
}
KEPT, CUT_OFF = ("a", "b"), ("c", "d", "e")
FETCHES_MIN: Final = 5  # by which a consumer has found the replica that leads
STEPS: Final = (
    f"a consumer has read the first records of the topic {TOPIC!r}",
    "it has read records that the other replica lacks",
    "an unclean election, by which these records are lost",
    "the leader moves to the first node again",
)


class Truncation(Guide):
    """Takes the consumers of a topic through it."""

    steps = STEPS

    def __init__(self, broker: Broker, topic: str = TOPIC) -> None:
        super().__init__(broker)
        self._topic = topic
        wanted = {"name": topic, "configs": {"unclean.leader.election.enable": "true"}}
        self._lab.post("seed", topics=[wanted])
        self._trace = int(self._lab.post("traces", api="Fetch", topic=topic)["number"])
        self._after = self._highest = self._fetches = 0

    def _run(self) -> None:
        self._produce(*KEPT)
        for what, step in self._steps(*self.replicas()):
            if not step():
                return
            self.done.append(what)

    def _steps(self, leader: int, follower: int) -> Iterator[tuple[str, Callable[[], bool]]]:
        """`leader`: the node that leads at first, and at the end again."""
        yield STEPS[0], lambda: self._has_read(len(KEPT))
        self._lab.post(f"nodes/{follower}", do="hold")
        self._produce(*CUT_OFF)
        yield STEPS[1], lambda: self._has_read(len(KEPT + CUT_OFF))
        self._lab.post(f"nodes/{leader}", do="kill")
        yield STEPS[2], lambda: self._until(lambda: self.replicas()[0] == follower)
        self._lab.post(f"nodes/{follower}", do="release")
        self._lab.post(f"nodes/{leader}", do="start")
        yield STEPS[3], lambda: self._comes_again(leader)
        self._lab.post(f"partitions/{self._topic}/0/move", node=leader)
        self._produce(END)

    def _comes_again(self, node: int) -> bool:
        """Waits until a node is in sync again, and the consumer has fetched from the other one."""
        self._fetched()
        before = self._fetches
        return self._until(
            lambda: self._is_in_sync(node) and self._fetched() >= 0 and self._fetches - before >= FETCHES_MIN
        )

    def _is_in_sync(self, node: int) -> bool:
        one = self._lab.get(f"partitions/{self._topic}/0")
        return any(replica["in_sync"] for replica in one["replicas"] if replica["node"] == node)

    def replicas(self) -> tuple[int, int]:
        """The leader, and the other replica."""
        one = self._lab.get(f"partitions/{self._topic}/0")
        return one["leader"], next(replica["node"] for replica in one["replicas"] if replica["node"] != one["leader"])

    def _produce(self, *values: str) -> None:
        for value in values:
            self._lab.post(f"records/{self._topic}", value=value)

    def _has_read(self, count: int) -> bool:
        return self._until(lambda: self._fetched() >= count)

    def _fetched(self) -> int:
        """The highest offset from which a consumer has fetched."""
        page = self._lab.get(f"traces/{self._trace}/events", after=self._after)
        self._after = page["next"]
        for event in page["events"]:
            if event["event"] == "request" and event["message"]:
                self._fetches += 1
                for topic in event["message"]["topics"]:
                    self._highest = max(self._highest, *(one["fetch_offset"] for one in topic["partitions"]), 0)
        return self._highest
