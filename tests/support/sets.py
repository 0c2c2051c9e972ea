"""Finds where source text iterates a set, whose order differs from one run to the next for text and bytes.

What is a set is inferred from annotations and from how values are made, by name: within a function for variables, and
over all modules for attributes whose name never has another type. What takes a set as a whole (`sorted`, `len`, `any`,
another set) does not depend on its order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .sources import nodes

SETS = {"set", "frozenset", "Set", "AbstractSet"}
UNORDERED = {"sorted", "set", "frozenset", "any", "all", "sum", "len", "min", "max"}
ORDERED = {"list", "tuple", "enumerate", "zip", "map", "filter", "iter", "next", "join", "extend", "fromkeys"}
MAKERS = {"union", "difference", "intersection", "symmetric_difference"}
Trees = dict[str, ast.Module]


def iterated_sets(trees: Trees, fields: set[str]) -> Iterator[tuple[str, int, str]]:
    """File, line and text of every set that is iterated. `fields`: names of attributes that are no sets elsewhere."""
    attributes = _attributes(trees) - {f".{name}" for name in fields}
    for name, tree in trees.items():
        taken_whole = _taken_whole(tree)
        found: dict[tuple[int, str], None] = {}
        for scope in _scopes(tree):
            below = nodes(scope)
            known = attributes | _variables(scope, below, attributes)
            for node in below:
                if id(node) not in taken_whole:
                    for iterated in _iterated(node):
                        if _is_set(iterated, known):
                            found[iterated.lineno, ast.unparse(iterated)] = None
        for line, text in sorted(found):
            yield name, line, text


def _scopes(tree: ast.Module) -> Iterator[ast.AST]:
    for node in nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
    module = ast.Module([one for one in tree.body if not isinstance(one, ast.FunctionDef | ast.ClassDef)], [])
    yield module


def _attributes(trees: Trees) -> set[str]:
    """Attributes that classes declare as sets and never as anything else, each with a dot before its name."""
    sets: set[str] = set()
    others: set[str] = set()
    for tree in trees.values():
        for class_ in (node for node in nodes(tree) if isinstance(node, ast.ClassDef)):
            for node in nodes(class_):
                if isinstance(node, ast.AnnAssign):
                    name = "." + (_key(node.target) or "").lstrip(".")
                    (sets if _names_set(node.annotation) else others).add(name)
                elif isinstance(node, ast.Assign):
                    names = {_key(one) or "" for one in node.targets if isinstance(one, ast.Attribute)}
                    (sets if _is_set(node.value, set()) else others).update(names)
                elif isinstance(node, ast.FunctionDef):
                    others.add(f".{node.name}")
    return (sets - others) | _functions(trees)


def _functions(trees: Trees) -> set[str]:
    """Functions and methods that return a set, each with `()` after its name, where none of its name returns another
    type.
    """
    sets: set[str] = set()
    others: set[str] = set()
    for tree in trees.values():
        for node in nodes(tree):
            if isinstance(node, ast.FunctionDef) and node.returns is not None:
                (sets if _names_set(node.returns) else others).add(f"{node.name}()")
    return sets - others


def _variables(scope: ast.AST, below: Sequence[ast.AST], attributes: set[str]) -> set[str]:
    known: set[str] = set()
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = [*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs]
        known |= {one.arg for one in arguments if one.annotation is not None and _names_set(one.annotation)}
    for _ in range(2):  # a variable may be made of one that is assigned further down
        for node in below:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _names_set(node.annotation):
                known.add(node.target.id)
            elif isinstance(node, ast.Assign) and _is_set(node.value, known | attributes):
                known |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    return known


def _taken_whole(tree: ast.Module) -> set[int]:
    """The nodes below a call that does not depend on the order of what it takes."""
    found: set[int] = set()
    for node in nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in UNORDERED:
            found |= {id(below) for argument in node.args for below in (argument, *_plain(argument))}
    return found


def _plain(argument: ast.expr) -> Iterator[ast.AST]:
    """What makes up an argument: `sorted(map(str, names))`."""
    if isinstance(argument, ast.Call):
        for one in argument.args:
            yield one
            yield from _plain(one)
    elif isinstance(argument, ast.Starred):
        yield argument.value


def _iterated(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.For):
        return [node.iter]
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
        return [one.iter for one in node.generators]
    if isinstance(node, ast.Starred):
        return [node.value]
    if isinstance(node, ast.Call):
        name = (_key(node.func) or "").lstrip(".")
        if name in ORDERED:
            return [one for one in node.args if not isinstance(one, ast.Starred)]
        if name == "pop" and not node.args and isinstance(node.func, ast.Attribute):
            return [node.func.value]
    return []


def _names_set(annotation: ast.expr) -> bool:
    if isinstance(annotation, ast.BinOp):
        return _names_set(annotation.left) or _names_set(annotation.right)
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return isinstance(annotation, ast.Name) and annotation.id in SETS


def _key(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return f".{node.attr}" if isinstance(node, ast.Attribute) else None


def _is_set(node: ast.expr, known: set[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        name = (_key(node.func) or "").lstrip(".")
        return name in SETS or name in MAKERS or f"{name}()" in known
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor):
        return _is_set(node.left, known) or _is_set(node.right, known)
    if isinstance(node, ast.IfExp):
        return _is_set(node.body, known) or _is_set(node.orelse, known)
    return _key(node) in known
