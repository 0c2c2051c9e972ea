"""Dispatch of an emulated release: what it does with requests that it does not know, and the errors that it knows."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import partial

from ...protocol.message_set_send import FETCH, is_oldest_fetch
from ...protocol.structs import Struct
from .. import bugs
from ..broker import Broker
from ..clock import Cancellable
from ..later import Later, drive
from ..net import error_counts
from ..net.api import Api
from ..net.context import Context
from ..net.dispatch import Dispatcher
from ..net.watching import NotesRequests
from ..peer import Peer
from ..replies import Reply, Send
from ..unsupported_version import Listed
from . import between_brokers, oldest_fetch
from .error_codes import ErrorCodes
from .releases import Release, release_of

SHORTEST_BYTES = 8  # of a request
_KEY_AND_VERSION = struct.Struct(">hh")


class EmulatingDispatcher(Dispatcher):
    """Serves the APIs of the release that the broker's configuration names."""

    is_own = False

    def __init__(self, broker: Broker, apis: Mapping[int, Api], log: NotesRequests | None = None) -> None:
        super().__init__(broker, apis, log)
        self.release: Release = release_of(broker.config)
        self._takes_oldest = broker.config["ottla.emulate.oldest.fetch"] and self.release.is_before(0, 9)
        self._between_brokers = between_brokers.versions_of(self.release)
        self._error_codes = ErrorCodes(self.release)
        # 0.9 does not answer what it does not know, and keeps the connection; 0.8.2 and all since 0.10 close it
        self._is_silent = self.release.name == "0.9"

    def handle(self, peer: Peer, frame: memoryview, send: Send) -> Cancellable | None:
        if self._takes_oldest and is_oldest_fetch(frame):
            return self._serve_oldest(peer, frame, send)
        key, version = _KEY_AND_VERSION.unpack_from(frame) if len(frame) >= SHORTEST_BYTES else (-1, -1)
        if key in self._between_brokers:
            self.check_size(key, len(frame))
            send(between_brokers.refusal(self.broker, self.release, peer, frame), False)
            return None
        if self._is_silent:
            api = self.apis.get(key)
            if api is None or not api.low <= version <= api.high:
                send(None, False)
                return None
        return super().handle(peer, frame, send)

    def _serve_oldest(self, peer: Peer, frame: memoryview, send: Send) -> Cancellable | None:
        """Serves a fetch or a multi-fetch of before 0.8. Raises Refused."""
        self.check_size(FETCH, len(frame))
        wanted = oldest_fetch.wanted_of(frame)
        api = self.apis[FETCH]
        context = Context(self.broker, api, 0, 0, None, peer)
        kind = int.from_bytes(frame[:2], "big")
        outcome = drive(oldest_fetch.answered(context, self.call, kind, wanted))
        outcome.when_done(partial(_oldest_answered, send))
        return None if outcome.done else outcome

    def listed_if_unsupported(self, api: Api) -> list[Listed]:
        return [] if self.release.is_before(2, 4) else super().listed_if_unsupported(api)

    def told(self, context: Context, outcome: Struct) -> Struct:
        self._error_codes.replace_in(outcome, error_counts.plan_of(context.api.response))
        return outcome


def _oldest_answered(send: Send, finished: Later[bytes]) -> None:
    if finished.error is not None:
        bugs.report("a fetch of before 0.8", finished.error)
        return send(None, True)
    send(Reply(bytearray(finished.get()), []), False)
