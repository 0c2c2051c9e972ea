"""Writes `protocol/messages.pyi` from the schemas: the fields of every message, for type checkers and editors.

python -m tests.tools.make_stubs [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

from ottla.protocol import schema
from ottla.protocol.schema import FieldSchema, Schema, StructSchema

TARGET = Path(__file__).resolve().parents[2] / "protocol" / "messages.pyi"
TYPES = {"bool": "bool", "float64": "float", "string": "str", "uuid": "bytes", "bytes": "bytes", "records": "Any"}


def type_of(loaded: Schema, f: FieldSchema) -> str:
    element = f"{loaded.name}.{f.struct.name}" if f.struct else TYPES.get(f.element_type, "int")
    made = f"list[{element}]" if f.is_array else element
    optional = f.nullable.high >= f.nullable.low or f.default is None
    return f"{made} | None" if optional and made != "Any" else made


def class_lines(loaded: Schema, struct: StructSchema, indent: str) -> list[str]:
    lines = [f"{indent}class {struct.name}(Struct):"]
    inner = indent + "    "
    if struct is loaded.root:
        for name, nested in loaded.structs.items():
            if name != struct.name:
                lines += class_lines(loaded, nested, inner)
    lines += [f"{inner}{f.name}: {type_of(loaded, f)}" for f in struct.fields]
    lines.append(f"{inner}unknown_tags: list[tuple[int, bytes]] | None")
    arguments = ", ".join(f"{f.name}: {type_of(loaded, f)} = ..." for f in struct.fields)
    star = f"self, {arguments}" if arguments else "self"
    lines.append(f"{inner}def __init__({star}, unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...")
    return lines


def rendered() -> str:
    names = [n for found in schema.index()["apis"].values() for n in (found["request"], found["response"])]
    names += ["RequestHeader", "ResponseHeader", *(n for kind in schema.index()["records"].values() for n in kind)]
    lines = ["# Made by `make stubs` from the schemas.", "from typing import Any", "", "from . import schema as _schema", ""]
    lines += ["class Struct:", "    __slots__: tuple[str, ...]", ""]
    lines += ["def struct_class(schema: _schema.Schema, struct: _schema.StructSchema) -> type: ..."]
    lines += ["def default_of(schema: _schema.Schema, f: _schema.FieldSchema) -> Any: ...", ""]
    for name in sorted(names):
        loaded = schema.load(name)
        lines += [*class_lines(loaded, loaded.root, ""), ""]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    text = rendered()
    if "--check" in arguments:
        same = TARGET.exists() and TARGET.read_text() == text
        print("the stubs are those of the schemas" if same else "the stubs are old: make stubs")
        return 0 if same else 1
    TARGET.write_text(text)
    print(f"{TARGET.name}: {text.count('class ')} classes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
