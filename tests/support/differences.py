"""What a failed comparison of large values says.

In CI pytest shows the whole difference of two values, for which it compares each line with each other one. Pages and
replies of thousands of lines take it hours, and the run ends without the name of the test that failed.
"""

from __future__ import annotations

from itertools import zip_longest
from pprint import pformat

LINES_MAX = 300
"""Up to so many lines pytest shows the difference itself."""
CONTEXT = 3


def first_difference(left: object, right: object) -> list[str]:
    """Returns where two values differ first, as lines; nothing where they are small, or their texts are equal."""
    ours, others = _lines(left), _lines(right)
    if max(len(ours), len(others)) <= LINES_MAX or ours == others:
        return []
    at = next(n for n, (one, other) in enumerate(zip_longest(ours, others)) if one != other)
    return [
        f"{len(ours)} lines == {len(others)} lines",
        f"The first difference is in line {at + 1}:",
        *(f"  {line}" for line in ours[max(0, at - CONTEXT) : at]),
        *(f"- {line}" for line in ours[at : at + CONTEXT]),
        *(f"+ {line}" for line in others[at : at + CONTEXT]),
    ]


def _lines(value: object) -> list[str]:
    return value.splitlines() if isinstance(value, str) else pformat(value).splitlines()
