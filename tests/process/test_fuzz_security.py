"""Mutated handshakes of TLS and exchanges of SASL against a broker: a part of `make fuzz`, the same each time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ..support import fuzz_security
from ..support.fuzz_security import Target
from ..support.tls import make_certificates


@pytest.mark.slow
def test_mutated_handshakes_and_tokens_leave_the_broker_well(tmp_path: Path) -> None:
    with Target(make_certificates(tmp_path)) as target:
        assert fuzz_security.run(target, count=600, seed=int(os.environ.get("OTTLA_SEED", "1"))) > 600
