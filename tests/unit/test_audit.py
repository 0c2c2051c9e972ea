"""The pins of the dependencies: all are there, with hashes."""

from __future__ import annotations

from pathlib import Path

from ..support.audit import ROOT, faults


def test_everything_that_is_required_is_pinned_with_hashes() -> None:
    assert [one for one in faults() if "is installed" not in one] == []


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    text = (ROOT / "constraints.txt").read_text()
    start = text.index("\nh11==") + 1
    end = start + text[start:].index("\nhadolint")
    for name in ("pyproject.toml", "constraints-gssapi.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "constraints.txt").write_text(f"{text[:start]}{text[end + 1 :]}bare==1.0\n")
    assert sorted(faults(tmp_path)) == [
        "bare has no hash in constraints.txt",
        "h11 is required and not in constraints.txt; run `make constraints`",
    ]
