"""The crowds of `make chance`: several members of one group whose requests wait, on two brokers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from ottla.broker.peer import Peer
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..oracle.chance_classic import Act, Crowd
from ..oracle.chance_stage import STEPS, Door, Heard, Stage, have_other_leaders, play, unlike
from ..support.at_once import IN_WORLD, SHORTEST, for_world
from ..support.differential import errors_in
from ..support.share_world import create, topic_id
from ..support.world import Answer, World


class WorldDoor(Door):
    """`spoil` changes what the broker says."""

    def __init__(self, world: World, spoil: Callable[[str, Any], None]) -> None:
        self.world, self.spoil = world, spoil
        self.answers: dict[str, Answer] = {}

    def say(self, of: str, api: str, version: int, message: Any) -> None:
        peer = Peer("PLAINTEXT", f"127.0.0.1:{int(of[1:]) + (50 if of[0] == 'k' else 2)}")
        self.answers[of] = self.world.send(api, version, message, peer, client_id=of)

    def reply(self, of: str, api: str, version: int) -> Any:
        answer = self.answers[of]
        if answer.done:
            self.spoil(api, answer.reply)
        return answer.reply

    def ask(self, api: str, version: int, message: Any) -> Any:
        self.world.pass_ms(5)  # what has no delay
        reply = self.world.ask(api, version, message)
        self.spoil(api, reply)
        return reply

    def lose(self, of: str) -> None:
        del self.answers[of]

    def close(self) -> None: ...


def right(api: str, reply: Any) -> None: ...


def played(seed: int, spoil: Callable[[str, Any], None] = right) -> tuple[str, list[Heard]]:
    """How the crowd of a seed ended on two brokers, of which one may say something wrong, and what it heard."""
    crowd = Crowd(random.Random(seed), "1")
    worlds = [World(None, at, offsets_topic_num_partitions="1", **for_world(SHORTEST), **IN_WORLD) for at in (0, 1)]
    stages = []
    for w, wrong in zip(worlds, (spoil, right), strict=True):
        create(w, "t1", 2)
        create(w, "u1", 1)
        w.ask("FindCoordinator", 6, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
        w.pass_ms(1000)
        stages.append(Stage(WorldDoor(w, wrong), crowd, {name: topic_id(w, name) for name in ("t1", "u1")}))
    heard: list[Heard] = []
    steps: list[str] = []

    def let_pass(seconds: float) -> None:
        for w in worlds:
            w.pass_ms(int(seconds * 1000))

    end = play(crowd, (stages[0], stages[1]), let_pass, lambda step, one, found: heard.append(one), steps.append)
    return end, heard


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_two_brokers_answer_the_same_to_a_crowd_that_is_seldom_refused(seed: int) -> None:
    end, heard = played(seed)
    assert end == "all done"
    assert len(heard) > STEPS * 3 // 4
    refused = sum(any(error != "NONE" for error in errors_in(one.other)) for one in heard)
    assert 0 < refused < len(heard) * 2 // 3


def test_crowds_use_both_protocols_and_some_let_sessions_run_out() -> None:
    crowds = [Crowd(random.Random(seed), "1") for seed in range(40)]
    assert {crowd.kind for crowd in crowds} == {"consumer", "connect"}
    assert {crowd.is_mixed for crowd in crowds} == {crowd.is_hasty for crowd in crowds} == {True, False}
    assert {crowd.next().api == "IncrementalAlterConfigs" for crowd in crowds} == {True, False}
    hasty = next(seed for seed, crowd in enumerate(crowds) if crowd.is_hasty and not crowd.is_mixed)
    _, heard = played(hasty)
    errors = Counter((one.act.api, Errors(one.other.error_code).name) for one in heard if one.act.waits)
    assert errors["JoinGroup", "UNKNOWN_MEMBER_ID"] > 0


@pytest.mark.parametrize(
    ("api", "field", "value"),
    [("JoinGroup", "leader", "wrong"), ("SyncGroup", "assignment", b"wrong"), ("Heartbeat", "error_code", 16)],
)
def test_a_difference_ends_a_crowd(api: str, field: str, value: Any) -> None:
    def spoil(said: str, reply: Any) -> None:
        if said == api and reply.error_code == 0:
            setattr(reply, field, value)

    end, heard = played(1, spoil)
    assert end == "differs"
    last = heard[-1]
    assert last.act.api == api
    assert [place for place, _, _ in unlike(last)] == [f".{field}"]


@pytest.mark.parametrize(("before", "may_differ"), [("", True), ("m9", True), ("m1", False)])
def test_leaders_may_differ_where_both_brokers_have_found_another(before: str, may_differ: bool) -> None:
    """Ids that members have chosen are known, too."""
    crowd = Crowd(random.Random(1), "1")
    one, two = [*crowd.ones.values()][:2]
    one.id, two.id = "m1", "m2"
    world = World(None, 0)
    stages = Stage(WorldDoor(world, right), crowd, {}), Stage(WorldDoor(world, right), crowd, {})
    replies = [m.JoinGroupResponse(leader=name) for name in ("m1", "m2")]
    heard = [Heard(Act("m1", "JoinGroup"), *replies)]
    assert have_other_leaders(heard, stages, before) == may_differ


def test_a_reply_that_only_one_broker_gives_is_a_difference() -> None:
    assert unlike(Heard(Act("m1", "SyncGroup"), "waits", m.SyncGroupResponse())) != []
