"""The authorizer, against what Kafka's StandardAuthorizer said of thousands of random sets of entries, and rule by
rule.
"""

from __future__ import annotations

from typing import Any

import pytest
from ottla.coordinator.security import authorizer as authorizer_module
from ottla.coordinator.security.acls import (
    SUPPORTED,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    named,
)
from ottla.coordinator.security.authorizer import Authorizer
from ottla.coordinator.security.hosts import network_of

from ..oracle.acl_cases import WORLDS, recorded, world
from ..support.seeds import seeds

HOST = "10.0.0.1"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
OP, LITERAL, PREFIXED = Operation, PatternType.LITERAL, PatternType.PREFIXED


def acl(
    name: str,
    operation: Operation,
    permission: Permission = Permission.ALLOW,
    *,
    pattern: PatternType = LITERAL,
    principal: str = "User:a",
    host: str = "*",
    kind: ResourceType = TOPIC,
) -> Acl:
    return Acl(kind, name, pattern, principal, host, operation, permission)


def authorizer(*acls: Acl, supers: tuple[str, ...] = (), open_: bool = False) -> Authorizer:
    made = Authorizer(supers, allows_uncovered=open_)
    for number, one in enumerate(acls):
        made.put(number.to_bytes(16, "big"), one)
    return made


def may(one: Authorizer, operation: Operation, name: str = "t", who: str = "User:a", host: str = HOST) -> bool:
    return one.allows(who, host, operation, TOPIC, name)


def answer_of(one: Authorizer, asked: tuple[str, str, int, int, str | None]) -> bool:
    principal, host, operation, kind, name = asked
    if name is None:
        return one.allows_any(principal, host, operation, kind)
    return one.allows(principal, host, operation, kind, name)


def test_recorded_worlds_are_many() -> None:
    assert len(recorded()) == WORLDS


@pytest.mark.parametrize("part", seeds(10, quick=1))
def test_answers_are_those_of_kafkas_class(part: int) -> None:
    for seed, expected in enumerate(recorded()):
        if seed % 10 != part:
            continue
        case = world(seed)
        supers = [one.strip() for one in case.super_users.split(";") if one.strip()]
        ours = authorizer(*case.acls, supers=tuple(supers), open_=case.allows_uncovered)
        for asked, answer in zip(case.questions, expected, strict=True):
            assert answer_of(ours, asked) == (answer == "1"), f"seed {seed}: {asked} of {case}"


@pytest.mark.parametrize("seed", range(0, WORLDS, 200))
def test_entries_can_be_removed_in_any_order(seed: int) -> None:
    """What is left answers like a new authorizer with only those entries."""
    case = world(seed)
    ours = authorizer(*case.acls)
    for number in range(0, len(case.acls), 2):
        ours.drop(number.to_bytes(16, "big"))
    fresh = authorizer(*case.acls[1::2])
    assert len(ours) == len(fresh) == len(case.acls) // 2
    for asked in case.questions:
        assert answer_of(ours, asked) == answer_of(fresh, asked)


def test_a_denial_wins_over_any_number_of_permissions() -> None:
    one = authorizer(
        acl("t", OP.READ),
        acl("*", OP.ALL),
        acl("t", OP.READ, pattern=PREFIXED),
        acl("t", OP.READ, Permission.DENY, host=HOST, principal="User:*"),
    )
    assert not may(one, OP.READ)
    assert may(one, OP.READ, host="10.0.0.2")
    assert may(one, OP.WRITE)


def test_permissions_imply_describe_but_denials_do_not() -> None:
    for implying in (OP.READ, OP.WRITE, OP.DELETE, OP.ALTER):
        one = authorizer(acl("t", implying))
        assert may(one, OP.DESCRIBE)
        assert not may(one, OP.DESCRIBE_CONFIGS)
    assert may(authorizer(acl("t", OP.ALTER_CONFIGS)), OP.DESCRIBE_CONFIGS)
    denied = authorizer(acl("t", OP.DESCRIBE), acl("t", OP.READ, Permission.DENY))
    assert may(denied, OP.DESCRIBE)
    assert not may(denied, OP.READ)
    assert not may(authorizer(acl("t", OP.CREATE)), OP.DESCRIBE)


def test_prefixes_and_literals() -> None:
    one = authorizer(acl("te", OP.READ, pattern=PREFIXED), acl("x", OP.READ), acl("*", OP.WRITE))
    assert [may(one, OP.READ, name) for name in ("te", "test", "t", "x", "xy")] == [True, True, False, True, False]
    assert may(one, OP.WRITE, "anything")
    assert may(authorizer(acl("*", OP.READ, pattern=PREFIXED)), OP.READ, "*t"), "a prefix is no wildcard"
    assert not may(authorizer(acl("*", OP.READ, pattern=PREFIXED)), OP.READ, "t")


def test_a_resource_that_an_entry_covers_is_closed_to_others() -> None:
    one = authorizer(acl("t", OP.READ, principal="User:b"), open_=True)
    assert not may(one, OP.READ)
    assert may(one, OP.READ, "other")
    assert not may(authorizer(), OP.READ)


def test_super_users_may_do_what_is_denied() -> None:
    one = authorizer(acl("t", OP.ALL, Permission.DENY, principal="User:*"), supers=("User:a",))
    assert may(one, OP.READ)
    assert not may(one, OP.READ, who="User:b")
    assert one.operations("User:a", HOST, TOPIC, "t") == sum(1 << op for op in SUPPORTED[TOPIC])
    assert one.operations("User:b", HOST, TOPIC, "t") == 0


