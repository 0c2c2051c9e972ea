"""The clients of `make chance` that do their work: what one asks follows from its seed, and most of it is right."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from ottla.protocol import codec
from ottla.protocol import messages as m

from ..oracle.chance import CLIENTS, Comparison
from ..oracle.chance_expiring import BURST, PAUSE
from ..oracle.chance_requests import Known
from ..support.at_once import IN_WORLD, SHORTEST, for_world
from ..support.differential import errors_in
from ..support.share_world import create, topic_id
from ..support.world import World

pytestmark = pytest.mark.long

STEPS = 80
AT_MS = 1_700_000_000_000
SEED = 4  # with others a client may lose early what it needs, such as its topics, and be refused from then on


def worked(kind: str, seed: int) -> list[tuple[bytes, set[str]]]:
    """What a client asked a broker, and the errors in the reply."""
    few = {"offsets_topic_num_partitions": "1", "transaction_state_log_num_partitions": "1"}
    w = World(None, 0, **few, **IN_WORLD, **for_world(SHORTEST))
    for name, partitions in (("t1", 2), ("u1", 1)):
        create(w, name, partitions)
    for kind_of_key, key in ((0, "g"), (1, "x"), (2, f"g:{'A' * 22}:0")):
        w.ask("FindCoordinator", 6, m.FindCoordinatorRequest(key_type=kind_of_key, coordinator_keys=[key]))
    w.pass_ms(1000)
    client = CLIENTS[kind](random.Random(seed), "1", {name: topic_id(w, name) for name in ("t1", "u1")}, AT_MS)

    def ask(name: str, version: int, request: Any) -> Any:
        answer = w.send(name, version, request)
        w.pass_ms(50)  # the ends of transactions, and what initializes share-partitions
        while not answer.done:
            w.pass_ms(50)
        return answer.reply

    client.ready(ask)
    asked = []
    for _ in range(STEPS):
        name, version, request = client.next()
        w.pass_ms(int(client.pause_s * 1000))
        client.pause_s = 0.0
        frame = bytes(codec.build(f"{name}Request", version, request))
        reply = ask(name, version, request)
        client.heard(name, version, request, reply)
        asked.append((frame, {f"{name} {error}" for error in errors_in(reply) if error != "NONE"}))
    return asked


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_client_asks_the_same_again_and_is_seldom_refused(kind: str) -> None:
    asked = worked(kind, SEED)
    assert asked == worked(kind, SEED)
    assert len({frame for frame, _ in asked}) > STEPS // 3
    assert 0 < sum(bool(errors) for _, errors in asked) < STEPS // 2


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("locked", "ShareAcknowledge INVALID_RECORD_STATE"),
        ("locked", "ShareGroupHeartbeat UNKNOWN_MEMBER_ID"),
        ("brief", "ConsumerGroupHeartbeat UNKNOWN_MEMBER_ID"),
        ("patterns", "ConsumerGroupHeartbeat INVALID_REGULAR_EXPRESSION"),
        ("regrown", "ShareFetch UNKNOWN_TOPIC_ID"),
    ],
)
def test_a_client_meets_what_it_is_for(kind: str, error: str) -> None:
    assert any(error in errors for seed in range(2 * SEED) for _, errors in worked(kind, seed))


def test_what_begins_in_a_burst_lasts_until_after_the_next_one_and_no_longer() -> None:
    assert BURST + PAUSE + BURST < 1 < PAUSE + PAUSE


def test_epochs_differ_and_random_ids_do_not() -> None:
    sides: Any = [SimpleNamespace(known=Known("1")) for _ in range(2)]
    r = m.ConsumerGroupHeartbeatResponse
    mine, other = r(member_id="a", member_epoch=1), r(member_id="b", member_epoch=2)
    assert [place for place, _, _ in Comparison(False).unlike("", sides, mine, other)] == [".member_epoch"]
