"""The examination `truncation`: a consumer has read records that an unclean election cuts off (KIP-320).

No schedule of faults can bring that about, because it takes three nodes: a follower is held while the consumer goes on
reading, and leads when the leader is killed. A consumer that asks where its leader epoch ends goes on from there. Only
its rule counts: a node that is killed closes connections, and their clients end nothing in good order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import Broker
from ottla.traces.reading import read, text

from ..support.poll import until
from .examinations import LONGER_SECONDS, QUICK, QUIET_SECONDS, SECONDS, Seen, end, running
from .examined.program import READ
from .verdict_page import TRUNCATION

POLL_SECONDS: Final = 0.1
RULE: Final = "KIP-320.truncation-found"
SETTINGS: Final[dict[str, object]] = {
    **QUICK,
    "ottla.nodes": 3,
    "replica.lag.time.max.ms": 500,
    "broker.session.timeout.ms": 1000,
    "broker.heartbeat.interval.ms": 100,
}
KEPT, CUT_OFF = (b"a", b"b"), (b"c", b"d", b"e")
EPOCH_ASKED: Final = "OffsetForLeaderEpoch"


class Cluster:
    """Three nodes, with a topic that the first two have."""

    def __init__(self, broker: Broker, trace: Path) -> None:
        self.lab = broker.lab
        self._trace = trace
        servers: dict[str, str | int | float | bool] = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 2}
        self._admin = AdminClient(servers)
        self._producer = Producer({**servers, "acks": 1, "topic.metadata.refresh.interval.ms": 500})
        config = {"unclean.leader.election.enable": "true"}
        self._admin.create_topics([NewTopic(READ, 1, replica_assignment=[[1, 2]], config=config)])[READ].result()

    def produce(self, *values: bytes) -> None:
        for value in values:
            self._producer.produce(READ, value, partition=0)
        assert self._producer.flush(SECONDS) == 0

    @property
    def leader(self) -> int:
        return int(self._admin.list_topics(READ, timeout=SECONDS).topics[READ].partitions[0].leader)

    def fetched(self) -> list[int]:
        """The offsets from which the client has fetched so far."""
        return [offset for api, offset in self._asked() if api == "Fetch"]

    def fetched_after(self) -> bool:
        """Whether the client has fetched since it asked for the end of an epoch."""
        asked = [api for api, _ in self._asked()]
        return EPOCH_ASKED in asked and "Fetch" in asked[asked.index(EPOCH_ASKED) :]

    def _asked(self) -> Iterator[tuple[str, int]]:
        for event in read(self._trace):
            if event["event"] == "request" and text(event, "api") in ("Fetch", EPOCH_ASKED):
                message = event["message"]
                assert isinstance(message, dict)
                for topic in message["topics"]:
                    for one in topic["partitions"]:
                        yield text(event, "api"), int(one.get("fetch_offset", -1))

    def cut_off(self) -> None:
        """Lets the follower lead, which lacks what the client has read last."""
        self.produce(*KEPT)
        until(lambda: len(KEPT) in self.fetched(), "the first records are read", SECONDS, every=POLL_SECONDS)
        self.lab.post("nodes/2", do="hold")
        self.produce(*CUT_OFF)
        until(
            lambda: len(KEPT + CUT_OFF) in self.fetched(),
            "what the follower lacks is read",
            SECONDS,
            every=POLL_SECONDS,
        )
        self.lab.post("nodes/1", do="kill")
        until(lambda: self.leader == 2, "an unclean election", SECONDS)
        self.produce(b"x")


def truncation(command: Sequence[str], directory: Path) -> Seen:
    """Lets the program of a client go through it. What is missed is that the client asks where its epoch ends."""
    log, trace = (directory / f"{TRUNCATION}.{kind}" for kind in ("log", "jsonl"))
    with Broker({**SETTINGS, "ottla.trace": str(trace)}) as broker, broker.lab.verdict("basic") as verdict:
        found = Cluster(broker, trace)
        stays = broker.bootstrap_servers.split(",")[-1]
        with running([*command, f"{TRUNCATION}={stays}"], log) as process:
            found.cut_off()
            missed: list[str] = []
            try:
                until(found.fetched_after, "where the epoch ends is asked", QUIET_SECONDS, POLL_SECONDS)
            except AssertionError:
                missed.append(EPOCH_ASKED)
            time.sleep(LONGER_SECONDS)
            end(process, TRUNCATION, log)
        return Seen(verdict.clients, missed)
