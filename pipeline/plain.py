"""Values of rows as text formats and pages show them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

Row = dict[str, Any]  # a row's values by column, as Spark's `Row.asDict` returns them


def plain(value: object) -> object:
    """Converts a value for JSON: times to ISO 8601, bytes to text or hex."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return "0x" + value.hex()
    if hasattr(value, "asDict"):
        return {name: plain(one) for name, one in value.asDict().items()}
    return [plain(one) for one in value] if isinstance(value, list) else value
