"""How the lab's clock stands when the broker starts (`ottla.lab.clock`)."""

from __future__ import annotations

import re
from typing import NamedTuple

RATE_MIN, RATE_MAX = 0.01, 1000.0
SEEDED_START_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z, where a broker with a seed begins unless told otherwise
_FORM = re.compile(r"(?P<mode>system|frozen|rate=(?P<rate>[^@]*))(@(?P<start>.+))?")


class ClockStart(NamedTuple):
    """`rate`: how many milliseconds of the broker pass in one of the machine's; 0 if time stands still, 1 for the
    machine's. `start_ms`: the wall time at which the broker begins; None for the machine's.
    """

    rate: float
    start_ms: int | None = None


MACHINE = ClockStart(1)


def parse_clock(text: str) -> ClockStart:
    """Parses `system`, `frozen`, `rate=10`, and the last two with a time to begin at: `frozen@2026-01-01T00:00:00Z`.
    Raises ValueError.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None or (found["mode"] == "system" and found["start"]):
        raise ValueError(
            f"must be system, frozen or rate=N; the last two also with a time, such as "
            f"frozen@2026-01-01T00:00:00Z, not {text!r}"
        )
    rate = 1.0 if found["mode"] == "system" else 0.0
    if found["rate"] is not None:
        rate = _rate(found["rate"])
    return ClockStart(rate, None if found["start"] is None else _time(found["start"]))


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0
    if not RATE_MIN <= rate <= RATE_MAX:
        raise ValueError(f"a rate is a number between {RATE_MIN:g} and {RATE_MAX:g}, not {text!r}")
    return rate


def _time(text: str) -> int:
    """Returns a time in milliseconds since 1970, from that number or from ISO 8601 (UTC unless it says otherwise)."""
    if text.isascii() and text.isdecimal() and len(text) <= 15:
        return int(text)
    from datetime import UTC, datetime  # a broker with the machine's time needs none of it

    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.year < 1970:
        raise ValueError(f"a time is ISO 8601, such as 2026-01-01T00:00:00Z, or milliseconds since 1970, not {text!r}")
    aware = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)
