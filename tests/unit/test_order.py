"""No order that shows depends on a set: two runs with the same requests write the same bytes."""

from __future__ import annotations

import ast

from ottla.protocol import schema

from ..support.sets import iterated_sets
from ..support.sources import trees

FOLDERS = ("protocol", "storage", "coordinator", "broker", "pipeline")
# file, and the set that is iterated: why its order does not matter
ANY_ORDER = {
    ("coordinator/group/consumer/group.py", "_owned(before) - owned"): "each is taken out of a table by its key",
    ("coordinator/group/consumer/reconciliation.py", "group.subscription_of(member)"): "made into a set",
    ("coordinator/group/share/share_partitions.py", "found.deleting"): "compared as a set",
    ("coordinator/group/target_assignment.py", "frozenset[str]().union(*(one.names for one in work.candidates))"): (
        "summed"
    ),
}


def fields() -> set[str]:
    """The names of all fields of messages, none of which is a set."""
    found: set[str] = set()
    for names in schema.index()["apis"].values():
        for name in (names["request"], names["response"]):
            loaded = schema.load(name)
            found |= {one.name for struct in (loaded.root, *loaded.structs.values()) for one in struct.fields}
    return found


def test_no_bare_set_is_iterated_where_order_matters() -> None:
    found = {(name, text): line for name, line, text in iterated_sets(trees(*FOLDERS), fields())}
    for (name, text), line in found.items():
        assert (name, text) in ANY_ORDER, f"{name}:{line} iterates a set: sort {text}"
    assert not ANY_ORDER.keys() - found.keys(), "no longer there, take it from the list"


def test_a_set_that_is_iterated_is_found() -> None:
    source = """
class A:
    names: frozenset[str]

def f(a: A, wanted: set[str]) -> list[str]:
    found = wanted - {"x"}
    for one in found:
        print(one)
    return [*a.names, ",".join(wanted), str(len(a.names)), *sorted(map(str, found))]
"""
    lines = [(line, text) for _, line, text in iterated_sets({"f": ast.parse(source)}, set())]
    assert lines == [(7, "found"), (9, "a.names"), (9, "wanted")]
    assert [text for *_, text in iterated_sets({"f": ast.parse(source)}, {"names"})] == ["found", "wanted"]
