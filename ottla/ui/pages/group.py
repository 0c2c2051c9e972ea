"""A group: what it waits for, its members, its offsets with their lag or its tasks, and what happened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote

from nicegui import ui

from ...lab_client import segment
from .. import words
from ..frame import Page
from ..grid import Action, Column, Grid, Row
from .records import offset_of, time_of
from .streams import Streams
from .timeline import Timeline

if TYPE_CHECKING:
    from ...broker.lab.group_resets import ResetView
    from ...broker.lab.group_views import GroupStateView, OffsetView, ShareLagView
    from ...broker.lab.share_resets import DeletedOffsetsView
    from ...coordinator.group.view import GroupMemberView, TimerView, WaitView

MEMBERS = (
    Column("member", "member", "mono"),
    Column("client", "client", "mono"),
    Column("host", "host", "mono"),
    Column("state", "state", "badge"),
    Column("epoch", "epoch", "number"),
    Column("assigned", "has", "mono"),
    Column("target", "is to have", "mono"),
    Column("owes", "must give up", "mono"),
    Column("timers", "timers", "mono"),
)
WAITS = (
    Column("member", "member", "mono"),
    Column("action", "must", "badge"),
    Column("partitions", "partitions", "mono"),
    Column("by", "for", "mono"),
    Column("left", "time left", "number"),
)
OFFSETS = (
    Column("place", "partition", "mono"),
    Column("committed", "committed", "number"),
    Column("pending", "in a transaction", "number"),
    Column("high", "high watermark", "number"),
    Column("lag", "lag", "number"),
    Column("time", "committed at", "mono"),
    Column("metadata", "metadata", "mono"),
)
SHARES = (
    Column("place", "share-partition", "mono"),
    Column("start", "start", "number"),
    Column("flight", "in flight", "number"),
    Column("high", "high watermark", "number"),
    Column("lag", "lag", "number"),
)
PLAN_LINES_MAX = 20
TO = {
    "earliest": "the log start",
    "latest": "the high watermark",
    "offset": "an offset",
    "timestamp": "a time",
    "by": "some records on or back",
}


def build(page: Page, name: str) -> None:
    Group(page, name)


class Group:
    def __init__(self, page: Page, name: str) -> None:
        self._page, self._name = page, name
        self._absent = ui.label().classes("empty")
        self._absent.set_visibility(False)
        with ui.element("div") as self._whole:
            with ui.row().classes("tools"):
                self._facts = ui.label().classes("pre facts")
                ui.space()
                self._queue = ui.link("queue", page.link.at(f"queues?group={quote(name, safe='')}"))
            heading("Waits for")
            self._waits = Grid("Waits for", WAITS, empty="It waits for nothing.", page=10)
            heading("Members")
            self._members = Grid("Members", MEMBERS, empty="There are no members.", filtered=True)
            heading("Offsets")
            self._offsets = Grid(
                "Offsets",
                OFFSETS,
                empty="No offset is committed.",
                filtered=True,
                page=20,
                actions=(Action("reset", "reset"),),
                on_act=self._act,
            )
            self._shares = Grid(
                "Share-partitions",
                SHARES,
                empty="There are no share-partitions.",
                page=20,
                actions=(Action("reset", "reset"), Action("delete", "forget")),
                on_act=self._act,
            )
            self._streams = Streams()
        self._timeline = Timeline(page, name)
        self._live = page.live(self._fetch, self._show, absent=self._gone)

    async def _fetch(self) -> GroupStateView:
        found: GroupStateView = await self._page.link.get(f"groups/{segment(self._name)}")
        return found

    def _gone(self, problem: str) -> None:
        self._absent.set_text(problem)
        self._absent.set_visibility(True)
        self._whole.set_visibility(False)

    def _show(self, found: GroupStateView) -> None:
        self._absent.set_visibility(False)
        self._whole.set_visibility(True)
        members, offsets, is_share = list(found["members"]), list(found["offsets"]), found["kind"] == "share"
        facts = {
            "kind": found["kind"],
            "state": found["state"],
            "epoch": found["epoch"],
            "assignment epoch": found["assignment_epoch"],
            "assignor": found["assignor"],
            "leader": found["leader"],
            "members": len(members),
            "lag": None if is_share else sum(one["lag"] or 0 for one in offsets),
            "shard": found["coordinator"],
            "timers": timers(found["timers"]),
        }
        self._facts.set_text("   ".join(f"{name} {one}" for name, one in facts.items() if one not in (None, "")))
        self._queue.set_visibility(is_share)
        self._waits.show(wait(number, one) for number, one in enumerate(found["waits"]))
        self._members.show(map(member, members))
        self._offsets.show(map(offset, offsets))
        self._shares.show(map(share, found["share_partitions"]))
        self._streams.show(found["streams"])
        for one, is_shown in ((self._offsets, not is_share), (self._shares, is_share)):
            one.set_visibility(is_shown)

    async def _act(self, action: str, key: str) -> None:
        topic, _, partition = key.rpartition("/")
        path, link = f"groups/{segment(self._name)}/offsets", self._page.link
        if action == "delete":
            plan: ResetView | DeletedOffsetsView | None = await self._page.asked(
                link.delete(path, topic=topic, plan="true")
            )
            if plan and await agreed(f"Forget what the group has read of {topic}?", plan, "forget"):
                await self._page.act(link.delete(path, topic=topic), "the topic is forgotten", self._live)
            return
        wanted = await where_to(topic, int(partition))
        if wanted is not None:
            plan = await self._page.asked(link.put(path, topic=topic, plan=True, **wanted))
            if plan and await agreed(f"Set the offsets of {topic}?", plan, "set"):
                done = link.put(path, topic=topic, **wanted)
                await self._page.act(done, "the offsets are set", self._live)


def heading(text: str) -> ui.label:
    return ui.label(text).classes("heading part").props('role="heading" aria-level="2"')


def member(one: GroupMemberView) -> Row:
    client = one["client_id"] + (f" ({one['instance_id']})" if one["instance_id"] else "")
    assigned, target = one["assigned"], one["target"]
    return {
        "key": one["member"],
        "member": one["member"],
        "client": client,
        "host": one["client_host"],
        "state": one["state"],
        "epoch": one["epoch"],
        "assigned": words.short(words.places(assigned)),
        "target": words.MINUS if target is None or target == assigned else words.short(words.places(target)),
        "owes": words.short(words.places(one["revoking"])),
        "timers": timers(one["timers"]),
    }


def timers(found: Iterable[TimerView]) -> str:
    return "  ".join(f"{one['timer']} {words.span(one['remaining_ms'])}" for one in found)


def wait(number: int, one: WaitView) -> Row:
    return {
        "key": str(number),
        "member": one["member"] or words.MINUS,
        "action": one["action"],
        "partitions": words.places(one["partitions"]),
        "by": words.short(" ".join(one["awaited_by"]) or words.MINUS),
        "left": words.span(one["remaining_ms"]),
    }


def offset(one: OffsetView) -> Row:
    place = f"{one['topic']}/{one['partition']}"
    return {
        "key": place,
        "title": place,
        "place": place,
        "committed": words.number(one["committed_offset"]),
        "pending": words.number(one["in_transaction"]),
        "high": words.number(one["high_watermark"]),
        "lag": words.number(one["lag"]),
        "time": words.time(one["committed_ms"]),
        "metadata": words.short(one["metadata"], 60),
    }


def share(one: ShareLagView) -> Row:
    place = f"{one['topic']}/{one['partition']}"
    return {
        "key": place,
        "title": place,
        "place": place,
        "start": words.number(one["start_offset"]),
        "flight": words.number(one["in_flight"]),
        "high": words.number(one["high_watermark"]),
        "lag": words.number(one["lag"]),
    }


async def where_to(topic: str, partition: int) -> dict[str, object] | None:
    """Asks where offsets are set to; None if the user does not want it."""
    with ui.dialog() as dialog, ui.card().classes("ask"):
        ui.label(f"Set the offset of {topic}").classes("heading")
        is_all = ui.checkbox("in all partitions", value=False)
        to = ui.select(TO, value="earliest", label="to").props("dense outlined options-dense")
        what = ui.input("offset, time (UTC) or number").props("dense outlined")
        what.bind_visibility_from(to, "value", lambda way: way not in ("earliest", "latest"))
        with ui.row().classes("end"):
            ui.button("cancel", on_click=lambda: dialog.submit(False)).props("flat no-caps")
            ui.button("plan", on_click=lambda: dialog.submit(True)).props("no-caps unelevated data-yes")
    if await dialog is not True:
        return None
    wanted: dict[str, object] = {} if is_all.value else {"partition": partition}
    text = str(what.value or "").strip()
    if to.value in ("earliest", "latest"):
        return wanted | {"to": to.value}
    number = time_of(text) if to.value == "timestamp" else offset_of(text)
    if number is None:
        ui.notify(f"{text!r} is not what that takes", type="negative")
        return None
    return wanted | {str(to.value): number}


async def agreed(question: str, plan: ResetView | DeletedOffsetsView, word: str) -> bool:
    """Shows what would be set, and asks whether it is to be carried out."""
    lines = []
    for one in plan["offsets"][:PLAN_LINES_MAX]:
        after = one.get("committed_offset")
        to = f" → {words.number(after)}" if isinstance(after, int) else ""
        lines.append(f"{one['topic']}/{one['partition']}: {words.number(one['before'])}{to}")
    if len(plan["offsets"]) > PLAN_LINES_MAX:
        lines.append(f"and {len(plan['offsets']) - PLAN_LINES_MAX} more")
    with ui.dialog() as dialog, ui.card().classes("ask"):
        ui.label(question).classes("heading")
        ui.label("\n".join(lines)).classes("pre mono").props("data-plan")
        with ui.row().classes("end"):
            ui.button("cancel", on_click=lambda: dialog.submit(False)).props("flat no-caps")
            ui.button(word, on_click=lambda: dialog.submit(True)).props("no-caps unelevated data-carry-out")
    return await dialog is True
