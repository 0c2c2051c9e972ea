"""Client quotas are set, removed and described as in Kafka, with the same errors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers

pytestmark = pytest.mark.slow
kafka, ours, coordinators = own_brokers({})
A, D = m.AlterClientQuotasRequest, m.DescribeClientQuotasRequest
Entity = Mapping[str, str | None]
ALICE: Entity = {"user": "alice"}
VERSIONS = (0, 1)
EXACT, DEFAULT, ANY = range(3)


def entry(entity: Entity, *operations: tuple[str, float | None]) -> m.AlterClientQuotasRequest.EntryData:
    return A.EntryData(
        entity=[A.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[A.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in operations],
    )


def alter(
    pair: Pair, *entries: m.AlterClientQuotasRequest.EntryData, version: int = 1, validate_only: bool = False
) -> list[tuple[int, Any]]:
    """Alters both brokers' quotas; returns the errors of Kafka's entries."""
    request = A(entries=list(entries), validate_only=validate_only)
    _, theirs = pair.ask("AlterClientQuotas", version, request)
    return [(one.error_code, one.error_message) for one in theirs.entries]


def components(*wanted: tuple[str, int, str | None]) -> list[m.DescribeClientQuotasRequest.ComponentData]:
    return [D.ComponentData(entity_type=kind, match_type=how, match=match) for kind, how, match in wanted]


def describe(pair: Pair, *wanted: tuple[str, int, str | None], strict: bool = False, version: int = 1) -> Any:
    """Compares the described quotas once the change before has come to Kafka's broker; returns Kafka's reply."""
    request = D(components=components(*wanted), strict=strict)
    pair.agree("DescribeClientQuotas", version, request)
    return pair.ask("DescribeClientQuotas", version, request)[1]


ENTITIES: tuple[Entity, ...] = (
    {"user": "alice"},
    {"user": None},
    {"client-id": "c"},
    {"client-id": None},
    {"user": "alice", "client-id": "c"},
    {"user": "alice", "client-id": None},
    {"user": None, "client-id": "c"},
    {"user": None, "client-id": None},
    {"user": "ünïcode/<>\"' ", "client-id": "x:y*"},
)
ADDRESSES: tuple[Entity, ...] = ({"ip": "10.0.0.1"}, {"ip": None}, {"ip": "localhost"})
FILTERS = (
    (),
    (("user", EXACT, "alice"),),
    (("user", DEFAULT, None),),
    (("user", ANY, None),),
    (("client-id", EXACT, "c"),),
    (("client-id", ANY, None),),
    (("user", ANY, None), ("client-id", ANY, None)),
    (("user", EXACT, "alice"), ("client-id", DEFAULT, None)),
    (("ip", ANY, None),),
    (("ip", EXACT, "10.0.0.1"),),
    (("user", EXACT, "absent"),),
)


@pytest.fixture(autouse=True)
def cleared(pair: Pair) -> None:
    """No quotas, so that each story can be told alone."""
    keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
    alter(
        pair,
        *(entry(entity, *((key, None) for key in keys)) for entity in ENTITIES),
        *(entry(entity, ("connection_creation_rate", None)) for entity in ADDRESSES),
    )
    assert describe(pair).entries == []


@pytest.mark.parametrize("version", VERSIONS)
def test_every_entity_is_described_by_each_filter(pair: Pair, version: int) -> None:
    limits = [entry(one, ("producer_byte_rate", 1024.0), ("request_percentage", 1e6)) for one in ENTITIES]
    limits += [entry(one, ("connection_creation_rate", 7.0)) for one in ADDRESSES]
    assert alter(pair, *limits, version=version) == [(0, None)] * len(limits)
    for wanted in FILTERS:
        for strict in (False, True):
            describe(pair, *wanted, strict=strict, version=version)
    alter(pair, entry(ALICE, ("producer_byte_rate", None), ("consumer_byte_rate", None)), version=version)
    assert len(describe(pair, ("user", EXACT, "alice"), strict=True, version=version).entries[0].values) == 1


REFUSED: dict[str, m.AlterClientQuotasRequest.EntryData] = {
    "an empty entity": entry({}, ("producer_byte_rate", 1.0)),
    "an unknown type": entry({"group": "g"}, ("producer_byte_rate", 1.0)),
    "an empty name": entry({"user": ""}, ("producer_byte_rate", 1.0)),
    "an address beside a user": entry({"ip": "10.0.0.1", "user": "alice"}, ("producer_byte_rate", 1.0)),
    "an address beside a client": entry({"client-id": "c", "ip": "10.0.0.1"}, ("producer_byte_rate", 1.0)),
    "an unknown type beside others": entry({"zone": "a", "rack": "", "ip": "x"}, ("producer_byte_rate", 1.0)),
    "a host that cannot be resolved": entry({"ip": "no such host"}, ("connection_creation_rate", 1.0)),
    "a key of clients for an address": entry({"ip": "10.0.0.1"}, ("producer_byte_rate", 1.0)),
    "a key of addresses for a client": entry(ALICE, ("connection_creation_rate", 1.0)),
    "an unknown key": entry(ALICE, ("nothing", 1.0)),
    "zero": entry(ALICE, ("producer_byte_rate", 0.0), ("nothing", None)),
    "a negative value": entry(ALICE, ("request_percentage", -1.0)),
    "infinity": entry(ALICE, ("request_percentage", math.inf)),
    "infinitely many bytes": entry(ALICE, ("producer_byte_rate", math.inf)),
    "less than all numbers": entry(ALICE, ("producer_byte_rate", -math.inf)),
    "no number": entry(ALICE, ("producer_byte_rate", math.nan)),
    "a fraction of a byte": entry(ALICE, ("producer_byte_rate", 1.5)),
    "more than a long": entry(ALICE, ("consumer_byte_rate", 1e30)),
    "more than an int": entry({"ip": None}, ("connection_creation_rate", 3e9)),
    "a key twice": entry(ALICE, ("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)),
    "a key twice, of two types": entry(
        {"user": "alice", "client-id": None}, ("request_percentage", 1.0), ("request_percentage", 2.0)
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_entries(pair: Pair, case: str) -> None:
    ((code, text),) = alter(pair, REFUSED[case])
    assert code == 42
    assert text
    assert describe(pair).entries == []


def test_entries_are_independent_and_the_second_of_an_entity_is_ignored(pair: Pair) -> None:
    bob = {"user": "bob"}
    found = alter(
        pair,
        entry(ALICE, ("producer_byte_rate", 1.0)),
        entry(bob, ("nothing", 1.0)),
        entry(ALICE, ("producer_byte_rate", 2.0)),
    )
    assert sorted(code for code, _ in found) == [42, 42]
    assert describe(pair).entries[0].values[0].value == 1.0


def test_keys_and_types_in_the_order_of_hash_tables(pair: Pair) -> None:
    """The tables are made for as many entries as the request has, and those of one bucket stay in its order."""

    def parts(*types: str) -> list[m.AlterClientQuotasRequest.EntityData]:
        return [
            m.AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name="" if kind else "x") for kind in types
        ]

    keys = ("request_percentage", "k4", "bogus", "", "k79", "controller_mutation_rate", "producer_byte_rate", "zz")
    for count in range(1, len(keys) + 1):
        for some in (keys[:count], keys[:count][::-1]):
            alter(pair, entry(ALICE, *((key, -1.0) for key in some)))
    for types in itertools.permutations(("user", "bogus", "client-id", ""), 3):
        wanted = entry({}, ("k", 1.0))
        wanted.entity = parts(*types)
        again = entry({}, ("k", 1.0))
        again.entity = parts(*types[::-1], types[0])
        alter(pair, wanted)
        alter(pair, again, wanted)
    assert pair.errors("AlterClientQuotas") == {"INVALID_REQUEST", "NONE"}


def test_only_validated_and_empty_requests_change_nothing(pair: Pair) -> None:
    assert alter(pair, entry(ALICE, ("producer_byte_rate", 1.0)), validate_only=True) == [(0, None)]
    assert alter(pair, entry(ALICE, ("nothing", 1.0)), validate_only=True)[0][0] == 42
    assert alter(pair) == []
    assert alter(pair, entry(ALICE)) == [(0, None)]
    assert alter(pair, entry(ALICE, ("nothing", None))) == [(0, None)]
    assert describe(pair).entries == []


WRONG_FILTERS = {
    "an empty type": (("", EXACT, "a"),),
    "a type twice": (("user", EXACT, "a"), ("user", ANY, None)),
    "an unknown type": (("group", EXACT, "a"),),
    "an exact match of null": (("user", EXACT, None),),
    "a name beside the default": (("user", DEFAULT, "a"),),
    "a name beside any": (("user", ANY, "a"),),
    "an unknown match": (("user", 3, None),),
    "an address beside a client": (("ip", ANY, None), ("client-id", ANY, None)),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", WRONG_FILTERS)
def test_wrong_filters(pair: Pair, case: str, version: int) -> None:
    reply = describe(pair, *WRONG_FILTERS[case], version=version)
    assert reply.error_code in (42, 35)
    assert reply.error_message
    assert reply.entries is None
