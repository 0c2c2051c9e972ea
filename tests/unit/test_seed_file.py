"""What is wrong in a seed file is named with its file, its line and its key."""

from __future__ import annotations

from pathlib import Path

import pytest
from ottla.broker import seed
from ottla.broker.config.config import SeedError


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("users:\n  - name: alice\n    password: secret\n  - {name: bob}\n", 4),
        ("topics:\n  - name: t\n\n    partitions: three\n", 4),
        (
            "topics:\n  - name: t\n    partitions: 2\n    records:\n      - value: b\n        partition: 5\n",
            6,
        ),
        ("topics:\n  - {partitions: 1}\n", 2),
        ("users: [{name: a, password: secret}, {name: a, password: secret}]", 1),
    ],
)
def test_what_is_wrong_in_a_seed_file_has_its_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "seed.yaml"
    path.write_text(text)
    with pytest.raises(SeedError, match=rf"seed\.yaml:{line}: not a valid seed file: "):
        seed.load(str(path))
