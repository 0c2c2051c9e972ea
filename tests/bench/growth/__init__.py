"""Curves: what a unit costs when there are few, and when there are very many. `make bench ARGS=growth` measures all,
`ARGS="growth groups fan-out"` some.

A curve has points, each on a server of its own or one after another on the same, and for each point figures per unit.
A figure bends if it costs more than twice as much per unit at the last point as at the first, or as at the first point
of the curve that is large enough for the unit to matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from ...oracle import jars

BENDS: Final = 2.0
Point = tuple[int, Mapping[str, float]]
"""How many there are, and the figures."""


class Curve(NamedTuple):
    """`unit`: what is counted; `measure`: measures all points of a side, `ottla` or `kafka`. `per_unit`: the figures
    that are of a unit, all by default; `since`: the count from which on they are compared.
    """

    unit: str
    measure: Callable[[str], Iterator[Point]]
    per_unit: frozenset[str] | None = None
    since: int = 0


def curves() -> dict[str, Curve]:
    from . import compaction, coordinators, data, metadata, sparse, traffic

    found = [metadata.CURVES, coordinators.CURVES, data.CURVES, sparse.CURVES, compaction.CURVES, traffic.CURVES]
    return {name: curve for some in found for name, curve in some.items()}


def main(names: list[str]) -> int:
    known = curves()
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no curve {unknown[0]}; there are {', '.join(known)}")
        return 2
    sides = ["ottla"] if jars.missing() is not None else ["ottla", "kafka"]
    for name in names or known:
        for side in sides:
            print(f"\n{name}: {known[name].unit}, {side}", flush=True)
            _print(known[name], side)
    return 0


def _print(curve: Curve, side: str) -> None:
    """Prints points as they come, and then which figures bend."""
    all_of_it: list[Point] = []
    for count, figures in curve.measure(side):
        if not all_of_it:
            print("".join([f"{'':>10}", *(f"  {name:>22}" for name in figures)]))
        print("".join([f"{count:>10,}", *(f"  {value:>22.4g}" for value in figures.values())]), flush=True)
        all_of_it.append((count, figures))
    factors = growth_of(curve, all_of_it)
    print("".join([f"{'end/start':>10}", *(f"  {factors.get(name, 0):>22.3g}" for name in all_of_it[0][1])]))
    bent = [name for name, factor in factors.items() if factor > BENDS]
    print(f"bends: {', '.join(bent)}" if bent else "does not bend")


def growth_of(curve: Curve, points: list[Point]) -> dict[str, float]:
    """Returns how much more a unit costs at the end than where the comparison begins, for each figure of a unit."""
    first = next(figures for count, figures in points if count >= curve.since)
    last = points[-1][1]
    names = first if curve.per_unit is None else sorted(curve.per_unit)
    return {name: last[name] / first[name] for name in names if first[name] > 0}
