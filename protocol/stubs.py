"""Derives `messages.pyi` from the schemas: the fields of every message, for type checkers and editors.

`make` runs it, and so does `setup.py` for every wheel and sdist; the file is not in the repository. It needs nothing
but Python.
"""

from __future__ import annotations

import os
from pathlib import Path

from . import schema
from .schema import FieldSchema, Schema, StructSchema

TARGET = Path(__file__).resolve().with_name("messages.pyi")
TYPES = {"bool": "bool", "float64": "float", "string": "str", "uuid": "bytes", "bytes": "bytes", "records": "Any"}
UNKNOWN_TAGS = "list[tuple[int, bytes]] | None"
HEAD = '''"""Derived from the schemas by `ottla.protocol.stubs`."""

from typing import Any

from . import schema as _schema
from .structs import Struct as Struct

def struct_class(schema: _schema.Schema, struct: _schema.StructSchema) -> type[Struct]: ...
def named_class(schema: str, struct: str) -> type[Struct]: ...
def names_of(cls: type) -> tuple[str, str] | None: ...
def default_of(schema: _schema.Schema, f: _schema.FieldSchema) -> object: ...
'''


def derived() -> str:
    """Returns the text of the stub: a class for each message, with the classes of its structs in it."""
    index = schema.index()
    names = [api[part] for api in index["apis"].values() for part in ("request", "response")]
    names += ["RequestHeader", "ResponseHeader", *(name for kind in index["records"].values() for name in kind)]
    parts = [HEAD]
    for name in sorted(names):
        loaded = schema.load(name)
        parts.append("\n".join(_class_lines(loaded, loaded.root, "")) + "\n")
    return "\n".join(parts)


def _class_lines(loaded: Schema, struct: StructSchema, indent: str) -> list[str]:
    lines, inner = [f"{indent}class {struct.name}(Struct):"], indent + "    "
    if struct is loaded.root:
        for nested in loaded.structs.values():
            if nested is not struct:
                lines += _class_lines(loaded, nested, inner)
    fields = {f.name: _type_of(loaded, f) for f in struct.fields} | {"unknown_tags": UNKNOWN_TAGS}
    lines += [f"{inner}{name}: {kind}" for name, kind in fields.items()]
    arguments = ", ".join(f"{name}: {kind} = ..." for name, kind in fields.items())
    lines.append(f"{inner}def __init__(self, {arguments}) -> None: ...")
    return lines


def _type_of(loaded: Schema, f: FieldSchema) -> str:
    element = f"{loaded.name}.{f.struct.name}" if f.struct else TYPES.get(f.element_type, "int")
    made = f"list[{element}]" if f.is_array else element
    is_nullable = f.nullable.high >= f.nullable.low or f.default is None
    return f"{made} | None" if is_nullable and made != "Any" else made


def write(target: Path = TARGET) -> None:
    """Writes the stub, in one step for those who read it meanwhile."""
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    fresh.write_text(derived())
    fresh.replace(target)


if __name__ == "__main__":
    write()