def test_the_operations_of_a_principal_are_those_it_may_do() -> None:
    one = authorizer(acl("t", OP.WRITE), acl("t", OP.ALTER_CONFIGS), acl("t", OP.DESCRIBE, Permission.DENY))
    assert (
        one.operations("User:a", HOST, TOPIC, "t") == 1 << OP.WRITE | 1 << OP.ALTER_CONFIGS | 1 << OP.DESCRIBE_CONFIGS
    )
    assert authorizer(open_=True).operations("User:a", HOST, GROUP, "g") == sum(1 << op for op in SUPPORTED[GROUP])


def test_ranges_of_hosts() -> None:
    one = authorizer(acl("t", OP.READ, host="10.0.0.0/31"), acl("t", OP.READ, Permission.DENY, host="::/0"))
    asked = ("10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1")
    assert [may(one, OP.READ, host=host) for host in asked] == [True, False, False]
    for pattern, words in {
        "10.0.0.0/33": "Value [33] not in range [0,32]",
        "10.0.0.256/3": "Value [256] not in range [0,255]",
        "10.0.0/8": "Could not parse [10.0.0/8]",
        "::/129": "Could not parse [::/129] - prefix length must be between 0 and 128",
        "::/x": "Could not parse [::/x] - invalid prefix length",
    }.items():
        with pytest.raises(ValueError, match=r"(Could|Value)") as refused:
            network_of(pattern)
        assert str(refused.value) == words


def test_a_check_looks_at_few_of_many_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 entries, a hundred of which are on one topic: a check opens only the patterns that cover its resource."""
    acls = [acl(f"topic-{n}", OP.READ, principal=f"User:{n % 50}") for n in range(8000)]
    acls += [acl(f"team-{n}-", OP.WRITE, pattern=PREFIXED, principal=f"User:{n % 50}") for n in range(1900)]
    acls += [acl("team-7-x", OP.WRITE, principal=f"User:{n}") for n in range(100)]
    one = authorizer(*acls)
    opened: list[str] = []
    pattern_class = authorizer_module._Pattern
    of = pattern_class.of

    def counted(self: authorizer_module._Pattern, principal: str, host: str) -> tuple[int, int]:
        opened.append(principal)
        return of(self, principal, host)

    monkeypatch.setattr(pattern_class, "of", counted)
    assert may(one, OP.WRITE, "team-7-x", "User:7")
    assert len(opened) == 2
    assert may(one, OP.WRITE, "team-7-x", "User:7")
    assert len(opened) == 2, "the answer is remembered"
    one.put(b"new", acl("*", OP.WRITE, Permission.DENY))
    assert not may(one, OP.WRITE, "team-7-x", "User:a")


def test_the_memory_of_answers_is_bounded() -> None:
    one = authorizer(acl("t", OP.READ))
    for number in range(authorizer_module.MEMORY_MAX + 10):
        may(one, OP.READ, str(number))
    assert len(one._memory) <= authorizer_module.MEMORY_MAX
    before = len(one._memory)
    may(one, OP.READ, "x" * 30_000)
    assert len(one._memory) == before


def test_filters() -> None:
    literal, prefixed, everything = acl("test", OP.READ), acl("te", OP.WRITE, pattern=PREFIXED), acl("*", OP.READ)

    def found(name: str | None, pattern: PatternType, **more: int | str) -> list[Acl]:
        wanted = AclFilter(TOPIC, name, pattern, None, None, Operation.ANY, Permission.ANY)._replace(**more)  # type: ignore[arg-type]
        return [one for one in (literal, prefixed, everything) if wanted.matches(one)]

    assert found(None, PatternType.ANY) == found(None, PatternType.MATCH) == [literal, prefixed, everything]
    assert found(None, LITERAL) == [literal, everything]
    assert found("test", PatternType.ANY) == [literal]
    assert found("test", PatternType.MATCH) == [literal, prefixed, everything]
    assert found("te", PREFIXED) == [prefixed]
    assert found("*", LITERAL) == [everything]
    assert found(None, PatternType.ANY, operation=OP.WRITE) == [prefixed]
    assert found(None, PatternType.ANY, principal="User:*") == found(None, PatternType.ANY, host=HOST) == []
    assert found(None, PatternType.ANY, resource_type=GROUP) == []
    assert found(None, PatternType.ANY, resource_type=ResourceType.ANY, permission=Permission.DENY) == []


def test_unknown_codes() -> None:
    assert named(Operation, 99) is Operation.UNKNOWN
    assert named(Operation, 15) is Operation.TWO_PHASE_COMMIT


class Sliced(str):
    """A name that counts of how many characters parts of it are made."""

    characters = 0

    def __getitem__(self, key: Any) -> str:
        found = str.__getitem__(self, key)
        Sliced.characters += len(found)
        return found


def test_of_a_long_name_only_the_prefixes_are_made_that_may_be_denied() -> None:
    name = Sliced("n" * 30_000)
    one = Authorizer()
    one.put(b"1", acl(name, OP.WRITE))
    one.put(b"2", acl("n" * 29_999, OP.WRITE, Permission.DENY, pattern=PREFIXED))
    Sliced.characters = 0
    assert not one.allows_any("User:a", HOST, OP.WRITE, TOPIC)
    assert Sliced.characters < 10 * len(name)
    one.drop(b"2")
    assert one.allows_any("User:a", HOST, OP.WRITE, TOPIC)
