"""Tests where the hot modules are compiled: what a class or a module of theirs cannot be made to do.

Attributes of compiled classes cannot be replaced, and compiled functions call those of their own module directly. A
test that replaces one looks into the interpreted form, and is skipped with the compiled one.
"""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ottla import build

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("broker", "coordinator", "protocol", "storage")


def _is_compiled(module: object) -> bool:
    found = sys.modules.get(module) if isinstance(module, str) else module
    return isinstance(found, ModuleType) and not (getattr(found, "__file__", None) or ".py").endswith(".py")


def _cannot_be_replaced(target: object, name: str) -> bool:
    if isinstance(target, ModuleType):
        return _is_compiled(target) and callable(getattr(target, name, None))
    return _is_compiled(getattr(target, "__module__", "")) or any(
        _is_compiled(one.__module__) for one in type(target).__mro__
    )


def stale() -> list[Path]:
    """Returns the sources that have changed since they were compiled in place. The code of all is in one library; the
    one that is beside a source only names it, and is not made again.
    """
    changed = []
    made = max((one.stat().st_mtime for one in ROOT.glob("ottla__mypyc*.so")), default=0.0)
    for built in (one for folder in FOLDERS for one in (ROOT / folder).rglob("*.so")):
        source = built.with_name(built.name.split(".")[0] + ".py")
        if source.exists() and source.stat().st_mtime > made:
            changed.append(source.relative_to(ROOT))
    return changed


def configure() -> None:
    """Skips tests that replace what cannot be replaced. Raises pytest.UsageError if sources have changed."""
    if not build.is_compiled():
        return
    changed = stale()
    if changed:
        raise pytest.UsageError(f"changed since they were compiled: {changed[0]} …; `make compiled` or `make pure`")
    plain = pytest.MonkeyPatch.setattr

    def replaced(patch: pytest.MonkeyPatch, target: Any, name: Any, *rest: Any, **options: Any) -> None:
        owner, attribute = target, name
        if isinstance(target, str):
            path, _, attribute = target.rpartition(".")
            owner = pkgutil.resolve_name(path)
        if _cannot_be_replaced(owner, attribute):
            pytest.skip(f"replaces {attribute} of {owner}, which is compiled")
        plain(patch, target, name, *rest, **options)

    pytest.MonkeyPatch.setattr = replaced  # type: ignore[method-assign, assignment]
