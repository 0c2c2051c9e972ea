"""Where the replicas of new partitions are placed: even over brokers, over racks first, fenced brokers last."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from ottla.coordinator.metadata.placement import Placer
from ottla.coordinator.metadata.registration import Broker


def broker(number: int, rack: str | None = None, fenced: bool = False) -> Broker:
    return Broker(number, 1, bytes(16), (), rack, fenced, False, ())


def placed(brokers: list[Broker], partitions: int, factor: int, seed: int = 7) -> list[list[int]]:
    placer = Placer(brokers, random.Random(seed).randrange)
    return [placer.place(factor) for _ in range(partitions)]


def test_leaders_and_replicas_go_round_the_brokers() -> None:
    found = placed([broker(n) for n in range(6)], 60, 3)
    assert set(Counter(one[0] for one in found).values()) == {10}
    assert set(Counter(node for one in found for node in one).values()) == {30}
    assert all(len(set(one)) == 3 for one in found)


def test_the_replicas_of_a_partition_are_in_different_racks() -> None:
    racks = {n: "abc"[n % 3] for n in range(9)}
    found = placed([broker(n, rack) for n, rack in racks.items()], 90, 3)
    assert all({racks[node] for node in one} == set("abc") for one in found)
    assert Counter(racks[one[0]] for one in found) == {"a": 30, "b": 30, "c": 30}


def test_a_larger_rack_takes_what_the_others_cannot() -> None:
    racks = {1: "a", 2: "b", 3: "b", 4: "b"}
    found = placed([broker(n, rack) for n, rack in racks.items()], 20, 4)
    assert all(sorted(one) == [1, 2, 3, 4] for one in found)


@pytest.mark.parametrize("seed", range(5))
def test_a_fenced_broker_never_leads_and_is_the_last_choice(seed: int) -> None:
    brokers = [broker(1), broker(2), broker(3, fenced=True)]
    assert all(3 not in one for one in placed(brokers, 20, 2, seed))
    assert all(one[-1] == 3 for one in placed(brokers, 20, 3, seed))


def test_the_order_is_shuffled_when_all_have_led() -> None:
    rounds = placed([broker(n) for n in range(8)], 80, 3)
    assert len({tuple(one) for one in rounds}) > 16, "the same sets of replicas do not come again and again"


def test_one_broker_asks_for_no_chance() -> None:
    def never(_: int) -> int:
        raise AssertionError("a single broker has nothing to choose")

    placer = Placer([broker(1)], never)
    assert [placer.place(1) for _ in range(5)] == [[1]] * 5
