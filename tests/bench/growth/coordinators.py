"""Groups, members and transactional ids."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.protocol import messages as m

from ...support.poll import until
from ...support.wire import Wire, request_frame
from ..groups import ready
from ..servers import topic
from ..sides import Server, dispose, fresh
from . import Curve, Point
from .probes import asking, median_us, memory_kib, seconds

GROUPS = (10, 100, 1000, 10_000)
MEMBERS = (10, 100, 300, 1000)
IDS = (10, 100, 1000, 10_000)
DESCRIBED = 100
REBALANCE_MS = 300_000


def _joins(group: str, member: str) -> bytes:
    r = m.ConsumerGroupHeartbeatRequest
    asked = r(group_id=group, member_id=member, member_epoch=0, rebalance_timeout_ms=REBALANCE_MS)
    asked.subscribed_topic_names, asked.topic_partitions = ["t"], []
    return request_frame("ConsumerGroupHeartbeat", 1, asked)


def _served(side: str, **settings: object) -> Server:
    server = fresh(side, group_consumer_session_timeout_ms=60_000, **settings)
    server.start()
    topic(server, "t", 100)
    ready(server)
    with Wire(server.bootstrap_servers) as wire:

        def is_served() -> bool:
            wire.send(_joins("first", "m"))
            return not wire.reply("ConsumerGroupHeartbeat", 1).error_code

        until(is_served, "a group has a member")
    return server


def groups(side: str) -> Iterator[Point]:
    """One server; each group has a member. `load`: from the start until the last one is described."""
    server = _served(side, offsets_topic_num_partitions=1)
    before, made = memory_kib(server), 0
    for count in GROUPS:
        with Wire(server.bootstrap_servers, timeout=120) as wire:

            def more(first: int = made, last: int = count, wire: Wire = wire) -> None:
                for number in range(first, last):
                    asking(wire, _joins(f"group-{number}", "m"))()

            joined = seconds(more) / (count - made)
            made = count
            listed = median_us(asking(wire, request_frame("ListGroups", 4, m.ListGroupsRequest())))
            names = [f"group-{number}" for number in range(count - min(count, DESCRIBED), count)]
            describe = request_frame("ConsumerGroupDescribe", 0, m.ConsumerGroupDescribeRequest(group_ids=names))
            described = median_us(asking(wire, describe)) / len(names)
        used = memory_kib(server) - before
        server.stop()
        loaded = seconds(lambda names=names: _load(server, names[-1]))  # type: ignore[misc]
        before = memory_kib(server) - used  # another process, whose base is another
        yield (
            count,
            {
                "join, us": joined * 1e6,
                "list, us": listed / count,
                "describe, us": described,
                "memory, KiB": used / count,
                "start and load, s": loaded,
            },
        )
    dispose(server)


def _load(server: Server, group: str) -> None:
    server.start()
    asked = m.ConsumerGroupDescribeRequest(group_ids=[group])
    with Wire(server.bootstrap_servers, timeout=120) as wire:
        while wire.ask("ConsumerGroupDescribe", 0, asked).groups[0].error_code:
            continue


def members(side: str) -> Iterator[Point]:
    """Each point is a group of its own on one server. `settle`: three heartbeats of each member when all are there."""
    server = _served(side)
    for count in MEMBERS:
        group, names = f"group-of-{count}", [f"m{number}" for number in range(count)]
        r = m.ConsumerGroupHeartbeatRequest
        before = memory_kib(server)
        with Wire(server.bootstrap_servers, timeout=120) as wire:
            epochs: dict[str, int] = {}

            def join(wire: Wire = wire, group: str = group, names: list[str] = names) -> None:
                for name in names:
                    wire.send(_joins(group, name))
                    epochs[name] = wire.reply("ConsumerGroupHeartbeat", 1).member_epoch  # noqa: B023

            def beat(wire: Wire = wire, group: str = group, names: list[str] = names) -> None:
                for name in names:
                    asked = r(group_id=group, member_id=name, member_epoch=epochs[name])  # noqa: B023
                    asked.topic_partitions = []
                    found = wire.ask("ConsumerGroupHeartbeat", 1, asked)
                    epochs[name] = found.member_epoch if not found.error_code else epochs[name]  # noqa: B023

            joined = seconds(join)
            settled = sum(seconds(beat) for _ in range(3))
            beats = seconds(beat)
            describe = request_frame("ConsumerGroupDescribe", 0, m.ConsumerGroupDescribeRequest(group_ids=[group]))
            described = median_us(asking(wire, describe))
        yield (
            count,
            {
                "join, us": joined / count * 1e6,
                "settle, us": settled / count * 1e6,
                "heartbeat, us": beats / count * 1e6,
                "describe, us": described / count,
                "memory, KiB": (memory_kib(server) - before) / count,
            },
        )
    dispose(server)


def transactional_ids(side: str) -> Iterator[Point]:
    """One server; each id has begun."""
    server = fresh(side, transaction_state_log_num_partitions=1)
    server.start()
    topic(server, "t")
    before, made = memory_kib(server), 0
    with Wire(server.bootstrap_servers, timeout=120) as wire:

        def begin(number: int) -> None:
            asked = m.InitProducerIdRequest(transactional_id=f"id-{number}", transaction_timeout_ms=60_000)
            while wire.ask("InitProducerId", 4, asked).error_code:
                continue

        wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=1, coordinator_keys=["id-0"]))
        begin(0)
        for count in IDS:

            def more(first: int = made, last: int = count) -> None:
                for number in range(first, last):
                    begin(number)

            took = seconds(more) / (count - made)
            made = count
            listed = median_us(asking(wire, request_frame("ListTransactions", 1, m.ListTransactionsRequest())))
            yield (
                count,
                {
                    "begin, us": took * 1e6,
                    "list, us": listed / count,
                    "memory, KiB": (memory_kib(server) - before) / count,
                },
            )
    dispose(server)


CURVES = {
    "groups": Curve("groups of one member", groups),
    "members": Curve("members of one group", members),
    "transactional-ids": Curve("transactional ids", transactional_ids),
}
