"""A streams group as the lab shows it: its topology, and who has which task, must give it up or waits for it."""

from __future__ import annotations

from typing import Any

from ottla.protocol import messages as m

from ottla.group_commands import _group

from ..support.group_world import beat as consumer_beat
from ..support.group_world import by_kafka, world
from ..support.lab import LabWorld
from ..support.share_world import configure
from ..support.stories.streams import R, info, part, tasks, topology
from ..support.world import World

PLUGIN = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
COUNT = part("0", "t", changelogs=[info("app-count-changelog")])


def beat(w: World, member: str, epoch: int, *parts: Any, has: Any = None, **more: Any) -> Any:
    request = R(group_id="app", member_id=member, member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms, request.process_id = 10_000, f"p-{member}"
        request.topology = topology(*(parts or (part("0", "t"),)))
    if epoch == 0 or has is not None:
        request.active_tasks, request.standby_tasks, request.warmup_tasks = has or [], [], []
    for name, value in more.items():
        setattr(request, name, value)
    reply = w.ask("StreamsGroupHeartbeat", 1, request)
    assert reply.error_code == 0
    return reply


def shown(w: World) -> Any:
    return LabWorld(w).ask("GET /v1/groups/app")["streams"]


def rows(found: Any) -> list[tuple[Any, ...]]:
    return [(f"{t['subtopology']}_{t['task']}", t["kind"], t["state"], t["member"], t["epoch"], t["held_by"])
            for t in found["tasks"]]  # fmt: skip


def test_a_task_that_moves_is_given_up_by_one_and_awaited_by_the_other() -> None:
    w = world(2)
    beat(w, "m1", 0)
    beat(w, "m2", 0)
    assert rows(shown(w)) == [
        ("0_0", "active", "owned", "m1", 2, None),
        ("0_1", "active", "owned", "m1", 2, None),
        ("0_1", "active", "pending", "m2", None, "m1"),
    ]
    beat(w, "m1", 2, has=tasks(s0=[0, 1]))
    assert rows(shown(w))[1:] == [
        ("0_1", "active", "revoking", "m1", 2, None),
        ("0_1", "active", "pending", "m2", None, "m1"),
    ]
    beat(w, "m1", 2, has=tasks(s0=[0]))
    assert rows(shown(w))[1:] == [("0_1", "active", "pending", "m2", None, None)]
    beat(w, "m2", 3)
    assert rows(shown(w))[1:] == [("0_1", "active", "owned", "m2", 3, None)]


def test_a_description_of_the_topology_is_shown_if_one_is_stored() -> None:
    w = world(2, group_streams_topology_description_plugin_class=PLUGIN)
    assert beat(w, "m1", 0).topology_description_required
    assert shown(w)["description"] is None
    u = m.StreamsGroupTopologyDescriptionUpdateRequest

    def node(name: str, kind: int, **more: Any) -> Any:
        return u.TopologyDescriptionNode(name=name, node_type=kind, **more)

    nodes = [node("in", 1, source_topics=["t"], successors=["out"]), node("out", 3, sink_topic="o")]
    stores = [u.TopologyDescriptionGlobalStore(source=node("all", 1), processor=node("keep", 2, stores=["s"]))]
    parts = [u.TopologyDescriptionSubtopology(subtopology_id="0", nodes=nodes)]
    request = u(group_id="app", member_id="m1")
    request.topology_description = u.TopologyDescription(subtopologies=parts, global_stores=stores)
    assert w.ask("StreamsGroupTopologyDescriptionUpdate", 0, request).error_code == 0
    empty: dict[str, list[str]] = {"topics": [], "stores": [], "successors": []}
    found = shown(w)["description"]
    assert found == [
        {**empty, "subtopology": "0", "node": "in", "type": "source", "topics": ["t"], "successors": ["out"]},
        {**empty, "subtopology": "0", "node": "out", "type": "sink", "topics": ["o"]},
        {**empty, "subtopology": None, "node": "all", "type": "source"},
        {**empty, "subtopology": None, "node": "keep", "type": "processor", "stores": ["s"]},
    ]
    lines = list(_group(LabWorld(w).ask("GET /v1/groups/app"), []))
    at = lines.index("topology:")
    assert [line.split() for line in lines[at + 2 :]] == [
        ["0", "in", "source", "t", "out"],
        ["0", "out", "sink", "o"],
        ["-", "all", "source"],
        ["-", "keep", "processor", "s"],
    ]


def test_the_topology_and_where_members_run() -> None:
    w = world(3)
    chain = part("0", "t", sinks=["app-by-key"]), part("1", repartitions=[info("app-by-key")])
    epoch = beat(w, "m1", 0, *chain, user_endpoint=R.Endpoint(host="m1.example", port=8080)).member_epoch
    w.pass_ms(100)
    beat(w, "m1", epoch)
    found = shown(w)
    assert (found["topology_epoch"], found["validated_epoch"]) == (0, 0)
    one = {"tasks": 3, "sources": [], "repartitions": [], "changelogs": [], "sinks": []}
    assert found["subtopologies"] == [
        {**one, "subtopology": "0", "sources": ["t"], "sinks": ["app-by-key"]},
        {**one, "subtopology": "1", "repartitions": ["app-by-key"]},
    ]
    assert found["processes"] == [
        {"member": "m1", "process": "p-m1", "topology_epoch": 0, "endpoint": "m1.example:8080"}
    ]


def test_why_no_task_can_be_assigned() -> None:
    w = world(2)
    beat(w, "m1", 0, COUNT, part("1", "absent"))
    found = shown(w)
    assert (found["problem"], rows(found)) == ("Source topics absent are missing.", [])
    assert [(one["subtopology"], one["tasks"], one["changelogs"]) for one in found["subtopologies"]] == [
        ("0", None, ["app-count-changelog"]),
        ("1", None, []),
    ]


def test_copies_are_shown_beside_their_tasks() -> None:
    w = world(1)
    configure(w, 32, "app", {"streams.num.standby.replicas": "1"})
    epoch = beat(w, "m1", 0, COUNT).member_epoch
    w.pass_ms(100)
    beat(w, "m1", epoch)
    beat(w, "m2", 0, COUNT)
    kinds = {(kind, member) for _, kind, _, member, _, _ in rows(shown(w))}
    assert {kind for kind, _ in kinds} == {"active", "standby"}
    assert len({member for _, member in kinds}) == 2


def test_a_task_that_warms_up_in_a_log_of_kafka_is_shown() -> None:
    """Kafka 4.4 does not assign such tasks; its records have room for them."""
    w = world(1)
    c = m.StreamsGroupCurrentMemberAssignmentValue
    current = c(member_epoch=1, previous_member_epoch=0, state=1)
    current.warmup_tasks = [c.TaskIds(subtopology_id="0", partitions=[0])]
    metadata = m.StreamsGroupMemberMetadataValue(client_id="c", process_id="p", rebalance_timeout_ms=5000)
    by_kafka(
        w,
        (m.StreamsGroupMemberMetadataKey(group_id="app", member_id="m1"), metadata),
        (m.StreamsGroupMetadataKey(group_id="app"), m.StreamsGroupMetadataValue(epoch=1)),
        (m.StreamsGroupCurrentMemberAssignmentKey(group_id="app", member_id="m1"), current),
        group="app",
    )
    found = shown(w)
    assert (found["topology_epoch"], found["subtopologies"]) == (None, [])
    assert rows(found) == [("0_0", "warmup", "owned", "m1", None, None)]


def test_other_groups_have_no_tasks() -> None:
    w = world()
    consumer_beat(w, "one", 0, "t")
    assert LabWorld(w).ask("GET /v1/groups/g")["streams"] is None
