"""The connections of `chance.py` to each broker, and brokers whose users log in and have rights."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.differential import await_coordinators_of
from ..support.poll import until
from ..support.secured import PASSWORDS, SETTINGS, SecuredKafka, settle
from ..support.wire import Closed, Wire
from .chance_requests import Known

REPLY_SECONDS: Final = 8.0
BEHIND_SECONDS: Final = 2.0  # for which a broker may say something else than it will
USERS: Final = ("admin", "alice", "bob")


class Side:
    """Connections to one broker, which are made again when they are lost. `users`: those who ask in turn; the one with
    an empty name does not log in.
    """

    def __init__(self, servers: str, known: Known, users: tuple[str, ...] = ("",)) -> None:
        self.servers, self.known = servers, known
        self.wires = {user: self._dialed(user) for user in users}
        self.user = users[0]

    def ask(self, name: str, version: int, message: Any) -> Any:
        """Returns the reply; a word where there is none."""
        try:
            return self.wires[self.user].ask(name, version, message)
        except Closed:
            return self._again("closed")
        except TimeoutError:
            return self._again("no reply")

    def close(self) -> None:
        for wire in self.wires.values():
            wire.close()

    def _again(self, word: str) -> str:
        self.wires[self.user].close()
        self.wires[self.user] = self._dialed(self.user)
        return word

    def _dialed(self, user: str) -> Wire:
        wire = Wire(self.servers, timeout=REPLY_SECONDS)
        if user:
            wire.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
            token = f"\0{user}\0{PASSWORDS[user]}".encode()
            wire.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=token))
        return wire

    def make_topics(self) -> Any:
        """Makes the topics of the episode, and waits until their partitions are led."""
        r, o, e = m.CreateTopicsRequest, m.ListOffsetsRequest, self.known.episode
        named = {f"t{e}": 2, f"u{e}": 1}
        topics = [r.CreatableTopic(name=n, num_partitions=count, replication_factor=1) for n, count in named.items()]
        reply = self.ask("CreateTopics", 7, r(topics=topics, timeout_ms=30_000))
        wanted = [
            o.ListOffsetsTopic(
                name=name, partitions=[o.ListOffsetsPartition(partition_index=p, timestamp=-1) for p in range(count)]
            )
            for name, count in named.items()
        ]

        def are_led() -> bool:
            found = self.ask("ListOffsets", 5, o(replica_id=-1, topics=wanted))
            return not any(part.error_code for topic in found.topics for part in topic.partitions)

        until(are_led, "the topics are led")
        return reply

    def await_end(self, transactional_id: str, *states: str) -> None:
        """Returns when no end of a transaction is on its way to the partitions, and it is in none of these states."""
        asked = m.DescribeTransactionsRequest(transactional_ids=[transactional_id])

        def is_ended() -> bool:
            state = self.ask("DescribeTransactions", 0, asked).transaction_states[0].transaction_state
            return not state.startswith("Prepare") and state not in states

        until(is_ended, "the transaction has ended")

    def await_topics(self, counts: dict[str, int]) -> None:
        """Returns when topics have these numbers of partitions; after a while also if they have not."""
        r, until_s = m.MetadataRequest, time.monotonic() + BEHIND_SECONDS
        while counts and time.monotonic() < until_s:
            found = self.ask("Metadata", 9, r(topics=[r.MetadataRequestTopic(name=name) for name in counts])).topics
            pairs = [(len(one.partitions), counts[one.name]) for one in found]
            if all(count == wanted or wanted < 0 < count for count, wanted in pairs):
                return


AUTHORIZED: Final[dict[str, object]] = {
    **SETTINGS,
    "connection.failed.authentication.delay.ms": 0,
    "delegation.token.secret.key": "a secret key",
    "delegation.token.max.lifetime.ms": 600_000,
    "delegation.token.expiry.time.ms": 120_000,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
}


@contextmanager
def authorizing_brokers(settings: dict[str, object], others: dict[str, object]) -> Iterator[tuple[str, str]]:
    """The addresses of both brokers, whose users log in; `others`: settings of Kafka's that ours need not have."""
    with (
        Broker({**settings, **AUTHORIZED}, lab=False) as ours,
        SecuredKafka({**settings, **AUTHORIZED, **others}) as kafka,
    ):
        settle(kafka.sasl_servers, "PLAIN", b"\0admin\0admin-secret")
        servers = ours.bootstrap_servers, kafka.sasl_servers
        for one in servers:
            side = Side(one, Known(""), USERS)
            await_coordinators_of(side.ask)
            side.close()
        yield servers
