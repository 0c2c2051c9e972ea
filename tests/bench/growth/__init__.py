"""Curves: what a unit costs when there are few, and when there are very many. `make bench ARGS=growth` measures all,
`ARGS="growth groups fan-out"` some.

A curve has points, each on a server of its own or one after another on the same, and for each point figures per unit.
A figure bends if it costs more than twice as much per unit at the last point as at the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from ...oracle import jars

BENDS: Final = 2.0
Point = tuple[int, Mapping[str, float]]
"""How many there are, and the figures."""


class Curve(NamedTuple):
    """`unit`: what is counted; `measure`: measures all points of a side, `ottla` or `kafka`."""

    unit: str
    measure: Callable[[str], Iterator[Point]]


def curves() -> dict[str, Curve]:
    from . import coordinators, data, metadata, traffic

    return {**metadata.CURVES, **coordinators.CURVES, **data.CURVES, **traffic.CURVES}


def main(names: list[str]) -> int:
    known = curves()
    sides = ["ottla"] if jars.missing() is not None else ["ottla", "kafka"]
    for name in names or known:
        for side in sides:
            print(f"\n{name}: {known[name].unit}, {side}", flush=True)
            _print(known[name].measure(side))
    return 0


def _print(points: Iterator[Point]) -> None:
    """Prints points as they come, and then which figures bend."""
    all_of_it: list[Point] = []
    for count, figures in points:
        if not all_of_it:
            print("".join([f"{'':>10}", *(f"  {name:>22}" for name in figures)]))
        print("".join([f"{count:>10,}", *(f"  {value:>22.4g}" for value in figures.values())]), flush=True)
        all_of_it.append((count, figures))
    first, last = all_of_it[0][1], all_of_it[-1][1]
    factors = {name: last[name] / first[name] for name in first if first[name] > 0}
    print("".join([f"{'end/start':>10}", *(f"  {factors.get(name, 0):>22.3g}" for name in first)]))
    bent = [name for name, factor in factors.items() if factor > BENDS]
    print(f"bends: {', '.join(bent)}" if bent else "does not bend")
