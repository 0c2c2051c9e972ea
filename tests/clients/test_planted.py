"""The checks of a history of nodes find faults that are put into the broker on purpose (planted.py), with real clients;
of a broker without a fault they say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from . import planted

pytestmark = pytest.mark.slow
BESIDE_EACH_OTHER = 4  # they mostly wait


@pytest.fixture(scope="module")
def complaints() -> Iterator[dict[str, Future[list[str]]]]:
    with ThreadPoolExecutor(BESIDE_EACH_OTHER) as threads:
        yield {fault: threads.submit(planted.complaints, fault) for fault in planted.FAULTS}


@pytest.mark.parametrize("fault", planted.FAULTS)
def test_a_fault_of_the_broker_is_found(fault: str, complaints: dict[str, Future[list[str]]]) -> None:
    said = complaints[fault].result()
    assert planted.is_found(fault, said), said


def test_nothing_is_found_without_a_fault() -> None:
    assert not planted.complaints_without_a_fault()
