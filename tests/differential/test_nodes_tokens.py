"""Delegation tokens of three nodes, each of which is a broker and a controller: while there is a controller, and while
there is none, as in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..oracle.quorum import PartedQuorum
from ..support import node_stories, transcripts
from ..support.differential import Tally, told
from ..support.node_stories import NODES, AtNode, WorldWire
from ..support.parted_stories import Parted
from ..support.secured import JAAS
from ..support.stories.quorum import Quorum
from ..support.token_world import peer_of
from ..support.transcripts import Transcript

pytestmark = pytest.mark.slow
LISTENER = "SASL_PLAINTEXT"
OF_TOKENS: dict[str, object] = {
    "sasl.enabled.mechanisms": "PLAIN",
    "delegation.token.secret.key": "a secret key",
    "delegation.token.max.lifetime.ms": 600_000,
    "delegation.token.expiry.time.ms": 300_000,
}
OF_OURS = {
    "ottla.users": "alice:alice-secret",
    "listeners": f"{LISTENER}://127.0.0.1:9092",
    "listener.security.protocol.map": f"{LISTENER}:{LISTENER},CONTROLLER:PLAINTEXT",
    **{key: str(value) for key, value in OF_TOKENS.items()},
}
C, R, E = m.CreateDelegationTokenRequest, m.RenewDelegationTokenRequest, m.ExpireDelegationTokenRequest
MINUTE_MS = 60_000
Tokens = tuple[Any, Any]
"""What ours and what Kafka has answered to a creation."""


class OfAlice(AtNode):
    """A connection of Alice, who has logged in."""

    def __init__(self, story: TokenStory, node: int) -> None:
        super().__init__(story, node)
        self.theirs.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
        self.theirs.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"))

    def _dial_ours(self) -> WorldWire:
        wire = WorldWire(self.story.world, self.node)
        wire.peer = peer_of("alice", LISTENER)
        return wire


class TokenStory(Parted):
    """A story whose connections are Alice's."""

    def __init__(self, kafka: PartedQuorum | None, tally: Tally, transcript: Transcript) -> None:
        super().__init__(kafka, tally, transcript, **OF_OURS)

    def beside(self, node: int) -> AtNode:
        return OfAlice(self, node)

    def described(self, *nodes: int) -> None:
        """Waits until the nodes list the same tokens."""
        for node in nodes:
            self.at(node).agree("DescribeDelegationToken", 3, m.DescribeDelegationTokenRequest(owners=None))


@pytest.fixture(scope="module")
def kafka_parted() -> Iterator[PartedQuorum | None]:
    if transcripts.mode() == "recorded":
        yield None
        return
    with PartedQuorum({**node_stories.SETTINGS, **OF_TOKENS, **JAAS}, clients=LISTENER) as kafka:
        yield kafka


@pytest.fixture
def story(kafka_parted: PartedQuorum | None, tally: Tally, request: pytest.FixtureRequest) -> Iterator[TokenStory]:
    playing = kafka_parted is None
    with told(tally, Transcript(request.node.nodeid, playing=playing), transcripts.mode()) as transcript:
        found = TokenStory(kafka_parted, tally, transcript)
        yield found
        found.close()


def created(at: AtNode, version: int = 3) -> Tokens:
    """A token that Bob may renew."""
    bob = C.CreatableRenewers(principal_type="User", principal_name="bob")
    return at.ask("CreateDelegationToken", version, C(renewers=[bob], max_lifetime_ms=-1))


def renewal(tokens: Tokens) -> Callable[[int], Any]:
    return lambda side: R(hmac=tokens[side].hmac, renew_period_ms=2 * MINUTE_MS)


def expiry(tokens: Tokens, period_ms: int) -> Callable[[int], Any]:
    return lambda side: E(hmac=tokens[side].hmac, expiry_time_period_ms=period_ms)


def test_a_token_of_one_node_is_known_at_all(story: TokenStory) -> None:
    first, second = created(story.at(1)), created(story.at(2), 1)
    story.described(*NODES)
    story.at(3).both("RenewDelegationToken", 2, renewal(first))
    story.at(1).both("ExpireDelegationToken", 2, expiry(second, MINUTE_MS))
    story.described(*NODES)
    story.at(2).both("ExpireDelegationToken", 2, expiry(first, -1))
    story.described(*NODES)
    for at in map(story.at, NODES):
        at.both("RenewDelegationToken", 2, renewal(first))
        at.both("ExpireDelegationToken", 2, expiry(first, -1))
    story.at(3).both("ExpireDelegationToken", 2, expiry(second, -1))
    story.described(*NODES)
    assert story.errors("RenewDelegationToken") == {"NONE", "DELEGATION_TOKEN_NOT_FOUND"}


@pytest.mark.parametrize("sides", ["a side without it", "no majority"])
def test_without_a_controller_tokens_are_listed_and_not_changed(story: TokenStory, sides: str) -> None:
    """What changes them times out after a minute, whether or not the token exists."""
    quorum = Quorum(story)
    far, near = (node for node in NODES if node != quorum.leader)
    at = story.at(far)
    token, unknown = created(story.at(near)), (R(hmac=b"none"),) * 2
    story.described(*NODES)
    if sides == "no majority":
        story.part([far], [near], [quorum.leader])
    else:
        story.part([near, quorum.leader], [far])
    asked: list[tuple[str, int, Callable[[int], Any]]] = [
        ("CreateDelegationToken", 3, lambda side: C(renewers=[], max_lifetime_ms=-1)),
        ("CreateDelegationToken", 1, lambda side: C(renewers=[], max_lifetime_ms=-1)),
        ("RenewDelegationToken", 2, renewal(token)),
        ("RenewDelegationToken", 1, renewal(unknown)),
        ("ExpireDelegationToken", 2, expiry(token, -1)),
        ("ExpireDelegationToken", 1, expiry(unknown, MINUTE_MS)),
    ]
    waiting = [(name, version, story.beside(far)) for name, version, _ in asked]
    for (name, version, connection), (_, _, make) in zip(waiting, asked, strict=True):
        connection.say(name, version, make)
    at.ask("DescribeDelegationToken", 3, m.DescribeDelegationTokenRequest(owners=None))
    for name, version, connection in waiting:
        connection.hear(name, version)
        connection.close()
    at.ask("DescribeDelegationToken", 3, m.DescribeDelegationTokenRequest(owners=None))
    story.join()
    quorum.follow()
    story.at(near).both("ExpireDelegationToken", 2, expiry(token, -1))
    story.described(*NODES)
    for name in ("CreateDelegationToken", "RenewDelegationToken"):
        assert "REQUEST_TIMED_OUT" in story.errors(name)
