"""`kafka-streams-groups` in every form, and Java's Admin in every call for streams groups, say the same of ottla and of
Apache Kafka.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record, Template

from ottla.testing import Broker

from ..support import ask
from ..support.at_once import AT_ONCE
from ..support.differential import WITHOUT_RETENTION, await_coordinators
from ..support.poll import until
from ..support.stories.streams import SETTINGS, R, info, joining, part, tasks
from ..support.wire import Wire
from .kafka import FEW_PARTITIONS, Kafka, program
from .tools import tool

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

RECORDS = 6  # of each partition
BASE_MS = 1_700_000_000_000


class Both:
    """ottla and Kafka, which are asked the same one after the other."""

    def __init__(self, *servers: str) -> None:
        self.servers = servers
        self.wires = [Wire(one) for one in servers]

    def ask(self, name: str, version: int, message: Any) -> Any:
        """Sends the same request; the errors are the same. Returns the reply of ottla."""
        replies = [wire.ask(name, version, message) for wire in self.wires]
        if hasattr(replies[0], "error_code"):
            assert replies[0].error_code == replies[1].error_code, replies
        return replies[0]

    def tool(self, *words: str, name: str = "streams.StreamsGroupCommand") -> str:
        """Runs one of Kafka's tools against both, which say the same. Returns what is said."""
        mine, theirs = (tool(name, "--bootstrap-server", one, *words) for one in self.servers)
        said = [
            sorted(_lines(one.stdout + one.stderr, at)) for one, at in zip((mine, theirs), self.servers, strict=True)
        ]
        assert said[0] == said[1], (
            f"{' '.join(words)}\nottla:\n{mine.stdout}{mine.stderr}\nKafka:\n{theirs.stdout}{theirs.stderr}"
        )
        assert mine.returncode == theirs.returncode
        return mine.stdout + mine.stderr

    def topic(self, name: str, partitions: int) -> None:
        """Makes a topic with records of known times."""
        batch = bytes(records.encode([Record(None, b"x", BASE_MS + 1000 * at) for at in range(RECORDS)], Template()))
        for wire in self.wires:
            ask.create(wire, name, partitions)
            for number in range(partitions):
                message = ask.produce_message(name, batch, number)

                def is_written(wire: Wire = wire, message: Any = message) -> bool:
                    reply = wire.ask("Produce", 9, message)
                    return bool(reply.responses[0].partition_responses[0].error_code == 0)

                until(is_written, f"records of {name}")

    def know(self, *topics: str) -> None:
        """Waits until both coordinators know topics; the group that finds out is deleted."""
        request = joining("probe", part("0", *topics))
        leave = R(group_id="probe", member_id="m1", member_epoch=-1)
        for wire in self.wires:

            def is_known(wire: Wire = wire) -> bool:
                reply = wire.ask("StreamsGroupHeartbeat", 1, request)
                wire.ask("StreamsGroupHeartbeat", 1, leave)
                wire.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=["probe"]))
                return bool(reply.active_tasks)

            until(is_known, f"{topics} are known")

    def join(self, group: str, *parts: Any, member: str = "m1", **more: Any) -> None:
        request = joining(group, *parts, member=member)
        for key, value in more.items():
            setattr(request, key, value)
        assert self.ask("StreamsGroupHeartbeat", 1, request).error_code == 0

    def beat(self, group: str, epoch: int, member: str = "m1", **more: Any) -> Any:
        return self.ask("StreamsGroupHeartbeat", 1, R(group_id=group, member_id=member, member_epoch=epoch, **more))

    def commit(self, group: str, topic: str, *offsets: int, member: str = "", epoch: int = -1) -> None:
        r = m.OffsetCommitRequest
        rows = [
            r.OffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
            for number, offset in enumerate(offsets)
        ]
        request = r(group_id=group, member_id=member, generation_id_or_member_epoch=epoch)
        request.topics = [r.OffsetCommitRequestTopic(name=topic, partitions=rows)]
        self.ask("OffsetCommit", 9, request)

    def same_topics(self, prefix: str) -> None:
        """Waits until both have the same topics whose names begin with a prefix."""
        request = m.MetadataRequest(topics=None)

        def are_same() -> bool:
            mine, theirs = (
                {one.name for one in wire.ask("Metadata", 12, request).topics if one.name.startswith(prefix)}
                for wire in self.wires
            )
            return mine == theirs

        until(are_same, f"the same topics of {prefix}", within=10)

    def close(self) -> None:
        for wire in self.wires:
            wire.close()


