"""Random histories of groups: what a rebalance is said to wait for is what completes it, and nothing else does."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ottla.coordinator.group.consumer_protocol import build_assignment
from ottla.protocol import messages as m

from ..support.group_world import beat, join, owned, sync, world
from ..support.lab import LabWorld
from ..support.world import World, told_with

STEPS, ROUNDS_MAX = 25, 30


def shown(w: World) -> Any:
    found = LabWorld(w).ask("GET /v1/groups/g")
    assert len(found["members"]) == len({one["member"] for one in found["members"]})
    return found


class Consumers:
    """Members of a consumer group that act only when they are told to."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.w = world(partitions=6, ottla_lab_port="0")
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, list[int]] = {}
        self.count = 0

    def join(self) -> None:
        self.count += 1
        name = f"m{self.count}"
        self.owned[name] = []
        self._take(name, beat(self.w, name, 0, "t").reply)

    def leave(self) -> None:
        name = self.chance.choice(list(self.epochs))
        beat(self.w, name, -1)
        del self.epochs[name], self.owned[name]

    def alive(self, name: str) -> None:
        self._take(name, beat(self.w, name, self.epochs[name]).reply)

    def revoke(self, name: str) -> None:
        self._take(name, beat(self.w, name, self.epochs[name], topic_partitions=owned(self.w, *self.owned[name])).reply)

    def _take(self, name: str, reply: Any) -> None:
        assert reply.error_code == 0, reply
        self.epochs[name] = reply.member_epoch
        if reply.assignment is not None:
            self.owned[name] = [p for t in reply.assignment.topic_partitions for p in t.partitions]

    def act(self) -> None:
        dice = self.chance.random()
        if len(self.epochs) < 2 or (dice < 0.3 and len(self.epochs) < 7):
            self.join()
        elif dice < 0.5:
            self.leave()
        else:
            self.alive(self.chance.choice(list(self.epochs)))
        self.w.pass_ms(self.chance.choice((0, 1, 50)))

    def settle(self) -> None:
        """Only those act that are waited for."""
        for _ in range(ROUNDS_MAX):
            waits = [(one["member"], one["action"]) for one in shown(self.w)["waits"]]
            if not waits:
                return
            named = {name for name, _ in waits if name is not None}
            others = sorted(self.epochs.keys() - named)
            if (None, "assign") in waits:
                self.alive(self.chance.choice(list(self.epochs)))
                continue
            for name in others:
                self.alive(name)
            assert [(one["member"], one["action"]) for one in shown(self.w)["waits"]] == waits, "another one acted"
            name, action = self.chance.choice(waits)
            {"heartbeat": self.alive, "revoke": self.revoke}[action](name)
            assert [(one["member"], one["action"]) for one in shown(self.w)["waits"]] != waits, f"{name} acted in vain"
        raise AssertionError(f"not settled after {ROUNDS_MAX} rounds: {waits}")


@pytest.mark.parametrize("seed", [pytest.param(s, marks=[pytest.mark.slow] if s else []) for s in range(12)])
def test_a_consumer_group_waits_for_exactly_those_whose_requests_settle_it(seed: int) -> None:
    chance = random.Random(seed)
    with told_with(seed):
        group = Consumers(chance)
        for _ in range(STEPS):
            group.act()
            shown(group.w)
            if chance.random() < 0.3:
                group.settle()
                assert shown(group.w)["state"] == "Stable"
                assert sorted(p for of in group.owned.values() for p in of) == list(range(6))


class Classics:
    """Members of a classic group."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.w = world(ottla_lab_port="0")
        join(self.w, version=3)

    def join(self) -> None:
        """A member of an old version joins at once, one of a new version is given an id first."""
        join(self.w, version=self.chance.choice((3, 9)))

    def again(self, name: str) -> None:
        metadata = b"\0\0\0\0\0\1\0\1t\0\0\0\1" + bytes([self.chance.randrange(256)])
        r = m.JoinGroupRequest.JoinGroupRequestProtocol
        join(self.w, name, version=3, protocols=[r(name="range", metadata=metadata)])

    def leave(self, name: str) -> None:
        r = m.LeaveGroupRequest
        self.w.send("LeaveGroup", 3, r(group_id="g", members=[r.MemberIdentity(member_id=name)]))

    def act(self) -> None:
        members = [one["member"] for one in shown(self.w)["members"]]
        dice = self.chance.random()
        if len(members) < 2 or (dice < 0.3 and len(members) < 6):
            self.join()
        elif dice < 0.5:
            self.leave(self.chance.choice(members))
        elif dice < 0.8:
            self.again(self.chance.choice(members))
        self.w.pass_ms(self.chance.choice((0, 1, 50)))

    def settle(self) -> None:
        """The members that are waited for act one by one: only the last of them completes the step."""
        for _ in range(ROUNDS_MAX):
            found = shown(self.w)
            waits = found["waits"]
            if found["state"] in ("Empty", "Stable"):
                return
            if waits[0]["action"] == "gather":
                self.w.pass_ms(waits[0]["remaining_ms"])
            elif found["state"] == "PreparingRebalance":
                names = [one["member"] for one in waits]
                self.chance.shuffle(names)
                for number, name in enumerate(names):
                    assert shown(self.w)["state"] == "PreparingRebalance", f"{names[number:]} were not needed"
                    self.again(name)
                assert shown(self.w)["state"] == "CompletingRebalance", names
            else:
                leader, *rest = [one["member"] for one in waits]
                assert leader == found["leader"]
                for name in rest:
                    sync(self.w, name, found["epoch"])
                    assert shown(self.w)["state"] == "CompletingRebalance"
                sync(self.w, leader, found["epoch"], **{leader: build_assignment({"t": [0]}, 0)})
                assert shown(self.w)["state"] == "Stable"
        raise AssertionError("not settled")


@pytest.mark.parametrize("seed", [pytest.param(s, marks=[pytest.mark.slow] if s else []) for s in range(12)])
def test_a_classic_group_waits_for_exactly_those_whose_requests_complete_the_rebalance(seed: int) -> None:
    chance = random.Random(seed)
    with told_with(seed):
        group = Classics(chance)
        for _ in range(STEPS):
            group.act()
            shown(group.w)
            if chance.random() < 0.3:
                group.settle()
