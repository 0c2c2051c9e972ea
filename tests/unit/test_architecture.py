"""The architecture, held by tests: who may import whom, where time and chance may be, what must not be left lying
about.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache

import pytest
from ottla.broker.apis import apis
from ottla.broker.net.api import Api

from ..support.sources import ROOT, dotted, nodes, text, trees

FOLDERS = ("protocol", "storage", "coordinator", "verdict", "classic", "broker", "pipeline")
MAY_IMPORT = {
    "protocol": set(),
    "storage": {"protocol"},
    "coordinator": {"protocol"},
    "verdict": {"protocol"},
    "classic": {"protocol"},
    "broker": {"protocol", "storage", "coordinator", "verdict"},
    "pipeline": {"protocol", "storage", "coordinator", "verdict"},
}
FOR_SPARK = {"numpy", "pandas", "plotly", "pyarrow", "pyspark", "fsspec"}
ASYNCIO_MAY_BE_IN = {
    "broker/net/server.py",
    "broker/net/connection.py",
    "broker/net/accepting.py",
    "broker/net/listeners.py",
    "broker/net/on_asyncio.py",
    "broker/net/pacing.py",
    "broker/net/tls.py",
    "broker/net/lab_tls.py",
    "broker/addresses.py",
    "broker/machine.py",
    "broker/lab/server.py",
    "broker/lab/http.py",
    "broker/seed.py",
}
FLOOR = {
    "bugs",
    "addresses",
    "broker_schedule",
    "client_activity",
    "client_quotas",
    "alarm",
    "clock",
    "connection_rates",
    "error_places",
    "error_replies",
    "event_times",
    "internal_topics",
    "later",
    "limits",
    "line_log",
    "log_file",
    "loggers",
    "machine",
    "metrics",
    "peer",
    "program",
    "repeated",
    "replies",
    "retrying",
    "rounds",
    "sparse_log",
    "steps",
    "timer_queue",
    "topic_pieces",
    "turn",
    "unsupported_version",
    "watermark_policies",
}
WINGS: dict[str, set[str]] = {  # of broker/, the lowest first: what each may import
    "floor": set(),
    "config": {"floor"},
    "settings": {"floor", "config"},
    "tls": {"floor", "config"},
    "security": {"floor", "config", "tls"},
    "replica": {"floor", "config", "settings"},
    "controller": {"floor", "config", "settings", "replica"},
    "shards": {"floor", "config", "settings", "replica", "controller"},
    "group": {"floor", "config", "settings", "replica", "controller", "shards"},
    "transaction": {"floor", "config", "settings", "replica", "controller", "shards", "group"},
    "share": {"floor", "config", "settings", "replica", "controller", "shards"},
    "telemetry": {"floor"},
    "zookeeper": {"floor", "config", "tls", "controller"},
    "broker": {
        *{"floor", "config", "settings", "security", "tls", "replica", "controller", "shards", "group"},
        *{"transaction", "share", "telemetry", "zookeeper"},
    },
    "share_groups": {"floor", "share", "broker"},
    "seed": {"floor", "config", "broker"},
    "lab": {
        *{"floor", "config", "replica", "shards", "group", "transaction", "share", "telemetry", "broker"},
        *{"share_groups", "seed"},
    },
    "net": {"floor", "config", "security", "tls", "replica", "broker", "seed", "lab", "zookeeper"},
    "apis": {
        "floor",
        "config",
        "settings",
        "security",
        "replica",
        "controller",
        "shards",
        "group",
        "transaction",
        "share",
        "broker",
        "share_groups",
        "net",
        "tls",
    },
    "emulation": {"floor", "config", "replica", "broker", "net", "apis", "zookeeper"},
}
NOT_BELOW_BROKER = {"asyncio", "uvloop", "random", "time", "socket", "threading", "secrets"}
# how often each folder may say `Any`: less only
ANY = {"protocol": 18, "storage": 1, "coordinator": 58, "classic": 10, "broker": 57, "pipeline": 9, "ottla": 2}
OPENS_PATHS = {"storage/files.py"}
MODULE_LINES_MAX = 450
FUNCTION_LINES_MAX = 60
TEST_MODULE_LINES_MAX = 450
TEST_LINES_MAX = 60


def sources() -> list[tuple[str, ast.Module]]:
    return list(trees(*FOLDERS).items())


def imported(name: str, tree: ast.Module) -> list[str]:
    """Imported modules, relative ones as paths from the repository root."""
    depth = name.count("/")
    found = []
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level > depth:
                found.append((node.module or "").replace(".", "/"))
            elif node.level == 0:
                found.append(node.module or "")
    return found


def may_be_imported(top: str, name: str) -> bool:
    """Whether the module `name` may import `top`, a folder of ours or a package."""
    area = name.split("/", maxsplit=1)[0]
    if top in FOLDERS:
        return top == area or top in MAY_IMPORT[area]
    if top == "asyncio" and name not in ASYNCIO_MAY_BE_IN:
        return False
    is_pure = area in ("protocol", "coordinator", "verdict") or name.startswith("classic/balance/")
    if is_pure or (area == "storage" and name not in OPENS_PATHS):
        return top not in {"ottla", *NOT_BELOW_BROKER, *FOR_SPARK}
    return top != "ottla" and (area == "pipeline" or top not in FOR_SPARK)


def test_imports_go_downwards() -> None:
    tops = [(name, re.split(r"[/.]", module)[0]) for name, tree in sources() for module in imported(name, tree)]
    refused = [f"{name} imports {top}" for name, top in tops if not may_be_imported(top, name)]
    assert not refused, refused


@pytest.mark.parametrize(
    ("name", "top"),
    [
        *[("storage/log.py", "broker"), ("broker/turn.py", "ottla"), ("broker/turn.py", "asyncio")],
        *[
            ("classic/balance/member.py", "time"),
            ("classic/producer.py", "broker"),
            ("protocol/codec.py", "time"),
            ("storage/log.py", "random"),
            ("broker/turn.py", "pandas"),
        ],
    ],
)
def test_an_import_upwards_is_found(name: str, top: str) -> None:
    assert not may_be_imported(top, name)


def module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__")


@cache
def imports_between_modules() -> dict[str, dict[str, list[str]]]:
    """Which modules of ours each imports, with the names that it takes: at its top, for types, and within functions."""
    known = {module_of(name) for name, _ in sources()}
    found: dict[str, dict[str, list[str]]] = {}
    for name, tree in sources():
        package = name.split("/")[:-1]
        taken = found.setdefault(module_of(name), {})
        for node in nodes(tree):
            if not isinstance(node, ast.ImportFrom) or not node.level:
                continue
            base = "/".join([*package[: len(package) - node.level + 1], *(node.module or "").split(".")]).rstrip("/")
            for alias in node.names:
                whole = f"{base}/{alias.name}"
                target = whole if whole in known else base
                if target in known and target != module_of(name):
                    taken.setdefault(target, []).append(alias.name)
    return found


def wing_of(module: str) -> str:
    """The wing of broker/ that a module is in."""
    inside = module.split("/")[1] if "/" in module else ""
    return "floor" if inside in FLOOR else inside


def test_wings_import_downwards() -> None:
    lower: set[str] = set()
    for wing, may_import in WINGS.items():
        assert may_import <= lower, f"{wing} comes before what it may import"
        lower.add(wing)
    upward: list[tuple[str, str]] = []
    for module, taken in imports_between_modules().items():
        if not module.startswith("broker/"):
            continue
        wing = wing_of(module)
        for target in taken:
            other = wing_of(target) if target.startswith("broker") else wing
            if other != wing and other not in WINGS[wing]:
                upward.append((module, other))
    assert not upward, f"imports of higher wings: {upward}"


def test_wings_are_entered_by_their_front_doors() -> None:
    """What begins with an underscore is for the wing alone."""
    for module, taken in imports_between_modules().items():
        for target, names in taken.items():
            if target.startswith("broker/") and wing_of(target) != wing_of(module):
                private = [name for name in [target.rpartition("/")[2], *names] if name.startswith("_")]
                assert not private, f"{module} takes {private} of {target}"


def circles(imports: dict[str, dict[str, list[str]]]) -> list[set[str]]:
    """The groups of modules of which each imports the others, directly or through others of them (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in imports.get(module, ()):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            at = stack.index(module)
            circle, stack[at:] = set(stack[at:]), []
            if len(circle) > 1:
                found.append(circle)

    for module in imports:
        if module not in index:
            visit(module)
    return found


def test_modules_do_not_import_in_circles() -> None:
    """Neither at their top, nor for types, nor within functions."""
    found = circles(imports_between_modules())
    assert not found, f"circles of imports: {[sorted(circle) for circle in found]}"


def test_a_circle_is_found() -> None:
    imports: dict[str, dict[str, list[str]]] = {"a": {"b": []}, "b": {"c": []}, "c": {"a": [], "d": []}, "d": {}}
    assert circles(imports) == [{"a", "b", "c"}]


def test_nothing_is_left_for_later() -> None:
    marks = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK")))
    for path in [*ROOT.glob("*/**/*.py"), ROOT / "README.md"]:
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts):
            assert not re.search(rf"\b({marks.pattern})\b", path.read_text()), path


