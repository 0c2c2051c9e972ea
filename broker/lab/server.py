"""The lab's HTTP port: metrics, health, and documented JSON under `/v1` to see and control the simulation.

The routes are in the modules that `routes.PARTS` names; `/v1/openapi.json` describes them.

Errors are {"error": text} with a status of 400 or above. Peers that are not loopback are refused unless
`ottla.lab.open=true`, which needs `ottla.lab.token`. With a token, all but /live, /ready and /oauth want it in
the header `Authorization: Bearer TOKEN`.

A web page of another site can neither read nor steer the lab: a request with another Origin, a Host that is a name of
the Internet (DNS rebinding), or any but a GET whose Content-Type is not application/json (a form for /oauth/token) is
refused. A GET changes nothing.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable

from ..addresses import PortTaken, start_serving
from ..later import Later
from . import routes
from .access import refusal, refused_content_type
from .encode import as_json
from .http import CONNECTIONS_MAX, HttpConnection, HttpServer, Request, Response
from .lab import Lab
from .served import Served

UNAUTHORIZED = 401
logger = logging.getLogger("ottla.lab.http")


class LabServer:
    """The HTTP side of a server."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.lab = Lab(server)
        self.port = 0
        self.scheme = "http"
        self._http: asyncio.Server | None = None
        self._connections = HttpServer(self.answer, server.machine)

    async def bind(self, around: Callable[[HttpConnection], asyncio.BaseProtocol] | None = None) -> None:
        """Binds the port; requests are answered after `serve`. `around`: puts TLS before a connection.
        Raises PortTaken.
        """
        host = "0.0.0.0" if self.server.config["ottla.lab.open"] else "127.0.0.1"
        loop = asyncio.get_running_loop()
        port = self.server.config["ottla.lab.port"]
        connect = self._connections.connect
        make = connect if around is None else lambda: around(connect())
        self.scheme = "http" if around is None else "https"
        try:
            self._http = await loop.create_server(make, host, port, backlog=CONNECTIONS_MAX, start_serving=False)
        except OSError as error:
            raise PortTaken(self._name, error) from None
        self.port = self._http.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def _name(self) -> str:
        return f"the lab's port {self.server.config['ottla.lab.port']} (ottla.lab.port, --lab)"

    async def serve(self) -> None:
        """Starts to answer. Imports what /metrics needs in a thread meanwhile,
        because that takes longer than a reply may. Raises PortTaken.
        """
        assert self._http is not None
        await start_serving(self._http, self._name)
        self.server.machine.run_in_thread(
            lambda: importlib.import_module(f"{__package__}.exposition"), lambda _, error: None
        )

    def stop(self) -> None:
        if self._http is not None:
            self._http.close()
            self._connections.close()

    def answer(self, request: Request) -> Response | Later[Response]:
        """Answers a request, after a delay if its credentials are wrong, as on the ports of Kafka."""
        answer = self._answered(request)
        if isinstance(answer, Later) or answer.status != UNAUTHORIZED:
            return answer
        late: Later[Response] = Later()
        delay_ms = self.server.config["connection.failed.authentication.delay.ms"]
        self.server.machine.after(delay_ms, lambda: late.finish(answer))
        return late

    def _answered(self, request: Request) -> Response | Later[Response]:
        """Answers who may ask."""
        config = self.server.config
        hosts = [one.host for one in config.advertised.values()]
        refused = refusal(request, config["ottla.lab.open"], hosts, config["ottla.lab.token"], self.scheme)
        if refused is not None:
            return as_json({"error": refused[1]}, refused[0])
        return self.serve_request(request, checks_content_type=True)

    def serve_request(self, request: Request, checks_content_type: bool = False) -> Response | Later[Response]:
        """Finds the route of a request, and converts its exceptions into error replies. A path or method that does not
        exist is refused before a Content-Type.
        """
        try:
            route, in_path = routes.find(request.method, request.path)
            wrong = refused_content_type(request) if checks_content_type else None
            if wrong is not None:
                raise routes.Refused(415, wrong)
            return self._in_words(request, route.answer(self.lab, in_path, request))
        except Exception as error:
            return _failed(request, error)

    def _in_words(self, request: Request, answer: Response | Later[Response]) -> Response | Later[Response]:
        """The answer, with an error reply for an exception that comes later."""
        if not isinstance(answer, Later):
            return answer
        worded: Later[Response] = Later()

        def done(found: Later[Response]) -> None:
            try:
                worded.finish(found.get())
            except Exception as error:
                worded.finish(_failed(request, error))

        worded.on_cancel = answer.cancel
        answer.when_done(done)
        return worded


def _failed(request: Request, error: Exception) -> Response:
    reply = routes.error_reply(error)
    if reply is not None:
        return reply
    logger.error("%s %s failed", request.method, request.path, exc_info=error)
    return as_json({"error": "internal error; see the broker's log"}, 500)
