"""The architecture, held by tests: who may import whom, where time and chance may be, what must not be left lying about."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
from ottla.broker.registry import apis

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("protocol", "storage", "coordinator", "broker", "pipeline")
MAY_IMPORT = {
    "protocol": set(),
    "storage": {"protocol"},
    "coordinator": {"protocol"},
    "broker": {"protocol", "storage", "coordinator"},
    "pipeline": {"protocol", "storage", "coordinator"},
}
FOR_SPARK = {"numpy", "pandas", "plotly", "pyarrow", "pyspark", "fsspec"}
ASYNCIO_MAY_BE_IN = {"broker/server.py", "broker/connection.py", "broker/clock.py", "broker/lab.py", "broker/http.py", "broker/seed.py"}
NOT_BELOW_BROKER = {"asyncio", "uvloop", "random", "time", "socket", "threading", "secrets"}
TEMPLATES = ROOT / "pipeline" / "project"  # a user's files, to be
OPENS_PATHS = {"storage/files.py"}


def sources() -> list[tuple[str, ast.Module]]:
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.is_relative_to(TEMPLATES):
                continue
            found.append((path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())))
    return found


def imported(name: str, tree: ast.Module) -> list[str]:
    """Imported modules, relative ones as paths from the repository root."""
    depth = name.count("/")
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level > depth:
                found.append((node.module or "").replace(".", "/"))
            elif node.level == 0:
                found.append(node.module or "")
    return found


@pytest.mark.parametrize(("name", "tree"), sources(), ids=[n for n, _ in sources()])
def test_imports_go_downwards(name: str, tree: ast.Module) -> None:
    area = name.split("/", maxsplit=1)[0]
    for module in imported(name, tree):
        top = module.split("/")[0].split(".")[0]
        assert top != "ottla", f"{name} imports ottla absolutely"
        if top in FOLDERS and top != area:
            assert top in MAY_IMPORT[area], f"{name} imports {top}"
        assert area == "pipeline" or top not in FOR_SPARK, f"{name} imports {top}"
        if top == "asyncio":
            assert name in ASYNCIO_MAY_BE_IN, name
        if area in ("protocol", "coordinator") or (area == "storage" and name not in OPENS_PATHS):
            assert top not in NOT_BELOW_BROKER, f"{name} imports {top}"


def test_nothing_is_left_for_later() -> None:
    marks = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK")))
    for path in [*ROOT.glob("*/**/*.py"), ROOT / "README.md"]:
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts):
            assert not re.search(rf"\b({marks.pattern})\b", path.read_text()), path


def test_every_module_is_importable_under_one_name() -> None:
    import ottla.broker.server

    assert ottla.broker.server is not None
    for name in list(sys.modules):
        assert name.split(".")[0] not in FOLDERS, name


def test_every_api_file_says_its_versions_in_its_header() -> None:
    for api in apis().values():
        text = (ROOT / "broker" / "apis" / f"{api.module}.py").read_text()
        first = text.split('"""')[1]
        assert re.match(rf"{api.name}, version", first), api.module
        assert str(api.high) in first.partition(".")[0].partition(":")[0] or str(api.high) in first, api.module


def test_the_readme_lists_what_is_served() -> None:
    readme = (ROOT / "README.md").read_text()
    for api in apis().values():
        assert f"| {api.key} | {api.name} | {api.low}–{api.high} |" in readme, api.name


def test_every_package_is_shipped() -> None:
    """A folder with modules that pyproject.toml does not name is missing from the wheel."""
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {f"ottla.{path.parent.relative_to(ROOT)}".replace("/", ".") for folder in FOLDERS for path in (ROOT / folder).rglob("__init__.py")}
    assert found <= listed
