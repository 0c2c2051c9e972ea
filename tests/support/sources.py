"""The repository's Python files as syntax trees: each is read, parsed and walked once for all tests that look at the
code.
"""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "pipeline" / "project"  # a user's files, to be


@cache
def text(path: Path) -> str:
    return path.read_text()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path))


@cache
def nodes(of: ast.AST) -> list[ast.AST]:
    """This node and all below it, in the order of `ast.walk`, without contexts (Load, Store, Del)."""
    found = [of]
    for node in found:  # which grows
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                if not isinstance(value, ast.expr_context):
                    found.append(value)
            elif isinstance(value, list):
                found += [one for one in value if isinstance(one, ast.AST)]
    return found


@cache
def trees(*folders: str) -> dict[str, ast.Module]:
    """The modules in folders of the repository, by their paths from its root.

    The trees stay until the end of the run. The garbage collector, which takes three times as long as the parser, does
    not look at them.
    """
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    gc.disable()
    try:
        found = {path.relative_to(ROOT).as_posix(): tree(path) for path in paths if not path.is_relative_to(TEMPLATES)}
        for one in found.values():
            nodes(one)
    finally:
        gc.freeze()
        gc.enable()
    return found


def dotted(node: ast.expr) -> str:
    """`os.path.join` as text; what is no name is `?`."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else "?"
