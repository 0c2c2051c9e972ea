"""How numbers, times and values are written on the pages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
MINUS = "–"  # stands for nothing


def number(value: float | None) -> str:
    return MINUS if value is None else f"{value:,}".replace(",", "\u202f")


def size(value: int) -> str:
    """Bytes: `1.4 MiB`."""
    if value < 1024:
        return f"{value} B"
    power = min((value.bit_length() - 1) // 10, 4)
    return f"{value / (1 << 10 * power):.1f} {UNITS[power]}"


def span(ms: float | None) -> str:
    """Milliseconds: `350 ms`, `4.2 s`, `3 m 20 s`, `2 h 5 m`, `3 d 4 h`."""
    if ms is None:
        return MINUS
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    seconds = int(ms // 1000)
    for large, small, name, part in ((86_400, 3600, "d", "h"), (3600, 60, "h", "m"), (60, 1, "m", "s")):
        if seconds >= large:
            return f"{seconds // large} {name} {seconds % large // small} {part}"
    return f"{seconds} s"


def time(ms: int | None, with_date: bool = True) -> str:
    """A wall time in UTC."""
    if ms is None or not 0 <= ms < 253_402_300_800_000:
        return MINUS if ms is None or ms < 0 else str(ms)
    found = datetime.fromtimestamp(ms / 1000, UTC)
    return found.strftime("%Y-%m-%d %H:%M:%S.%f" if with_date else "%H:%M:%S.%f")[:-3]


def short(text: str, most: int = 120) -> str:
    """A text on one line, cut."""
    line = text.replace("\n", "↵").replace("\r", "").replace("\t", "→")
    return line if len(line) <= most else f"{line[: most - 1]}…"


def middle(text: str, most: int) -> str:
    """A name on one line, cut in its middle: names of members differ at their ends."""
    line = short(text, len(text))
    return line if len(line) <= most else f"{line[: most // 2]}…{line[len(line) - (most - 1) // 2 :]}"


def text(value: object) -> str:
    """A value of a record or a header."""
    return "null" if value is None else str(value)


def brief(value: object) -> str:
    """A value of JSON on one line; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def indented(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def places(partitions: Iterable[Mapping[str, object]]) -> str:
    """Partitions by topic: `orders 0-3,7`."""
    return "  ".join(f"{one['topic']} {ranges(one['partitions'])}" for one in partitions) or MINUS


def nodes(found: Iterable[Mapping[str, object]]) -> str:
    """Nodes of a cluster: `3 nodes: 1 leads 2, 2 is stopped`; nothing for one node."""
    each = [
        f"{one['node']} leads {one['leads']}" if one["state"] == "running" else f"{one['node']} is {one['state']}"
        for one in found
    ]
    return f"{len(each)} nodes: {', '.join(each)}" if len(each) > 1 else ""


def ranges(numbers: object) -> str:
    """Whole numbers, neighbours as ranges: `0-3,7`."""
    found: list[list[int]] = []
    for one in sorted(numbers) if isinstance(numbers, list) else []:
        if found and one == found[-1][1] + 1:
            found[-1][1] = one
        else:
            found.append([one, one])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in found)
