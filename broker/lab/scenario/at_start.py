"""Runs a scenario within the broker, when it starts (`ottla.lab.scenario`)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

from ...later import Later
from ..encode import JSON
from ..http import Request, Response
from ..server import LabServer
from ..wait_routes import wait
from .file import Scenario
from .runner import Answer, Ask, Pause, Report, StepReport, run

logger = logging.getLogger("ottla.lab.scenario")
BEGIN_MS_MAX = 10_000


class AtStart:
    """A scenario that runs beside the clients.

    `begun` completes at the first `wait`, at the first `until` that does not hold yet, at the end, or after
    BEGIN_MS_MAX: what came before holds for every client that waits until the broker announces itself. `ended` has the
    report.
    """

    def __init__(self, server: LabServer, scenario: Scenario) -> None:
        self.begun: Later[None] = Later()
        self.ended: Later[Report] = Later()
        self._server = server
        self._machine = server.server.machine
        self._run = run(scenario, self._machine.exact_uptime_ms, self._log)

    def start(self) -> None:
        self._machine.after(BEGIN_MS_MAX, lambda: self.begun.finish(None))
        self._next(None)

    def _log(self, step: StepReport) -> None:
        if step["problem"] is None:
            logger.info("scenario: step %d, %s: done", step["number"], step["step"])
        else:
            logger.error("scenario: step %d, %s: %s", step["number"], step["step"], step["problem"])

    def _next(self, answer: Answer | None) -> None:
        try:
            wanted = self._run.send(answer)
        except StopIteration as end:
            self._end(end.value)
        except Exception as error:
            logger.exception("the scenario failed")
            self.begun.finish(None)
            self.ended.fail(error)
        else:
            if isinstance(wanted, Pause):
                self.begun.finish(None)
                self._machine.after(wanted.ms, lambda: self._next(None))
            else:
                self._ask(wanted)

    def _end(self, report: Report) -> None:
        if report["passed"]:
            logger.info("scenario %s: all %d steps passed", report["name"], len(report["steps"]))
        else:
            logger.error("scenario %s failed; %d steps were not run", report["name"], report["not_run"])
        self.begun.finish(None)
        self.ended.finish(report)

    def _ask(self, ask: Ask) -> None:
        path, _, query = ask.target.partition("?")
        body = b"" if ask.body is None else json.dumps(ask.body).encode()
        answer = self._server.serve_request(Request(ask.method, path, body, "", {}, query))
        if path == wait.path:
            self.begun.finish(None)
        if isinstance(answer, Later):
            answer.when_done(lambda found: self._read(found.get()))
        else:
            self._read(answer)

    def _read(self, response: Response) -> None:
        pieces = iter((response.body,)) if isinstance(response.body, bytes) else response.body
        self._read_on(response, pieces, bytearray())

    def _read_on(self, response: Response, pieces: Iterator[bytes], data: bytearray) -> None:
        """Takes a piece per turn of the loop, as a client does."""
        try:
            piece = next(pieces, None)
        except Exception:
            logger.exception("a reply of the lab failed")
            self._next(Answer(500, {"error": "internal error; see the broker's log"}))
            return
        if piece is not None:
            data += piece
            self._machine.at_end_of_turn(lambda: self._read_on(response, pieces, data))
            return
        is_json = response.content_type == JSON
        self._next(Answer(response.status, json.loads(data) if is_json else data.decode()))
