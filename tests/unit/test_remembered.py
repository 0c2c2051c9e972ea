"""A cache that a client's long names do not fill."""

from __future__ import annotations

from ottla.coordinator.remembered import LENGTH_MAX, remembered


def test_short_names_are_remembered_and_long_ones_are_not() -> None:
    calls: list[tuple[str, ...]] = []

    @remembered(2)
    def joined(*names: str) -> str:
        calls.append(names)
        return "".join(names)

    assert [joined("a", "b") for _ in range(3)] == ["ab"] * 3
    long = "x" * LENGTH_MAX
    assert [joined(long) for _ in range(3)] == [long] * 3
    assert [joined(long, "y") for _ in range(2)] == [f"{long}y"] * 2
    assert calls == [("a", "b"), (long,), (long, "y"), (long, "y")]
