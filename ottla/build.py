"""How this ottla was built: as plain Python, or with its hot modules compiled by mypyc."""

from __future__ import annotations

from importlib.util import find_spec


def is_compiled() -> bool:
    """Whether the compiled form of the hot modules is what is imported; it imports none of them."""
    spec = find_spec(f"{__package__}.protocol.records")
    return spec is not None and spec.origin is not None and not spec.origin.endswith(".py")


def kind() -> str:
    return "compiled" if is_compiled() else "pure Python"
