"""The page about waits names every API whose file waits."""

from __future__ import annotations

import ast
import re

from ottla.broker.apis import apis

from ..support.sources import ROOT, dotted, nodes, trees

PAGE = (ROOT / "docs/reference/waits.md").read_text()
WAITING = {
    "pause",
    "within",
    "park",
    "wait",
    "write",
    "write_at",
    "write_in_transaction",
    "begin",
    "answered_when_reached",
}
"""What a handler calls to wait for time, a high watermark or records."""
CHANGES_OF_METADATA = "all that changes the metadata"


def waits(module: ast.Module) -> set[str]:
    """Returns which of the waiting functions a module awaits, or returns the result of."""
    calls = [
        node.value
        for node in nodes(module)
        if isinstance(node, ast.Await | ast.Return) and isinstance(node.value, ast.Call)
    ]
    return {dotted(call.func).rpartition(".")[2] for call in calls} & WAITING


def named() -> set[str]:
    """Returns the words of the first column."""
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| ")]
    return {word for row in rows for word in re.findall(r"[A-Z]\w+", row)}


def test_apis_that_wait_are_on_the_page() -> None:
    modules = trees("broker/apis")
    waiting = {api.name for api in apis().values() if waits(modules[f"broker/apis/{api.module}.py"])}
    assert {"Produce", "Heartbeat", "EndTxn"} <= waiting
    assert sorted(waiting - named()) == []
    assert CHANGES_OF_METADATA in PAGE


def test_the_page_names_apis_that_there_are() -> None:
    assert named() - {api.name for api in apis().values()} == {"API", "Any"}
