"""The part of a group's page that is a streams group's: topology, tasks one by one, and where members run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from .. import words
from ..grid import Column, Grid, Row

if TYPE_CHECKING:
    from ...broker.lab.streams_views import ProcessView, StreamsView, SubtopologyView, TaskView

SUBTOPOLOGIES = (
    Column("subtopology", "subtopology", "mono"),
    Column("tasks", "tasks", "number"),
    Column("sources", "sources", "mono"),
    Column("repartitions", "repartition topics", "mono"),
    Column("changelogs", "changelogs", "mono"),
    Column("sinks", "sinks", "mono"),
)
TASKS = (
    Column("task", "task", "mono"),
    Column("kind", "kind", "badge"),
    Column("state", "state", "badge"),
    Column("member", "member", "mono"),
    Column("process", "process", "mono"),
    Column("epoch", "since epoch", "number"),
    Column("held", "still held by", "mono"),
)
PROCESSES = (
    Column("member", "member", "mono"),
    Column("process", "process", "mono"),
    Column("epoch", "topology epoch", "number"),
    Column("endpoint", "endpoint", "mono"),
)


class Streams:
    """Hidden where the group is none of Kafka Streams."""

    def __init__(self) -> None:
        with ui.element("div") as self._whole:
            ui.label("Topology").classes("heading part").props('role="heading" aria-level="2"')
            self._facts = ui.label().classes("pre facts").props("data-topology")
            self._subtopologies = Grid("Subtopologies", SUBTOPOLOGIES, empty="There is no topology.", page=20)
            self._tasks = Grid("Tasks", TASKS, empty="No task is assigned.", filtered=True)
            self._processes = Grid("Processes", PROCESSES, empty="There are no processes.", page=20)
        self._whole.set_visibility(False)

    def show(self, found: StreamsView | None) -> None:
        self._whole.set_visibility(found is not None)
        if found is None:
            return
        facts = {
            "topology epoch": found["topology_epoch"],
            "fits the topics": "no" if found["validated_epoch"] != found["topology_epoch"] else "yes",
            "endpoint epoch": found["endpoint_epoch"],
            "problem": found["problem"],
        }
        self._facts.set_text("   ".join(f"{name} {one}" for name, one in facts.items() if one is not None))
        self._subtopologies.show(map(subtopology, found["subtopologies"]))
        self._tasks.show(map(task, found["tasks"]))
        self._processes.show(map(process, found["processes"]))


def subtopology(one: SubtopologyView) -> Row:
    return {
        "key": one["subtopology"],
        "subtopology": one["subtopology"],
        "tasks": words.number(one["tasks"]),
        "sources": words.short(" ".join(one["sources"]) or words.MINUS),
        "repartitions": words.short(" ".join(one["repartitions"]) or words.MINUS),
        "changelogs": words.short(" ".join(one["changelogs"]) or words.MINUS),
        "sinks": words.short(" ".join(one["sinks"]) or words.MINUS),
    }


def task(one: TaskView) -> Row:
    name = f"{one['subtopology']}_{one['task']}"
    return {
        "key": f"{name} {one['kind']} {one['member']}",
        "task": name,
        "kind": one["kind"],
        "state": one["state"],
        "member": one["member"],
        "process": one["process"],
        "epoch": words.number(one["epoch"]),
        "held": one["held_by"] or words.MINUS,
    }


def process(one: ProcessView) -> Row:
    return {
        "key": one["member"],
        "member": one["member"],
        "process": one["process"],
        "epoch": words.number(one["topology_epoch"]),
        "endpoint": one["endpoint"] or words.MINUS,
    }
