"""Deliberate faults of the broker, which the checks of a history of nodes (history_checks.py) must find.

Each is one line of the running code, as those of the simulators are (tests/sim/cluster_bugs.py). A broker with a fault
serves one client through a few steps of a history. The client is killed then, because it may wait for ever for what is
lost, and what its journal says is compared with what the broker has.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from ottla.broker.replica.appender import Appender
from ottla.broker.replica.high_watermarks import HighWatermarks
from ottla.broker.replica.partition import Partition
from ottla.broker.share.persister import StatePersister
from ottla.broker.transaction.completion import Completion
from ottla.coordinator.hashing import partition_for
from ottla.coordinator.metadata import elections
from ottla.coordinator.parked import ParkedReplies

from ottla.cli import main
from ottla.testing import Broker

from ..oracle.cluster_pair import Nodes
from ..support.bugs import Bug, with_bug
from ..support.poll import until
from . import history, history_checks
from .history import PARTITIONS, Program

SETTINGS: dict[str, object] = {
    **history.SETTINGS,
    "broker.session.timeout.ms": 1000,
    "replica.lag.time.max.ms": 500,
    "ottla.high.watermark": "lag=100ms",
}
SLOW: dict[str, object] = {"replica.lag.time.max.ms": 600_000, "broker.session.timeout.ms": 60_000}
"""Replicas stay in sync while they get nothing, also where a busy machine lets a second pass between heartbeats."""
STEPS = ("lose 50", "keep", "hold 3", "kill 2", "start 2", "release 3", "cut 1", "heal 1", "move")
REPLIES = 5  # that are lost
LOST = r"record \d+ was acknowledged and is lost"


def kill(cluster: Nodes, program: Program) -> None:
    program.kill()


def kill_after_a_move(cluster: Nodes, program: Program) -> None:
    """Lets other replicas lead that have not got what was acknowledged last."""
    _move_behind(cluster, program, "acked", 60, program.name)


def kill_after_a_commit(cluster: Nodes, program: Program) -> None:
    """Lets a replica coordinate the client's group that has not got the offsets that were committed last."""
    group = f"{program.name}-classic"
    count = int(str(SETTINGS["offsets.topic.num.partitions"]))
    some = 2 * PARTITIONS  # one commit is of all partitions at most
    _move_behind(cluster, program, "committed", some, "__consumer_offsets", partition_for(group, count))


def _move_behind(
    cluster: Nodes, program: Program, kind: str, more: int, topic: str, partition: int | None = None
) -> None:
    """Lets the client do more while followers get nothing. Then it ends, and the node that leads then leads no more:
    on a busy machine a node's session can be over, and another one lead than at first.
    """
    lab = cluster.broker.lab
    lab.hold(topic, partition)

    def behind() -> bool:
        """What the program is heard to have done may be from before the hold."""
        found = lab.get(f"partitions/{topic}/{partition or 0}")
        return all(one["lag"] for one in found["replicas"] if one["node"] != found["leader"])

    until(behind, f"the followers of {topic} are behind", every=history.POLL_SECONDS)
    enough = program.counts[kind] + more
    until(lambda: program.counts[kind] >= enough, f"{kind} while {topic} is held", every=history.POLL_SECONDS)
    program.kill()
    cluster.happens("stop", lab.get(f"partitions/{topic}/{partition or 0}")["leader"])
    until(lambda: any(one["topic"] == topic for one in lab.get("losses")["losses"]), f"the logs of {topic} are cut")
    lab.release(topic, partition)


def kill_after_lost_replies(cluster: Nodes, program: Program) -> None:
    """Ends the client when it has sent again what was in batches whose replies were lost. On a busy machine one batch
    has so many records that all replies but few may come through.
    """
    lab = cluster.broker.lab

    def lost() -> int:
        return sum(int(one["applied"]) for one in lab.get("faults")["faults"])

    until(lambda: lost() >= REPLIES, "replies to some batches are lost", every=history.POLL_SECONDS)
    last = max(int(number) for (number,) in program.said("acked"))

    def all_known() -> bool:
        known = {int(number) for kind in ("acked", "lost") for (number,) in program.said(kind)}
        return known.issuperset(range(min(known), last + 1))

    until(all_known, f"all records up to {last} are acknowledged", every=history.POLL_SECONDS)
    program.kill()


def kill_after_a_second_delivery(cluster: Nodes, program: Program) -> None:
    def has_happened() -> bool:
        return any(one.endswith("times") for one in history_checks.wrong_accepts(program))

    until(has_happened, "a second delivery", every=history.POLL_SECONDS)
    program.kill()


@dataclass(frozen=True)
class Fault:
    """`complaint`: what the checks say, as a pattern; `client`: who works meanwhile; `end`: ends the client."""

    bug: Bug
    steps: Sequence[str]
    complaint: str
    client: str = "aiokafka"
    settings: Mapping[str, object] = field(default_factory=dict)
    end: Callable[[Nodes, Program], None] = kill


