"""What a streams group has that other groups do not (KIP-1071): its topology, and its tasks one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

from ...coordinator.group.environment import TopicImage
from ...coordinator.group.streams.configured import ConfiguredSubtopology, configure
from ...coordinator.group.streams.group import StreamsGroup
from ...coordinator.group.streams.member import StreamsMember
from ...coordinator.group.streams.tasks import HeldTasks, Task, Tasks
from ...coordinator.group.streams.topology import Topology
from ...coordinator.group.streams.topology_description import PROCESSOR, SINK, SOURCE
from ...protocol import messages
from ...protocol.errors import ApiError

if TYPE_CHECKING:
    from ..group.topology_descriptions import TopologyDescriptions

TYPES: dict[int, Literal["source", "processor", "sink"]] = {SOURCE: "source", PROCESSOR: "processor", SINK: "sink"}
KINDS: tuple[Literal["active", "standby", "warmup"], ...] = ("active", "standby", "warmup")


class SubtopologyView(TypedDict):
    """A subtopology. `tasks`: how many it has; null while topics do not fit."""

    subtopology: str
    tasks: int | None
    sources: list[str]
    repartitions: list[str]
    changelogs: list[str]
    sinks: list[str]


class ProcessView(TypedDict):
    """Where a member runs. `topology_epoch`: of the topology that it has. `endpoint`: for interactive queries."""

    member: str
    process: str
    topology_epoch: int
    endpoint: str | None


class TaskView(TypedDict):
    """A task of a member. `state`: the member has it (`owned`), must give it up (`revoking`), or is to have it
    (`pending`). `held_by`: who still has a pending active task; null if no one has. `epoch`: at which the member got an
    active task.
    """

    subtopology: str
    task: int
    kind: Literal["active", "standby", "warmup"]
    state: Literal["owned", "revoking", "pending"]
    member: str
    process: str
    epoch: int | None
    held_by: str | None


class TopologyNodeView(TypedDict):
    """A node in the description of a topology. `subtopology`: null for a node of a global store. `topics`: those that a
    source reads, or the one that a sink writes, unless it is chosen for each record.
    """

    subtopology: str | None
    node: str
    type: Literal["source", "processor", "sink"]
    topics: list[str]
    stores: list[str]
    successors: list[str]


class StreamsView(TypedDict):
    """A streams group's topology and tasks. `topology_epoch`: null without a topology. `validated_epoch`: of the
    topology that fits the topics; -1 if none does. `problem`: why no task can be assigned. `description`: what a member
    said that the topology looks like; null if that is not stored.
    """

    topology_epoch: int | None
    validated_epoch: int
    endpoint_epoch: int
    problem: str | None
    subtopologies: list[SubtopologyView]
    processes: Iterable[ProcessView]
    tasks: Iterable[TaskView]
    description: list[TopologyNodeView] | None


class _Held(NamedTuple):
    """A member as it was when the view was asked for."""

    member: StreamsMember
    target: Tasks


def view(group: StreamsGroup, image: TopicImage, descriptions: TopologyDescriptions | None) -> StreamsView:
    """Returns what there is now; processes and tasks are described when their turn comes."""
    members = [_Held(member, group.target_of(member)) for member in group.members.values()]
    topology = group.topology
    counted, problem = _configured(group, image)
    return {
        "topology_epoch": None if topology is None else topology.epoch,
        "validated_epoch": group.validated_epoch,
        "endpoint_epoch": group.heard.endpoint_epoch,
        "problem": problem,
        "subtopologies": [] if topology is None else list(_subtopologies(topology, counted)),
        "processes": (_process(member) for member, _ in members),
        "tasks": _tasks(members),
        "description": None if descriptions is None else _description(group, descriptions),
    }


def _description(group: StreamsGroup, descriptions: TopologyDescriptions) -> list[TopologyNodeView] | None:
    found = descriptions.found(group.id, group.topology_epoch, group.described_epoch())
    if found is None:
        return None
    nodes = [_node(part.subtopology_id, one) for part in found.subtopologies for one in part.nodes]
    return nodes + [_node(None, one) for store in found.global_stores for one in (store.source, store.processor)]


def _node(
    subtopology: str | None, node: messages.StreamsGroupDescribeResponse.TopologyDescriptionNode
) -> TopologyNodeView:
    return {
        "subtopology": subtopology,
        "node": node.name,
        "type": TYPES[node.node_type],
        "topics": [*node.source_topics, *filter(None, [node.sink_topic])],
        "stores": node.stores,
        "successors": node.successors,
    }


def _configured(group: StreamsGroup, image: TopicImage) -> tuple[Mapping[str, ConfiguredSubtopology], str | None]:
    """The subtopologies with their tasks, none if topics do not fit; and why no task can be assigned."""
    if group.topology is None:
        return {}, None
    try:
        found = group.configured or configure(group.topology, image)
    except ApiError as error:
        return {}, error.message_or_default
    return found.subtopologies or {}, None if found.problem is None else found.problem.detail


def _subtopologies(topology: Topology, counted: Mapping[str, ConfiguredSubtopology]) -> Iterator[SubtopologyView]:
    for name, one in sorted(topology.subtopologies.items()):
        yield {
            "subtopology": name,
            "tasks": counted[name].tasks if name in counted else None,
            "sources": [*one.sources, *one.expressions],
            "repartitions": [topic.name for topic in one.repartitions],
            "changelogs": [topic.name for topic in one.changelogs],
            "sinks": list(one.sinks),
        }


def _process(member: StreamsMember) -> ProcessView:
    return {
        "member": member.id,
        "process": member.process_id,
        "topology_epoch": member.topology_epoch,
        "endpoint": None if member.endpoint is None else f"{member.endpoint[0]}:{member.endpoint[1]}",
    }


def _tasks(members: list[_Held]) -> Iterator[TaskView]:
    holders: dict[Task, str] = {}
    for member, _ in members:
        for held in (member.assigned, member.revoking):
            holders.update(dict.fromkeys(held.active, member.id))
    for member, target in members:
        for kind in KINDS:
            owned, revoking = (_of(held, kind) for held in (member.assigned, member.revoking))
            pending = _of(target, kind).keys() - owned.keys() - revoking.keys()
            for task in sorted({*owned, *revoking, *pending}):
                epochs = owned if task in owned else revoking
                yield {
                    "subtopology": task[0],
                    "task": task[1],
                    "kind": kind,
                    "state": "owned" if task in owned else "revoking" if task in revoking else "pending",
                    "member": member.id,
                    "process": member.process_id,
                    "epoch": epochs.get(task),
                    "held_by": holders.get(task) if task in pending and kind == "active" else None,
                }


def _of(tasks: Tasks | HeldTasks, kind: Literal["active", "standby", "warmup"]) -> Mapping[Task, int | None]:
    """The tasks of a kind, with epochs where they are known."""
    found = getattr(tasks, kind)
    return found if isinstance(found, Mapping) else dict.fromkeys(found)
