"""Runs scenarios on a broker, through its HTTP API."""

from __future__ import annotations

import time
from collections.abc import Callable

from .broker.lab.scenario import runner
from .broker.lab.scenario.file import Scenario
from .broker.lab.scenario.runner import Answer, Ask, Pause, Report, StepReport
from .lab_client import Lab, LabRefused

REQUEST_S_MAX = 24 * 3600.0  # a step may wait for the broker's clock


def run(lab: Lab, scenario: Scenario, told: Callable[[StepReport], object] = lambda _: None) -> Report:
    """Runs a scenario. `told` is called after each step. Raises LabUnreachable."""
    patient, answer = lab.with_timeout(REQUEST_S_MAX), None
    steps = runner.run(scenario, lambda: time.monotonic() * 1000, told)
    while True:
        try:
            wanted = steps.send(answer)
        except StopIteration as end:
            report: Report = end.value
            return report
        if isinstance(wanted, Pause):
            time.sleep(wanted.ms / 1000)
            answer = None
        else:
            answer = _asked(patient, wanted)


def _asked(lab: Lab, ask: Ask) -> Answer:
    try:
        return Answer(200, lab.call(ask.method, ask.target, ask.body))
    except LabRefused as refused:
        return Answer(refused.status, {"error": str(refused)})
