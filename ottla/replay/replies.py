"""What a broker replies differently from the trace: the differences, and why each of them may be."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..comparing.differences import Difference, differences, request_context
from ..comparing.early import AGAIN
from ..comparing.identities import Identities
from ..comparing.rules import Rules
from ..protocol.errors import Errors
from ..protocol.schema import FieldSchema, StructSchema
from .exchanges import Exchange

Plain = dict[str, object]
CODE: Final = "error_code"
CHECKSUM: Final = "crc"
EARLY: Final = "the broker of the trace was not ready yet"


class Answered(NamedTuple):
    """A difference: A is the broker of the trace. `why`: the reason for which it may be; empty if there is none."""

    difference: Difference
    why: str


def compare(exchange: Exchange, said: Plain, now: Plain, identities: Identities, rules: Rules) -> list[Answered]:
    """Compares a reply of the trace with the one that came now, both in plain form, and learns the ids in them."""
    root = exchange.reply_schema
    context = request_context(with_ids(exchange.request_schema, exchange.plain_request))
    mine, other = (with_ids(root, one) for one in (said, now))
    _leave_common(mine, other)
    found = differences(mine, other, identities, context)
    early = tuple(one.path.removesuffix(CODE) for one in found if _is_early(one))
    return [Answered(one, _why(exchange.api, one, rules, early)) for one in found]


def _is_early(one: Difference) -> bool:
    """Whether the trace has an error of a broker that is not ready yet, and there is none now."""
    return one.path.endswith(CODE) and one.a in AGAIN and one.b == Errors.NONE


def _why(api: str, one: Difference, rules: Rules, early: tuple[str, ...]) -> str:
    """`early`: the paths of the elements that had such an error, which say nothing else."""
    if one.path.startswith(early):
        return EARLY
    rule = rules.rule_for(api, one)
    return rule.reason if rule is not None else ""


def with_ids(struct: StructSchema, plain: Plain) -> Plain:
    """A message in plain form, but with ids as messages have them: the plain form writes UUIDs as text."""
    fields = {field.name: field for field in struct.fields}
    return {name: _value(fields[name], value) if name in fields else value for name, value in plain.items()}


def _value(field: FieldSchema, value: object) -> object:
    if isinstance(value, list):
        return [_value(field, one) for one in value]
    if field.struct is not None and isinstance(value, dict):
        return with_ids(field.struct, value)
    return bytes.fromhex(value) if field.element_type == "uuid" and isinstance(value, str) else value


def _leave_common(said: object, now: object) -> None:
    """Of records, a trace says what its version knew to say; leaves what both say, without the checksum, which is of
    times and producer ids, too.
    """
    if isinstance(said, list) and isinstance(now, list):
        for pair in zip(said, now, strict=False):
            _leave_common(*pair)
    elif isinstance(said, dict) and isinstance(now, dict):
        for name in said.keys() & now.keys():
            one, other = said[name], now[name]
            if name in ("records", "record_set") and isinstance(one, dict) and isinstance(other, dict):
                names = [key for key in one if key in other and key != CHECKSUM]
                said[name], now[name] = ({key: each[key] for key in names} for each in (one, other))
            else:
                _leave_common(one, other)
