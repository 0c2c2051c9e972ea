"""The modules that mypyc compiles: what their source has to keep to, and how one finds out which form runs."""

from __future__ import annotations

import ast
import builtins
import sys
from pathlib import PurePosixPath

import pytest
from click.testing import CliRunner

from compiled import paths
from ottla import __version__, build
from ottla.cli import main

from ..support import compiled
from ..support.sources import ROOT, dotted, nodes, trees

FOLDERS = ("protocol", "storage", "coordinator", "verdict", "classic", "broker", "pipeline", "ottla", "tests")
PROTOCOL = "Protocol"


def imported_names(path: str, module: ast.Module) -> dict[str, str]:
    """Returns the classes and modules that a module imports from this repository: their names in it, and where they
    are, as `file.py:Class`.
    """
    found = {}
    for node in nodes(module):
        if not isinstance(node, ast.ImportFrom):
            continue
        source = (node.module or "").split(".")
        folder = list(PurePosixPath(path).parts[: -node.level]) if node.level else []
        if not node.level:
            if source[0] != "ottla":
                continue
            source = source[1:]
        place = "/".join([*folder, *filter(None, source)])
        for name in node.names:
            found[name.asname or name.name] = f"{place}.py:{name.name}"
    return found


def bases_of(path: str, module: ast.Module) -> list[tuple[str, str]]:
    """Returns each class of a module with each of its bases, as `file.py:Class`."""
    imported = imported_names(path, module)
    pairs = []
    for node in nodes(module):
        if not isinstance(node, ast.ClassDef):
            continue
        for base in node.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            first, _, rest = dotted(plain).partition(".")
            place = imported.get(first, f"{path}:{first}")
            if rest:  # a class of an imported module
                place = place.removesuffix(f".py:{first}") + f"/{first}.py:{rest}"
            pairs.append((f"{path}:{node.name}", place))
    return pairs


def under_compiled(trees_by_path: dict[str, ast.Module]) -> list[tuple[str, str]]:
    """Returns the interpreted classes that have a compiled class as their base."""
    hot = set(paths())
    protocols = {
        f"{path}:{node.name}"
        for path in hot & trees_by_path.keys()
        for node in nodes(trees_by_path[path])
        if isinstance(node, ast.ClassDef) and any(PROTOCOL in ast.unparse(one) for one in node.bases)
    }
    return [
        (name, base)
        for path, module in trees_by_path.items()
        if path not in hot
        for name, base in bases_of(path, module)
        if base.partition(":")[0] in hot and base not in protocols
    ]


def test_the_modules_are_there() -> None:
    assert [path for path in paths() if not (ROOT / path).is_file()] == []


def test_no_interpreted_class_is_under_a_compiled_one() -> None:
    assert under_compiled(trees(*FOLDERS)) == []


@pytest.mark.parametrize(
    "source",
    [
        "from ..replica.partition import Partition\nclass One(Partition): ...",
        "from ..replica import partition\nclass One(partition.Partition): ...",
        "from ottla.broker.replica.partition import Partition as P\nclass One(P): ...",
        "from ..steps import Allowance\nclass One(Allowance[int]): ...",
    ],
)
def test_an_interpreted_class_under_a_compiled_one_is_found(source: str) -> None:
    assert [name for name, _ in under_compiled({"broker/net/some.py": ast.parse(source)})] == ["broker/net/some.py:One"]


def waiting_in_handlers(module: ast.Module) -> list[int]:
    """Returns the lines at which a function is left, to be resumed, while it handles an exception."""
    handlers = [node for node in nodes(module) if isinstance(node, ast.ExceptHandler)]
    pauses = (ast.Await, ast.Yield, ast.YieldFrom, ast.AsyncFor, ast.AsyncWith)
    return [node.lineno for one in handlers for node in ast.walk(one) if isinstance(node, pauses)]


def test_no_compiled_function_pauses_while_it_handles_an_exception() -> None:
    """The exception would stay the one that is being handled: all that are raised later would refer to it."""
    found = {path: waiting_in_handlers(module) for path, module in trees(*FOLDERS).items() if path in paths()}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_a_pause_in_a_handler_is_found() -> None:
    source = "async def one():\n    try:\n        await two()\n    except OSError:\n        await three()\n"
    assert waiting_in_handlers(ast.parse(source)) == [5]


def told_otherwise(module: ast.Module) -> list[int]:
    """Returns the lines at which a value is told to be a list, a dict or another builtin."""
    casts = [node for node in nodes(module) if isinstance(node, ast.Call) and dotted(node.func) == "cast"]
    told = [(node.lineno, ast.unparse(node.args[0]).strip("'\"")) for node in casts]
    return [line for line, kind in told if hasattr(builtins, kind.partition("[")[0])]


def test_no_compiled_function_tells_its_types_that_something_is_a_builtin() -> None:
    """It is checked when it runs, and what stands in place of a list is none."""
    found = {path: told_otherwise(module) for path, module in trees(*FOLDERS).items() if path in paths()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize("kind", ['"list[Data]"', "dict", "tuple[int, ...]"])
def test_such_a_cast_is_found(kind: str) -> None:
    assert told_otherwise(ast.parse(f"one = 1\ntwo = cast({kind}, one)\nthree = cast(Late, one)")) == [2]


def test_the_command_says_which_form_runs() -> None:
    said = CliRunner().invoke(main, ["--version"]).output
    is_compiled = not (getattr(sys.modules["ottla.protocol.records"], "__file__", None) or "").endswith(".py")
    assert said == f"ottla, version {__version__} ({'compiled' if is_compiled else 'pure Python'})\n"
    assert build.is_compiled() is is_compiled


def test_what_is_compiled_is_not_older_than_its_source() -> None:
    assert compiled.stale() == []