def _lines(text: str, server: str) -> Iterator[str]:
    """The words of each line: the widths of columns are those of the widest value. A stack trace is left out."""
    for line in text.replace(server, "SERVER").splitlines():
        if not line.startswith("\tat "):
            yield " ".join(line.split())


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    with ExitStack() as stack:
        ours = stack.enter_context(Broker({**AT_ONCE, **SETTINGS, **FEW_PARTITIONS}, lab=False))
        theirs = stack.enter_context(Kafka(SETTINGS | WITHOUT_RETENTION | FEW_PARTITIONS))
        servers = ours.bootstrap_servers, theirs.bootstrap_servers
        for one in servers:
            await_coordinators(one)
            tool("streams.StreamsGroupCommand", "--bootstrap-server", one, "--list")  # the first one logs
        found = Both(*servers)
        yield found
        found.close()


def application(both: Both, group: str) -> tuple[Any, ...]:
    """The topology of an application with two input topics and internal topics; its topics are there."""
    names = {f"{group}-in": 2, f"{group}-in-2": 2, f"{group}-by-repartition": 2, f"{group}-store-changelog": 2}
    for name, count in names.items():
        both.topic(name, count)
    both.know(*names)
    return (
        part("0", f"{group}-in", sinks=[f"{group}-by-repartition"]),
        part(
            "1",
            f"{group}-in-2",
            repartitions=[info(f"{group}-by-repartition", 2)],
            changelogs=[info(f"{group}-store-changelog")],
        ),
    )


def active_group(both: Both, group: str) -> None:
    """A group of two members that have their tasks, and has committed offsets."""
    parts = application(both, group)
    tag = R.KeyValue(key="zone", value="a")
    both.join(group, *parts, client_tags=[tag], user_endpoint=R.Endpoint(host="here", port=7))
    both.join(group, *parts, member="m2", instance_id="i2", rack_id="r2")
    every, half = tasks(s0=[0, 1], s1=[0, 1]), tasks(s0=[0], s1=[0])
    for epoch, member, has in ((2, "m1", every), (2, "m1", half), (3, "m2", []), (3, "m2", tasks(s0=[1], s1=[1]))):
        instance = "i2" if member == "m2" else None
        both.beat(group, epoch, member, active_tasks=has, standby_tasks=[], warmup_tasks=[], instance_id=instance)
    both.commit(group, f"{group}-in", 2, member="m1", epoch=3)
    both.commit(group, f"{group}-in-2", 1, member="m1", epoch=3)


def empty_group(both: Both, group: str) -> None:
    """A group without members, which has committed offsets."""
    both.join(group, *application(both, group))
    for name, *offsets in ((f"{group}-in", 2, 4), (f"{group}-in-2", 1, 1), (f"{group}-by-repartition", 3, 3)):
        both.commit(group, str(name), *map(int, offsets), member="m1", epoch=2)
    both.beat(group, -1)


FORMS = (
    ["--describe"],
    ["--describe", "--verbose"],
    ["--describe", "--offsets"],
    ["--describe", "--offsets", "--verbose"],
    ["--describe", "--members"],
    ["--describe", "--members", "--verbose"],
    ["--describe", "--state"],
    ["--describe", "--state", "--verbose"],
)


