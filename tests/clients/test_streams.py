"""Kafka Streams with `group.protocol=streams` (KIP-1071)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ottla.testing import Broker

from ..oracle.kafka import program

pytestmark = [pytest.mark.slow, pytest.mark.oracle]


def test_a_word_count_goes_from_one_instance_to_two_and_back(tmp_path: Path) -> None:
    """With internal topics that the broker creates, and each word counted once."""
    command = program("streams", "StreamsGroup", tmp_path)
    with Broker() as broker:
        done = subprocess.run(
            [*command, broker.bootstrap_servers, "words", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
    print(done.stdout)
    assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-4000:]
    assert "group 4 2" in done.stdout