def test_every_module_is_importable_under_one_name() -> None:
    import ottla.broker.net.server

    assert ottla.broker.net.server is not None
    for name in list(sys.modules):
        assert name.split(".")[0] not in FOLDERS, name


def versions_in_words(low: int, high: int) -> str:
    if low == high:
        return f"version {low}"
    return f"versions {low} {'and' if high == low + 1 else 'to'} {high}"


def test_every_api_file_says_its_versions_in_its_header() -> None:
    """The file's name has the key. Its header names the API and the versions that are served, says what the API does,
    and names a KIP or a class of Kafka that defines it. Each version in its list is one of Kafka's.
    """
    for api in apis().values():
        check_header(api)


def check_header(api: Api) -> None:
    assert re.match(rf"k{api.key:02d}_[a-z]", api.module)
    header = (ROOT / "broker" / "apis" / f"{api.module}.py").read_text().split('"""')[1]
    versions = versions_in_words(api.low, api.high)
    assert re.match(rf"{api.name}, {versions}: [a-z]", header), (
        f"{api.module} does not begin: {api.name}, {versions}: …"
    )
    sources = re.findall(r"KIP-\d+|\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b", header)
    assert [one for one in sources if one != api.name], f"{api.module} names no KIP and no class of Kafka"
    listed = header.partition("**Versions**")[2]
    for first, last in re.findall(r"^- (\d+)(?: (?:to|and) (\d+))?\b", listed, re.MULTILINE):
        assert int(last or first) <= api.high, f"{api.module} lists version {last or first}"