def test_groups_are_described(both: Both) -> None:
    active_group(both, "td-active")
    empty_group(both, "td-empty")
    both.join("td-unready", part("0", "td-missing"))
    for group, word in (("td-active", "Stable"), ("td-empty", "Empty"), ("td-unready", "NotReady")):
        for form in FORMS:
            both.tool(*form, "--group", group, "--timeout", "2000")
        assert word in both.tool("--describe", "--group", group, "--state")
    for form in FORMS:
        both.tool(*form, "--group", "td-absent")
        both.tool(*form, "--group", "td-active", "--group", "td-empty")
    both.beat("td-unready", -1)
    for form in FORMS:
        both.tool(*form, "--all-groups")
    assert "m2" in both.tool("--describe", "--group", "td-active", "--members")


def test_groups_are_listed(both: Both) -> None:
    active_group(both, "tl-active")
    empty_group(both, "tl-empty")
    states = ("Empty", "Stable", "NotReady", "Empty,Stable", "dead", "nonsense")
    for words in ([], ["--state"], *(["--state", one] for one in states)):
        both.tool("--list", *words)
    for words in ([], ["--streams"], ["--group-type", "streams"], ["--protocol", ""], ["--consumer"]):
        both.tool("--list", *words, name="GroupsCommand")
    assert "tl-empty" in both.tool("--list")


# offsets that are reset

TO = (
    ["--to-earliest"],
    ["--to-latest"],
    ["--to-current"],
    ["--to-offset", "5"],
    ["--to-offset", "100"],
    ["--to-offset", "-3"],
    ["--shift-by", "1"],
    ["--shift-by", "-100"],
    ["--to-datetime", "2023-11-14T22:13:23.000"],
    ["--to-datetime", "2099-01-01T00:00:00.000"],
    ["--to-datetime", "yesterday"],
    ["--by-duration", "P10000D"],
    ["--by-duration", "PT0S"],
    ["--by-duration", "1D"],
)


def test_offsets_are_reset(both: Both, tmp_path: Path) -> None:
    group = "tr"
    empty_group(both, group)
    for to in TO:
        for scope in (["--all-input-topics"], ["--input-topic", f"{group}-in"], ["--input-topic", f"{group}-in:1"]):
            both.tool("--reset-offsets", "--group", group, *scope, *to, "--dry-run")
    for scope in (
        ["--input-topic", f"{group}-in", "--input-topic", f"{group}-in-2"],
        ["--input-topic", "absent"],
        ["--input-topic", f"{group}-in:9"],
        ["--input-topic", f"{group}-by-repartition"],
        ["--input-topic", f"{group}-store-changelog"],
    ):
        both.tool("--reset-offsets", "--group", group, *scope, "--to-earliest", "--dry-run")
    exported = both.tool(
        "--reset-offsets", "--group", group, "--all-input-topics", "--to-latest", "--dry-run", "--export"
    )
    assert f"{group}-in,0,{RECORDS}\n" in exported
    for number, text in enumerate((f"{group}-in,0,4\n{group}-in-2,0,0\n", "nonsense\n", f"{group}-in,x,4\n", "")):
        plan = tmp_path / f"{number}.csv"
        plan.write_text(text)
        both.tool("--reset-offsets", "--group", group, "--from-file", str(plan), "--dry-run")
    both.tool("--reset-offsets", "--group", group, "--from-file", str(tmp_path / "absent.csv"), "--dry-run")
    both.tool("--describe", "--group", group)


def test_offsets_that_were_reset_are_committed(both: Both, tmp_path: Path) -> None:
    """And the internal topics are deleted, all or those that are named."""
    plan = tmp_path / "plan.csv"
    for number, words in enumerate(
        (
            ["--all-input-topics", "--to-latest"],
            ["--input-topic", "te-{}-in", "--to-earliest"],
            ["--all-input-topics", "--shift-by", "1", "--delete-all-internal-topics"],
            ["--all-input-topics", "--to-offset", "3", "--delete-internal-topic", "te-{}-store-changelog"],
            ["--all-input-topics", "--to-offset", "3", "--delete-internal-topic", "absent"],
            ["--all-input-topics", "--to-offset", "3", "--delete-internal-topic", "te-{}-in"],
            ["--from-file", str(plan), "--delete-all-internal-topics"],
        )
    ):
        group = f"te-{number}"
        empty_group(both, group)
        plan.write_text(f"{group}-in,0,4\n{group}-in-2,0,0\n")
        both.tool("--reset-offsets", "--group", group, *(word.format(number) for word in words), "--execute")
        both.tool("--describe", "--group", group, "--offsets", "--verbose")
        both.same_topics(group)


