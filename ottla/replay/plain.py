"""Messages from their plain form, where a trace has no bytes of a frame."""

from __future__ import annotations

from ..protocol import schema
from ..protocol.messages import struct_class
from ..protocol.schema import FieldSchema, Schema, StructSchema
from ..protocol.structs import Struct

MASK = "***"


class NotWhole(ValueError):
    """A message that the trace does not have completely: records, or a value that is masked."""


def message_of(name: str, plain: dict[str, object]) -> Struct:
    """Returns the message of a schema that a trace has in plain form. Raises NotWhole."""
    loaded = schema.load(name)
    return _struct(loaded, loaded.root, plain)


def _struct(loaded: Schema, struct: StructSchema, plain: dict[str, object]) -> Struct:
    made: Struct = struct_class(loaded, struct)()
    for field in struct.fields:
        if field.name in plain:
            value = plain[field.name]
            items = [_value(loaded, field, item) for item in value] if isinstance(value, list) else None
            setattr(made, field.name, _value(loaded, field, value) if items is None else items)
    return made


def _value(loaded: Schema, field: FieldSchema, value: object) -> object:
    if value is None:
        return None
    if value == MASK:
        raise NotWhole(f"{field.name} is masked")
    if field.type == "records":
        raise NotWhole("the trace has no records")
    if field.struct is not None and isinstance(value, dict):
        return _struct(loaded, field.struct, value)
    if field.element_type in ("uuid", "bytes"):
        return bytes.fromhex(str(value))
    return float(str(value)) if field.element_type == "float64" else value
