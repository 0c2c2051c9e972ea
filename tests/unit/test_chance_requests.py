"""Random requests (`make chance`): the same for both brokers, but for the ids that each has given."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.apis import apis
from ottla.protocol import codec
from ottla.protocol import messages as m

from ..oracle.chance_odd import Odd
from ..oracle.chance_requests import FAMILIES, SECURED, Known, Maker, learn
from ..oracle.chance_values import values_of

APIS = {api.name: api for api in apis().values()}
AT_MS = 1_700_000_000_000
SEEDS = 40


def made(name: str, known: Known, seed: int, *, repeats: bool = False) -> Any:
    api = APIS[name]
    return Maker(api, api.high, known, seed, AT_MS, family="classic", repeats=repeats).make()


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({name for names in FAMILIES.values() for name in names.split()}))
def test_a_seed_makes_one_request(name: str) -> None:
    api, known = APIS[name], Known("1")
    frames = [[bytes(codec.build(api.request, api.high, made(name, known, n))) for n in range(SEEDS)] for _ in range(2)]
    assert frames[0] == frames[1]
    assert len(set(frames[0])) > 1 or not api.high  # a request without fields is always the same


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["Fetch", "OffsetCommit", "ShareAcknowledge", "StreamsGroupHeartbeat", "WriteTxnMarkers"]
)
def test_an_odd_request_is_another_that_can_be_said(name: str) -> None:
    def frame(request: Any) -> bytes:
        return bytes(codec.build(f"{name}Request", APIS[name].high, request))

    known, changes = Known("1"), 0
    for seed in range(SEEDS):
        plain = made(name, known, seed)
        before = frame(plain)
        odd = [frame(Odd(seed, name, APIS[name].high).changed(plain)) for _ in range(2)]
        assert odd[0] == odd[1]
        assert frame(plain) == before
        changes += odd[0] != before
    assert changes > SEEDS / 2


def test_each_broker_gets_the_ids_that_it_has_given() -> None:
    sides = Known("1"), Known("1")
    learn(sides, *[[m.JoinGroupResponse(member_id=one, generation_id=7)] for one in ("mine", "other")])
    learn(sides, m.JoinGroupResponse(member_id="a"), "closed")
    found = [[made("Heartbeat", side, n).member_id for n in range(SEEDS)] for side in sides]
    assert {pair for pair in zip(*found, strict=True) if pair[0] != pair[1]} == {("mine", "other")}


def test_an_array_names_nothing_twice_unless_it_may() -> None:
    def twice(repeats: bool) -> bool:
        topics = [made("Produce", Known("1"), n, repeats=repeats).topic_data for n in range(SEEDS)]
        parts = [[part.index for part in one.partition_data] for some in topics for one in some]
        return any(len(indexes) > len(set(indexes)) for indexes in parts)

    assert not twice(repeats=False)
    assert twice(repeats=True)


def test_what_depends_on_something_else_mostly_fits() -> None:
    topics = [one for n in range(SEEDS) for one in made("CreateTopics", Known("1"), n).topics]
    assert sum(not one.assignments or one.num_partitions == -1 for one in topics) > len(topics) / 2
    entries = [one for n in range(SEEDS) for one in made("CreateAcls", Known("1"), n).creations]
    assert sum(0 not in (one.resource_type, one.operation, one.permission_type) for one in entries) > len(entries) / 2
    values = values_of("AlterUserScramCredentials", "1")
    assert {"bob1", "eve1"} < {*values["name"]}


def test_an_alter_configs_names_no_resource_twice() -> None:
    for seed in range(SEEDS):
        request = made("AlterConfigs", Known("1"), seed, repeats=True)
        for one in (request, Odd(seed, "AlterConfigs", APIS["AlterConfigs"].high).changed(request)):
            assert len(one.resources) == len(request.resources)
        names = [(one.resource_type, one.resource_name) for one in request.resources]
        assert len(names) == len({*names})


def test_users_in_families_that_need_rights_ask_for_what_the_others_do() -> None:
    asked = {name for family in SECURED for name in FAMILIES[family].split()}
    assert {*FAMILIES["views"].split(), *FAMILIES["administrators"].split()} - asked == {"AddPartitionsToTxn", "EndTxn"}