def test_offsets_that_cannot_be_reset(both: Both) -> None:
    active_group(both, "tn-active")
    both.join("tn-unready", part("0", "tn-missing"))
    both.beat("tn-unready", -1)
    some = ["--reset-offsets", "--all-input-topics", "--to-earliest"]
    for group in ("tn-active", "tn-unready", "tn-absent", ""):
        for how in ("--dry-run", "--execute"):
            both.tool(*some, "--group", group, how)
    both.tool(*some, "--group", "tn-active")
    both.tool(*some, "--group", "tn-active", "--dry-run", "--execute")
    both.tool(*some, "--to-latest", "--group", "tn-active", "--dry-run")
    both.tool("--reset-offsets", "--to-latest", "--group", "tn-active", "--dry-run")
    both.tool(*some, "--dry-run")


# deletion


def test_offsets_are_deleted(both: Both) -> None:
    for group, make in (("to-active", active_group), ("to-empty", empty_group)):
        make(both, group)
        for scope in (
            ["--input-topic", f"{group}-in-2"],
            ["--input-topic", f"{group}-in:0"],
            ["--input-topic", "absent"],
            ["--input-topic", f"{group}-by-repartition"],
            ["--all-input-topics"],
            ["--input-topic", f"{group}-in", "--input-topic", "absent"],
        ):
            both.tool("--delete-offsets", "--group", group, *scope)
            both.tool("--describe", "--group", group)
    both.tool("--delete-offsets", "--group", "to-absent", "--all-input-topics")
    both.tool("--delete-offsets", "--group", "to-active")


def test_groups_are_deleted(both: Both) -> None:
    active_group(both, "tx-active")
    for name in ("tx-1", "tx-2", "tx-3"):
        empty_group(both, name)
    for words in (
        ["--group", "tx-active"],
        ["--group", "tx-absent"],
        ["--group", "tx-1"],
        ["--group", "tx-2", "--group", "tx-active", "--group", "tx-absent"],
        ["--group", "tx-3", "--delete-all-internal-topics"],
        ["--group", "tx-active", "--delete-all-internal-topics"],
    ):
        both.tool("--delete", *words)
        for name in ("tx-1", "tx-2", "tx-3", "tx-active"):
            both.same_topics(name)
        both.tool("--list", "--state")
    both.tool("--delete", "--all-groups", "--delete-all-internal-topics")
    both.tool("--list", "--state")


def test_words_that_do_not_go_together(both: Both) -> None:
    for words in (
        [],
        ["--list", "--describe"],
        ["--describe"],
        ["--describe", "--group", "x", "--members", "--state"],
        ["--delete"],
        ["--delete", "--group", "x", "--dry-run"],
        ["--list", "--group", "x"],
        ["--delete-offsets", "--group", "x"],
        ["--describe", "--group", "x", "--state", "Empty"],
        ["--nonsense"],
    ):
        both.tool(*words)


def test_javas_admin(both: Both, tmp_path: Path) -> None:
    for name in ("ta-active", "ta-empty"):
        both.topic(name, 2)
        both.know(name)
        both.join(name, part("0", name), user_endpoint=R.Endpoint(host="here", port=7))
        both.commit(name, name, 1, 2, member="m1", epoch=2)
    both.join("ta-active", part("0", "ta-active"), member="m2", instance_id="i2")
    both.beat("ta-empty", -1)
    command = program("tools", "StreamsAdmin", tmp_path)
    said = []
    for server in both.servers:
        words = [*command, server, "ta-active", "ta-empty"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False)
        assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-4000:]
        said.append(done.stdout.splitlines())
    assert not [(mine, theirs) for mine, theirs in zip(*said, strict=True) if mine != theirs]
    assert any(line.startswith("described ta-active = [ta-active, Reconciling") for line in said[0]), said[0]
