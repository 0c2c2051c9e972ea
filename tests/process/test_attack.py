"""The quick attacks hold their bounds; `make attack` runs all of them and asserts the times too."""

from __future__ import annotations

import pytest

from ..attack import harness

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", sorted(name for name, one in harness.attacks().items() if one.quick))
def test_an_attack_is_borne(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTTLA_WARM")  # the broker is as its users have it
    harness.run(harness.attacks()[name], times=False)
