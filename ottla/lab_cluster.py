"""Nodes and partitions of a running broker as objects, and a broker of several nodes for tests.

with Cluster(nodes=3) as cluster:
    cluster.node(2).stop()
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from .lab_client import Lab, Reply, segment
from .testing import Broker


class ClusterNode:
    """A node; its methods return when what they ask for has happened."""

    def __init__(self, lab: Lab, id: int) -> None:  # the word of the protocol
        self.lab = lab
        self.id = id

    @property
    def view(self) -> Reply:
        """What the node does, leads and has in sync. Raises LookupError: there is no such node."""
        for one in self.lab.get("nodes")["nodes"]:
            if one["node"] == self.id:
                found: Reply = one
                return found
        raise LookupError(f"there is no node {self.id}")

    @property
    def address(self) -> str:
        """The address of its first listener."""
        listener: str = self.view["listeners"][0]
        return listener.partition("://")[2]

    def _do(self, what: str) -> None:
        self.lab.post(f"nodes/{self.id}", do=what)

    def stop(self) -> None:
        """Stops it; others lead before."""
        self._do("stop")

    def kill(self) -> None:
        """Ends it at once; it is fenced when its session has expired."""
        self._do("kill")

    def start(self) -> None:
        """Starts it again after `stop` or `kill`."""
        self._do("start")

    def pause(self) -> None:
        """Its connections stay open, and nothing is answered."""
        self._do("pause")

    def resume(self) -> None:
        """Ends `pause`."""
        self._do("resume")

    def drain(self) -> None:
        """Others lead instead of it, until `unfence`."""
        self._do("drain")

    def fence(self) -> None:
        """It goes on, and leads nothing, until `unfence`."""
        self._do("fence")

    def unfence(self) -> None:
        """It may lead again, after `fence` or `drain`."""
        self._do("unfence")

    def hold(self) -> None:
        """Its replicas fall behind."""
        self._do("hold")

    def release(self) -> None:
        """Ends `hold`."""
        self._do("release")

    def cut(self) -> None:
        """Neither other nodes nor the controller reach it; its clients do."""
        self._do("cut")

    def heal(self) -> None:
        """Ends `cut`."""
        self._do("heal")

    def control(self) -> None:
        """It is the active controller, which fails with it from now on."""
        self._do("control")

    def fail(self, directory: str) -> None:
        """A log directory of it fails, until it starts again: its replicas there are offline, and others lead."""
        self.lab.post(f"nodes/{self.id}/failed-directories", directory=directory)


class ClusterPartition:
    """A partition with its replicas; its methods return what it is afterwards."""

    def __init__(self, lab: Lab, topic: str, index: int) -> None:
        self.lab = lab
        self.topic = topic
        self.index = index
        self._path = f"partitions/{segment(topic)}/{index}"

    @property
    def view(self) -> Reply:
        """Who leads and why, and how far the replicas are."""
        return self.lab.get(self._path)

    @property
    def leader(self) -> int:
        """The node that leads it; -1 if none does."""
        found: int = self.view["leader"]
        return found

    def move(self, node: int | None = None) -> Reply:
        """Lets another replica in sync lead."""
        return self.lab.post(f"{self._path}/move", node=node)

    def elect(self, *, unclean: bool = False) -> Reply:
        """Elects the preferred leader, or any that is alive."""
        return self.lab.post(f"{self._path}/elect", election="unclean" if unclean else "preferred")

    def shrink(self, node: int | None = None) -> Reply:
        """Takes a replica, or all but the leader, out of those in sync, until `release`."""
        return self.lab.post(f"{self._path}/shrink", node=node)

    def release(self, node: int | None = None) -> Reply:
        """Lets a replica, or all, follow the leader again; it is in sync when it has caught up."""
        for one in self.view["replicas"] if node is None else [{"node": node}]:
            self.lab.post("release", topic=self.topic, partition=self.index, node=one["node"])
        return self.view


class Cluster(Broker):
    """Several nodes in one process as a context manager. `nodes`: how many; the others are as for `Broker`."""

    def __init__(
        self,
        nodes: int = 3,
        settings: Mapping[str, object] | None = None,
        *,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__({"ottla.nodes": nodes, **(settings or {})}, directory=directory)

    def node(self, id: int) -> ClusterNode:  # the word of the protocol
        return ClusterNode(self.lab, id)

    def partition(self, topic: str, index: int = 0) -> ClusterPartition:
        return ClusterPartition(self.lab, topic, index)

    def part(self, *sides: Collection[int]) -> None:
        """Parts the network between nodes: `cluster.part([1, 2], [3])`. The controller is, or can be, on the side with
        most voters, and on the first side where it is at no node. Raises LabRefused: each node must be on one side.
        """
        self.lab.post("nodes/partition", sides=[list(side) for side in sides])

    def join(self) -> None:
        """Lets all nodes reach each other again, after `part` and `ClusterNode.cut`. Raises LabRefused: they do."""
        self.lab.delete("nodes/partition")

    def losses(self) -> list[Reply]:
        """Returns which records were lost in elections."""
        found: list[Reply] = self.lab.get("losses")["losses"]
        return found
