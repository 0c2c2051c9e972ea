"""Our broker for the stories that run against a Kafka with its defaults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.testing import Broker


@pytest.fixture(scope="session")
def ours() -> Iterator[Broker]:
    with Broker(lab=False) as broker:
        yield broker