def test_no_test_module_imports_another() -> None:
    """What tests share is in tests/support."""
    for path, tree in trees("tests").items():
        for node in nodes(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                names = [node.module or "", *(alias.name for alias in node.names)]
                taken = [name for name in names if name.rpartition(".")[2].startswith("test_")]
                assert not taken, f"{path}:{node.lineno} imports {taken}"


def test_no_test_waits_for_a_command_without_a_bound() -> None:
    for path, tree in trees("tests").items():
        for node in nodes(tree):
            if isinstance(node, ast.Call) and dotted(node.func) in ("subprocess.run", "subprocess.check_output"):
                bounded = any(one.arg == "timeout" for one in node.keywords)
                assert bounded, f"{path}:{node.lineno} has no timeout"


def test_every_package_is_shipped() -> None:
    """A folder with modules that pyproject.toml does not name is missing from the wheel."""
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {
        f"ottla.{path.parent.relative_to(ROOT)}".replace("/", ".")
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("__init__.py")
    }
    assert found <= listed


def test_nothing_but_a_log_assigns_its_fields() -> None:
    """What opens, cleans or moves a log says so by a method, so that one file shows what may happen to its state."""
    for path, tree in trees("storage", "broker").items():
        for node in nodes(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
                assert node.value.id != "log", f"{path}:{node.lineno}"


def names_any(tree: ast.AST) -> int:
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes(tree))


@pytest.mark.parametrize("folder", ANY)
def test_any_only_becomes_less(folder: str) -> None:
    """The table `ANY` has how often each folder says `Any`. Fewer is better, and then the table says so."""
    found = sum(map(names_any, trees(folder).values()))
    assert found <= ANY[folder], f"{folder}/ says Any {found} times, {ANY[folder]} before: give what is new a type"
    assert found == ANY[folder], f"{folder}/ says Any {found} times only: write that into the table ANY"


def test_requests_have_their_own_class() -> None:
    """A handler of an API or of a coordinator says which message it takes. `net` and `steps` carry those of all
    APIs.
    """
    untyped = [
        f"{name}:{node.lineno}"
        for name, tree in sources()
        if not name.startswith("broker/net/")
        for node in nodes(tree)
        if isinstance(node, ast.arg)
        and node.arg == "request"
        and (node.annotation is None or names_any(node.annotation))
    ]
    assert not untyped, f"request has no class of its own: {untyped}"


def test_functions_and_modules_are_short() -> None:
    """A module has one reason to change, and a function fits on a screen."""
    found = [one for name, tree in sources() for one in too_long(name, tree, MODULE_LINES_MAX, FUNCTION_LINES_MAX)]
    assert not found, f"cut by responsibility: {found}"


def test_tests_are_short() -> None:
    found = [
        one
        for name, tree in trees("tests").items()
        for one in too_long(name, tree, TEST_MODULE_LINES_MAX, TEST_LINES_MAX)
    ]
    assert not found, f"cut by responsibility: {found}"


def too_long(name: str, tree: ast.Module, module_max: int, function_max: int) -> Iterator[str]:
    """Yields the module if it has more lines than it may, and its functions that have."""
    lines = len(text(ROOT / name).splitlines())
    if lines > module_max:
        yield f"{name} has {lines} lines"
    for node in nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            length = node.end_lineno - node.lineno + 1
            if length > function_max:
                yield f"{name}:{node.lineno} {node.name} has {length} lines"


SLOW_FOLDERS = ("clients", "oracle", "differential")


@pytest.mark.parametrize("folder", SLOW_FOLDERS)
def test_every_test_in_a_slow_folder_is_slow(folder: str) -> None:
    """`make quick` does not import them."""
    for name, tree in trees(f"tests/{folder}").items():
        if name.rpartition("/")[2].startswith("test_"):
            marked = [one for one in tree.body if isinstance(one, ast.Assign) and "pytestmark" in ast.unparse(one)]
            assert marked, f"{name} has no pytestmark"
            assert "slow" in ast.unparse(marked[0].value), f"{name} is not slow"
