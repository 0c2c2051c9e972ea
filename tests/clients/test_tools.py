"""Kafka's command-line tools print of three nodes what they print of three of Kafka (`oracle/tool_cases.py`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..oracle import tool_cases
from ..oracle.cluster_pair import Nodes
from ..oracle.tool_cases import Asked, Printed

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
CONTROLLER, RECORDED = tool_cases.recorded()
OURS: dict[str, object] = {
    "ottla.controller.node": CONTROLLER,  # where Kafka elected it
    "ottla.client.metrics": "never",  # Kafka has no plug-in that takes them
}


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[str, Printed]]]:
    with Nodes({**tool_cases.SETTINGS, **OURS}) as cluster:
        yield list(tool_cases.answers(Asked(cluster, tmp_path_factory.mktemp("tools"))))


@pytest.mark.parametrize("number", range(len(RECORDED)), ids=[words for words, _ in RECORDED])
def test_it_prints_what_it_prints_of_kafka(number: int, printed: list[tuple[str, Printed]]) -> None:
    assert printed[number] == RECORDED[number]
