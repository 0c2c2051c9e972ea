"""The nodes of the cluster: what each does, and what the lab lets happen to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict

from ..config.nodes import NODES_MAX, Node, NodeRefused
from ..later import Later, Steps, drive
from .lab import Lab
from .routes import Nothing, Refused, route
from .shapes import Size


class NodeView(TypedDict):
    """A node. `listeners`: the addresses that it advertises. `state`: running, starting, stopping, stopped or paused.
    `held`: whether its replicas do not follow their leaders. `cut`: whether the controller does not reach it. `side`:
    of the network; nodes reach those on the same side, and the controller is, or can be, on side 0. `drained`: whether
    others lead instead of it, as before it stops. `fenced`: whether it may lead nothing. `leads`, `replicas`,
    `in_sync`: the numbers of its partitions. `failed`: its log directories that have failed.
    """

    node: int
    rack: str | None
    listeners: list[str]
    state: str
    held: bool
    cut: bool
    side: int
    drained: bool
    fenced: bool
    epoch: int
    leads: int
    replicas: int
    in_sync: int
    failed: list[str]


class NodesView(TypedDict):
    """Nodes. `controller`: the active controller; -1 while there is none. `controller_at_node`: false while the
    controller is at no node and never fails.
    """

    controller: int
    controller_at_node: bool
    nodes: list[NodeView]


@dataclass(frozen=True)
class ChangeNode:
    """What happens to a node."""

    node: Annotated[int, "Its id."]
    do: Annotated[
        Literal[
            "stop",
            "kill",
            "start",
            "pause",
            "resume",
            "drain",
            "fence",
            "unfence",
            "hold",
            "release",
            "cut",
            "heal",
            "control",
        ],
        "`stop`: others lead before it ends. `drain`: others lead, and it goes on until `unfence` or `stop`. "
        "`kill`: it ends at once, and is fenced when its session has expired. "
        "`pause`: its connections stay open and nothing is answered. `fence`: it goes on, and leads nothing. "
        "`hold`: its replicas fall behind. `cut`: other nodes and the controller do not reach it; its clients do. "
        "`control`: it is the active controller, which fails with it from now on.",
    ]


@route("GET /v1/nodes", example=Nothing())
def nodes(lab: Lab, asked: Nothing) -> NodesView:
    """Lists the nodes of the cluster."""
    return _views(lab)


@dataclass(frozen=True)
class OneNode:
    """A node by its id."""

    node: Annotated[int, "Its id."]


@route("GET /v1/nodes/{node}", example=OneNode(1), errors={404: "the node does not exist"})
def node(lab: Lab, asked: OneNode) -> NodeView:
    """Returns a node by its id: scenarios wait for its state."""
    return _view(lab, lab.broker.node_lives.find(asked.node), *_counts(lab))


@route("POST /v1/nodes", example=Nothing(), errors={409: "no node can be added"})
def add_node(lab: Lab, asked: Nothing) -> Later[NodesView]:
    """Adds a node to a broker that was started with several, and starts it; clients learn of it by metadata."""
    return _settled(lab, drive(_refusing(lab, lab.broker.node_lives.add())))


@dataclass(frozen=True)
class Sides:
    """A network that is parted."""

    sides: Annotated[
        list[Annotated[list[int], Size(1, NODES_MAX)]],
        Size(2, NODES_MAX),
        "The ids of the nodes on each side; each node is on one.",
    ]


@route(
    "POST /v1/nodes/partition",
    example=Sides([[1, 2], [3]]),
    errors={404: "a node does not exist", 409: "a node is on no side or on two, or it starts or stops just now"},
)
def part_network(lab: Lab, asked: Sides) -> Later[NodesView]:
    """Parts the network: nodes reach only those on their own side, and clients reach all. The controller is, or can be,
    on the side with most voters, the first of several; a controller at no node is on the first side.
    """
    lives = lab.broker.node_lives
    sides = [[lives.find(one) for one in side] for side in asked.sides]
    return _settled(lab, drive(_refusing(lab, lives.part(sides))))


@route("DELETE /v1/nodes/partition", example=Nothing(), errors={409: "all nodes reach each other"})
def join_network(lab: Lab, asked: Nothing) -> Later[NodesView]:
    """Lets all nodes reach each other again, after a partition of the network and after cuts of single nodes."""
    return _settled(lab, drive(_refusing(lab, lab.broker.node_lives.join())))


@route(
    "DELETE /v1/nodes/{node}",
    example=OneNode(1),
    errors={404: "the node does not exist", 409: "the node's state does not allow that, or it is the first one"},
)
def remove_node(lab: Lab, asked: OneNode) -> Later[NodesView]:
    """Stops a node and forgets it. Its replicas stay in their partitions until they are reassigned."""
    lives = lab.broker.node_lives
    return _settled(lab, drive(_refusing(lab, lives.remove(lives.find(asked.node)))))


def _settled(lab: Lab, done: Later[NodesView]) -> Later[NodesView]:
    """A change goes on to its end where the client of the lab does not wait for it: a node would stay half stopped."""
    answer: Later[NodesView] = Later()
    done.when_done(lambda found: answer.settle(found.result, found.error))
    lab.broker.turn.settle_soon()
    return answer


async def _refusing(lab: Lab, changing: Steps[object]) -> NodesView:
    """Returns the nodes after a change. Raises Refused."""
    try:
        await changing
    except (NodeRefused, OSError) as error:
        raise Refused(409, str(error)) from None
    return _views(lab)


def _counts(lab: Lab) -> tuple[Counter[int], Counter[int], Counter[int]]:
    """Returns by node how many partitions it leads, has replicas of, and has in sync."""
    leads, replicas, in_sync = Counter[int](), Counter[int](), Counter[int]()
    for one in lab.broker.image.partitions.values():
        leads[one.leader] += 1
        replicas.update(one.replicas)
        in_sync.update(one.isr)
    return leads, replicas, in_sync


def _views(lab: Lab) -> NodesView:
    counts = _counts(lab)
    quorum = lab.broker.metadata.quorum
    return {
        "controller": quorum.leader,
        "controller_at_node": quorum.active is not None,
        "nodes": [_view(lab, one, *counts) for one in lab.broker.nodes],
    }


def _view(lab: Lab, node: Node, *counts: Counter[int]) -> NodeView:
    registered = lab.broker.image.brokers.get(node.id)  # None after UnregisterBroker
    leads, replicas, in_sync = (one[node.id] for one in counts)
    return {
        "node": node.id,
        "rack": node.rack,
        "listeners": [str(one) for one in node.config.advertised.values()],
        "state": node.state.value,
        "held": node.is_held,
        "cut": node.is_cut,
        "side": node.side,
        "drained": lab.broker.node_lives.is_drained(node),
        "fenced": registered is None or registered.fenced,
        "epoch": -1 if registered is None else registered.epoch,
        "leads": leads,
        "replicas": replicas,
        "in_sync": in_sync,
        "failed": [one.path for one in lab.broker.log_directories.all if one.has_failed(node.id)],
    }


@route(
    "POST /v1/nodes/{node}",
    example=ChangeNode(1, "fence"),
    errors={404: "the node does not exist", 409: "the node's state does not allow that, or its listeners are taken"},
)
def change_node(lab: Lab, asked: ChangeNode) -> Later[NodesView]:
    """Stops, kills, starts, pauses, resumes, drains, fences or unfences a node; answers when that has happened."""
    node, lives = lab.broker.node_lives.find(asked.node), lab.broker.node_lives
    happen: dict[str, Callable[[Node], Steps[None]]] = {
        "stop": lives.stop,
        "kill": lives.kill,
        "start": lives.begin,
        "pause": lives.pause,
        "resume": lives.resume,
        "drain": lives.drain,
        "fence": lives.fence,
        "unfence": lives.unfence,
        "hold": lives.hold,
        "release": lives.release,
        "cut": lives.cut,
        "heal": lives.heal,
        "control": lives.control,
    }
    return _settled(lab, drive(_refusing(lab, happen[asked.do](node))))


@dataclass(frozen=True)
class FailDirectory:
    """A log directory that fails."""

    node: Annotated[int, "The id of the node."]
    directory: Annotated[str, "The path of the log directory, one of `log.dirs`."]


@route(
    "POST /v1/nodes/{node}/failed-directories",
    example=FailDirectory(1, "/data/second"),
    errors={404: "the node or the directory does not exist", 409: "it is the last one of the node, or has failed"},
)
def fail_directory(lab: Lab, asked: FailDirectory) -> Later[NodesView]:
    """Lets a log directory of a node fail, until the node starts again: its replicas there go offline, and others
    lead. With one node the directory fails for the broker, until it is started again.
    """
    directories = lab.broker.node_directories
    failing = directories.fail(lab.broker.node_lives.find(asked.node), directories.find(asked.directory))
    return _settled(lab, drive(_refusing(lab, failing)))