FAULTS = {
    "a replica out of sync is elected": Fault(
        (elections, "_elected", "if one in clean and may_lead(one)]", "if may_lead(one)]"),
        ("hold 3", "keep", "keep", "kill 2"),
        LOST,
    ),
    "a leader confirms what it took when another one has been elected": Fault(
        (Partition, "forget_stale", "later.fail(ApiError(Errors.NOT_LEADER_OR_FOLLOWER))", "later.finish(None)"),
        ("cut 1", "heal 1"),
        LOST,
    ),
    "the high watermark passes what the replicas in sync do not have": Fault(
        (HighWatermarks, "move", "partition.advance(min(end, bound))", "partition.advance(bound)"),
        (),
        LOST,
        settings=SLOW,
        end=kill_after_a_move,
    ),
    "a batch that was sent again is appended again": Fault(
        (Appender, "append", "if header.producer_id >= 0:\n        duplicate", "if False:\n        duplicate"),
        ("lose 50",),
        r"record \d+ is there \d times",
        end=kill_after_lost_replies,
    ),
    "a coordinator confirms offsets that are not committed": Fault(
        (
            ParkedReplies,
            "park",
            "self._queue += writes",
            # heartbeats, too: commits wait behind one, and a busy machine is not done before it
            "self._queue += writes; self.release(offset)",
        ),
        (),
        r"aiokafka-classic committed \d:\d+, and -?\d+ is left",
        settings=SLOW,
        end=kill_after_a_commit,
    ),
    "a transaction has no marker in a partition": Fault(
        (Completion, "__init__", "set(decided.partitions)", "{one for one in decided.partitions if one[1] != 1}"),
        (),
        r"transaction \d+ has left \[1, 0, 1\], of \(3,\)",
    ),
    "acknowledgements of share groups are not written": Fault(
        (StatePersister, "write", "await self.states.write_state(key, write)", "pass"),
        ("move",),
        r"the share group accepted \d+ \d times",
        client="librdkafka",
        end=kill_after_a_second_delivery,
    ),
}


class Faulty(Broker):
    """A broker with a fault."""

    def __init__(self, fault: str, settings: dict[str, object]) -> None:
        super().__init__(settings)
        self.fault = fault

    def _command(self) -> list[str]:
        python, _, _, *arguments = super()._command()
        there = f"import sys; sys.path.insert(0, {str(history.ROOT)!r}); from {__name__} import serve; serve()"
        return [python, "-c", there, self.fault, *arguments]


def serve() -> None:
    """The process of a broker with a fault: the command `ottla`, after the name of the fault."""
    with_bug(FAULTS[sys.argv.pop(1)].bug)
    main()


def complaints(name: str) -> list[str]:
    """Returns what the checks say of a client that a broker with a fault has served."""
    fault = FAULTS[name]
    cluster = Nodes({**SETTINGS, **fault.settings})
    cluster.broker = Faulty(name, cluster.broker.settings)
    with cluster:
        history.prepare(cluster, [fault.client])
        program = history.started(fault.client, history.command(fault.client, history.ROOT), cluster)
        try:
            history.go_through(cluster, [program], fault.steps)
            fault.end(cluster, program)
        finally:
            program.kill()
        cluster.broker.lab.delete("faults")
        return _wrong(history.servers(cluster), program)


def complaints_without_a_fault() -> dict[str, list[str]]:
    """Lets the same happen to a broker that has none; each client comes to its end."""
    names = dict.fromkeys(fault.client for fault in FAULTS.values())
    with Nodes(SETTINGS) as cluster:
        history.prepare(cluster, list(names))
        programs = [history.started(name, history.command(name, history.ROOT), cluster) for name in names]
        try:
            history.run(cluster, programs, STEPS)
            found = {one.name: history_checks.check(history.servers(cluster), one) for one in programs}
            return {name: wrong for name, wrong in found.items() if wrong}
        finally:
            for one in programs:
                one.kill()


def _wrong(address: str, program: Program) -> list[str]:
    """Like `history_checks.check`, of a client that has not come to its end. Its last transaction may be open: until it
    ends, the committed offsets of its group are not given.
    """
    name, records = program.name, history_checks.contents(address, program.name)
    offsets_of = partial(history_checks.committed, address, topic=name, count=PARTITIONS)
    last = max(int(number) for (number,) in program.said("whole"))
    return [
        *history_checks.wrong_records(program, records),
        *history_checks.wrong_reads(program, records, offsets_of),
        *history_checks.wrong_accepts(program),
        *history_checks.wrong_transactions(program, history_checks.contents(address, f"{name}-whole"), last),
    ]


def is_found(fault: str, said: Sequence[str]) -> bool:
    return any(re.fullmatch(FAULTS[fault].complaint, one) for one in said)
