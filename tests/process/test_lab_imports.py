"""What a broker imports of the lab: nothing without it, and the parts only when they are asked for."""

from __future__ import annotations

import re

import pytest

from ottla.testing import Broker

from ..support.ask import lab

pytestmark = pytest.mark.slow


def imported(broker: Broker) -> set[str]:
    """The modules of the lab that a broker has imported, which PYTHONPROFILEIMPORTTIME writes to stderr."""
    return set(re.findall(r"\| +ottla\.broker\.lab\.([\w.]+)$", broker.log, re.MULTILINE))


def test_a_broker_without_the_lab_imports_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with Broker(lab=False) as broker:
        assert "ottla.broker.net.server" in broker.log
        assert not [name for name in ("h11", "request_log", "audit_log", "broker.program") if name in broker.log]
        assert imported(broker) == set()


def test_parts_of_the_lab_are_imported_by_their_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with Broker() as broker:
        at_start = imported(broker)
        assert {"server", "routes", "http"} <= at_start
        assert not [one for one in at_start if one.endswith("routes") and one != "routes"]
        assert not {"openapi", "schemas", "faults", "scenario"} & at_start
        assert lab(broker, "/v1/state")["ready"]
        assert "faults" not in imported(broker)
