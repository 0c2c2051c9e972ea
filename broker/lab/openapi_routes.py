"""The document that describes the routes."""

from __future__ import annotations

from ..later import Later
from .encode import JSON, dumps
from .http import Request, Response
from .lab import Lab
from .openapi import document
from .routes import plain_route


class Document:
    """The OpenAPI document, which is made once, in a thread, because that takes longer than a reply may."""

    def __init__(self, lab: Lab) -> None:
        self._machine = lab.server.machine
        self._text: bytes | None = None

    def reply(self) -> Later[Response]:
        later: Later[Response] = Later()

        def done(text: bytes | None, error: BaseException | None) -> None:
            self._text = text
            later.settle(None if text is None else Response(200, JSON, text), error)

        if self._text is not None:
            done(self._text, None)
        else:
            self._machine.run_in_thread(lambda: dumps(document()) + b"\n", done)
        return later


@plain_route("GET /v1/openapi.json", reply=dict[str, object])
def openapi(lab: Lab, request: Request) -> Later[Response]:
    """Describes every route in OpenAPI 3.1."""
    return lab.part(Document).reply()
