"""What rules of faults that do not match cost requests: `make bench ARGS=rules`.

The path of a request through the lab, without what serves it, by the processor time of a thread that does nothing else.
The figure is what a request takes more with rules than without the lab, the median of several rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

from ottla.broker.lab.faults.rules import Fault
from ottla.broker.lab.shapes import parse
from ottla.broker.net.context import Context
from ottla.broker.net.dispatch import Dispatcher
from ottla.protocol import messages as m
from ottla.protocol.structs import Struct

from ..support.ask import batch, fetch_message, produce_message
from ..support.faulty import DELAY, Faulty
from ..support.wire import request_frame
from .servers import Figures

ROUNDS, REQUESTS = 31, 4000
CONDITIONS: dict[str, list[dict[str, Any]]] = {
    "of another API": [{"api": "DeleteTopics"}],
    "of another version": [{"versions": "18"}],
    "of another client": [{"client_id": "other"}],
    "of clients like": [{"client_id": "other-*"}],
    "of another principal": [{"principal": "User:other"}],
    "of another listener": [{"listener": "INSIDE"}],
    "of another node": [{"node": 99}],
    "of another topic": [{"topic": "other"}],
    "of topics like": [{"topic": "other-*"}],
    "of another partition": [{"partition": 99}],
    "of another group": [{"group": "other"}],
    "of another member": [{"member": "other"}],
    "of another transactional id": [{"transactional_id": "other"}],
    "of another partition of the topic": [{"topic": "orders", "partition": 99}],
    "of another group and topic": [{"group": "other", "topic": "orders"}],
    "one of each": [
        *({name: "other"} for name in ("client_id", "topic", "group", "member", "transactional_id")),
        {"listener": "INSIDE"},
        *({name: 99} for name in ("node", "partition")),
    ],
    "100 of other topics": [{"topic": f"other-{one}"} for one in range(100)],
}


class Asked(NamedTuple):
    """A request."""

    name: str
    context: Any
    request: Struct
    frame: memoryview


class _Served:
    """In place of the dispatcher: what serves requests takes no time."""

    def serve(self, context: Any, request: Struct, size: int, send: Any, times: Any) -> None:
        return None


def _requests(faulty: Faulty) -> Iterator[Asked]:
    session = faulty.ask("Fetch", 12, fetch_message("orders", 0, wait_ms=0)).session_id
    incremental = m.FetchRequest(session_id=session, session_epoch=1, max_wait_ms=500, min_bytes=1)
    heartbeat = m.ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=3)
    commit = m.OffsetCommitRequest.OffsetCommitRequestTopic(name="orders")
    commit.partitions = [m.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    topics = [m.MetadataRequest.MetadataRequestTopic(name="orders")]
    dispatcher, peer = faulty.world.dispatcher, faulty.world.peer
    for key, name, version, message in (
        (0, "Produce", 9, produce_message("orders", batch(b"value"))),
        (1, "Fetch", 12, fetch_message("orders", 0)),
        (1, "Fetch in a session", 12, incremental),
        (3, "Metadata", 12, m.MetadataRequest(topics=topics)),
        (8, "OffsetCommit", 8, m.OffsetCommitRequest(group_id="g", member_id="a", topics=[commit])),
        (12, "Heartbeat", 4, m.HeartbeatRequest(group_id="g", member_id="a")),
        (68, "ConsumerGroupHeartbeat", 1, heartbeat),
    ):
        api = dispatcher.apis[key]
        frame = memoryview(request_frame(api.name, version, message))[4:]
        context = Context(dispatcher.broker, api, version, 1, "client", peer)
        yield Asked(name, context, message, frame)


def _nanoseconds(call: Callable[..., object], *given: object) -> float:
    began = time.thread_time_ns()
    for _ in range(REQUESTS):
        call(*given)
    return (time.thread_time_ns() - began) / REQUESTS


def rules(side: str) -> Figures:
    """Microseconds of each request beside rules of each kind."""
    if side != "ottla":
        return {}
    faulty, served = Faulty("orders"), cast(Dispatcher, _Served())
    requests, found = list(_requests(faulty)), Figures()
    for label, matches in CONDITIONS.items():
        for one in matches:
            faulty.faults.add(parse(Fault, {"action": DELAY, **one}))
        for asked in requests:
            serve, given = faulty.world.seam.serve, (asked.context, asked.request)
            more = [
                _nanoseconds(serve, served, *given, asked.frame, None, None)
                - _nanoseconds(served.serve, *given, 1, None, None)
                for _ in range(ROUNDS)
            ]
            found[f"{asked.name}, {label}: us"] = statistics.median(more) / 1000
        faulty.faults.clear()
    return found


SECTIONS = {"rules": rules}
