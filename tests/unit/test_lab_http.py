"""The lab's HTTP connection on a transport of the test's own: one request a turn, no more than the peer reads, no
longer than it may take.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from ottla.broker.lab import http
from ottla.broker.lab.access import refusal, refused_content_type
from ottla.broker.lab.http import HttpConnection, HttpServer, Request, Response
from ottla.broker.later import Later

from ..support.machine import VirtualMachine

GET = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Transport:
    """What a connection did: bytes written, and whether it reads or is gone."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.reading = True
        self.gone = False

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == http.WRITE_BUFFER_BYTES

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return ("127.0.0.1", 5)

    def write(self, data: bytes) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.gone

    def close(self) -> None:
        self.gone = True

    abort = close


class Site:
    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.machine = VirtualMachine()
        self.body: Any = b"hello"
        self.server = HttpServer(self.answer, self.machine)

    def answer(self, request: Request) -> Response:
        self.asked.append(request)
        return Response(200, "text/plain", self.body)

    def connect(self) -> tuple[HttpConnection, Transport]:
        transport: Any = Transport()
        connection = self.server.connect()
        connection.connection_made(transport)
        return connection, transport


def test_pipelined_requests_are_answered_one_in_a_turn() -> None:
    site = Site()
    connection, transport = site.connect()
    turns: list[int] = []
    soon = site.machine.at_end_of_turn
    site.machine.at_end_of_turn = lambda call: (turns.append(len(site.asked)), soon(call))[1]  # type: ignore[method-assign, func-returns-value]
    connection.data_received(GET * 50)
    site.machine.advance(1)
    assert len(site.asked) == 50
    assert turns == list(range(51)), "each turn begins with one answer more"
    assert transport.written.count(b"HTTP/1.1 200") == 50


def test_a_peer_that_does_not_read_is_asked_for_nothing_more_and_then_given_up() -> None:
    site = Site()
    connection, transport = site.connect()
    connection.pause_writing()
    connection.data_received(GET * 50)
    site.machine.advance(http.REQUEST_MS - 1)
    assert (site.asked, transport.gone) == ([], False)
    connection.resume_writing()
    site.machine.advance(0)
    assert site.asked
    connection.pause_writing()
    site.machine.advance(http.REQUEST_MS + 1)
    assert transport.gone


def test_an_answer_in_pieces_waits_for_the_peer_between_them() -> None:
    site = Site()
    made: list[int] = []

    def pieces() -> Any:
        for number in range(5):
            made.append(number)
            if number == 2:
                connection.pause_writing()
            yield b"%d" % number

    site.body = pieces()
    connection, transport = site.connect()
    connection.data_received(GET)
    site.machine.advance(0)
    assert made == [0, 1, 2]
    connection.resume_writing()
    site.machine.advance(0)
    assert made == [0, 1, 2, 3, 4]
    assert transport.written.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(
    ("data", "within_ms"), [(b"GET /x HT", http.REQUEST_MS), (b"", http.IDLE_MS), (GET, http.IDLE_MS)]
)
def test_a_request_has_its_time_and_an_idle_connection_its_own(data: bytes, within_ms: int) -> None:
    site = Site()
    connection, transport = site.connect()
    if data:
        connection.data_received(data)
    site.machine.advance(within_ms - 1)
    if data == b"GET /x HT":
        connection.data_received(b"T")  # a byte now and then is no more time
    assert not transport.gone
    site.machine.advance(2)
    assert transport.gone


def test_connections_have_a_limit_and_leave_room_when_they_go() -> None:
    site = Site()
    connected = [site.connect() for _ in range(http.CONNECTIONS_MAX + 1)]
    assert [transport.gone for _, transport in connected] == [False] * http.CONNECTIONS_MAX + [True]
    connected[0][0].connection_lost(None)
    assert not site.connect()[1].gone


def test_a_body_that_is_too_large_is_refused_when_that_much_came() -> None:
    site = Site()
    connection, transport = site.connect()
    connection.data_received(
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (1 << 40) + b"x" * (http.BODY_BYTES_MAX + 1)
    )
    site.machine.advance(1)
    assert b" 413 " in transport.written
    words = "the body of the request has more than 65,536 bytes"
    assert json.loads(transport.written.partition(b"\r\n\r\n")[2]) == {"error": words}
    assert transport.gone
    assert site.asked == []


def test_an_exception_of_a_handler_ends_its_connection_alone(caplog: pytest.LogCaptureFixture) -> None:
    site = Site()
    site.body = iter([b"a", 5])
    connection, transport = site.connect()
    connection.data_received(GET)
    site.machine.advance(1)
    assert transport.gone
    assert "a connection of the lab failed" in caplog.text
    site.body = b"well"
    other, answered = site.connect()
    other.data_received(GET)
    site.machine.advance(1)
    assert answered.written.endswith(b"well")


def request(method: str = "GET", peer: str = "127.0.0.1", **headers: str) -> Request:
    return Request(
        method,
        "/v1/topics",
        b"",
        peer,
        {"host": "localhost:9644"} | {k.replace("_", "-"): v for k, v in headers.items()},
    )


@pytest.mark.parametrize(
    ("asked", "is_open", "status"),
    [
        (request(), False, None),
        (request(host="127.0.0.1:9644"), False, None),
        (request(host="[::1]:9644"), False, None),
        (request(host="evil.example"), False, 403),
        (request(host="evil.example:9644"), True, 403),
        (request(host="evil.example."), True, 403),
        (request(host=""), False, 403),
        (request(host="ottla:9644"), True, None),
        (request(host="Broker.Example.Org:9644"), True, None),
        (request(host="192.168.1.5:9644"), True, None),
        (request(peer="192.168.1.7"), False, 403),
        (request(peer="192.168.1.7"), True, None),
        (request(peer="nonsense"), False, 403),
        (request(origin="http://localhost:9644"), False, None),
        (request(origin="http://localhost:8080"), False, 403),
        (request(origin="https://evil.example"), False, 403),
        (request(origin="null"), False, 403),
        (request(sec_fetch_site="cross-site"), False, 403),
        (request(sec_fetch_site="cross-site", sec_fetch_mode="navigate"), False, None),
        (request(sec_fetch_site="same-origin"), False, None),
        (request("POST"), False, None),
    ],
    ids=lambda value: json.dumps(value.headers) if isinstance(value, Request) else str(value),
)
def test_who_may_ask_the_lab(asked: Request, is_open: bool, status: int | None) -> None:
    refused = refusal(asked, is_open, ["broker.example.org"])
    assert (refused[0] if refused else None) == status


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (request(), 401),
        (request(authorization="Bearer wrong"), 401),
        (request(authorization="Basic t0ken"), 401),
        (request(authorization="Bearer t0ken"), None),
        (request(authorization="bearer t0ken "), None),
        (request(authorization="Bearer t\u00f6ken"), 401),
        (request(peer="192.0.2.1"), 401),
        (request(peer="192.0.2.1", authorization="Bearer t0ken"), None),
        (request()._replace(path="/live"), None),
        (request()._replace(path="/ready"), None),
        (request("POST", content_type="application/json"), 401),
    ],
)
def test_who_may_ask_a_lab_with_a_token(asked: Request, status: int | None) -> None:
    refused = refusal(asked, True, [], "t0ken")
    assert (refused[0] if refused else None) == status


def test_an_answer_that_comes_later_has_its_time_and_keeps_the_order() -> None:
    site = Site()
    later: Later[Response] = Later()
    answers = iter([later])
    site.server.handler = lambda request: next(answers, None) or site.answer(request)
    connection, transport = site.connect()
    connection.data_received(GET * 2)
    site.machine.advance(http.REQUEST_MS * 10)
    assert (bytes(transport.written), transport.gone) == (b"", False), "the client has done its part"
    later.finish(Response(200, "text/plain", b"late"))
    site.machine.advance(1)
    assert transport.written.index(b"late") < transport.written.index(b"hello")
    site.machine.advance(http.IDLE_MS)
    assert transport.gone


def test_who_goes_away_no_longer_waits() -> None:
    site = Site()
    later: Later[Response] = Later()
    cancelled: list[bool] = []
    later.on_cancel = lambda: cancelled.append(True)
    site.server.handler = lambda request: later
    connection, transport = site.connect()
    connection.data_received(GET)
    site.machine.advance(1)
    connection.connection_lost(None)
    later.finish(Response(200, "text/plain", b"late"))
    assert (cancelled, bytes(transport.written)) == ([True], b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize(
    ("content_type", "is_taken"),
    [("", False), ("text/plain", False), ("application/json", True), ("application/JSON; charset=utf-8", True)],
)
def test_whatever_may_change_something_needs_a_content_type(method: str, content_type: str, is_taken: bool) -> None:
    words = None if is_taken else "the Content-Type of the request must be application/json"
    assert refused_content_type(request(method, content_type=content_type)) == words


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_whatever_may_change_something_is_checked_like_a_post(method: str) -> None:
    assert refusal(request(method), False, []) is None
    cross = refusal(request(method, origin="http://evil.example"), False, [])
    assert cross is not None
    assert cross[0] == 403


def test_what_a_client_sends_behind_a_request_that_waits_is_bounded() -> None:
    site = Site()
    later: Later[Response] = Later()
    answers = iter([later])
    site.server.handler = lambda request: next(answers, None) or site.answer(request)
    connection, transport = site.connect()
    connection.data_received(GET)
    site.machine.advance(1)
    assert transport.reading, "it sees a client that goes away"
    connection.data_received(GET * (http.BODY_BYTES_MAX // len(GET)))
    site.machine.advance(1)
    assert (bytes(transport.written), transport.gone) == (b"", False)
    connection.data_received(GET * 2)
    assert transport.gone


def test_nothing_more_is_read_while_a_late_answer_is_sent() -> None:
    """A client that does not read its answer, and sends on, would fill the memory until it is given up."""
    site = Site()
    later: Later[Response] = Later()
    site.server.handler = lambda request: later
    connection, transport = site.connect()
    connection.data_received(GET)
    site.machine.advance(1)
    read: list[bool] = []

    def pieces() -> Any:
        connection.pause_writing()
        read.append(transport.reading)
        yield b"late"

    later.finish(Response(200, "text/plain", pieces()))
    site.machine.advance(1)
    assert (read, transport.reading) == ([False], False)
    connection.resume_writing()
    site.machine.advance(1)
    assert transport.reading, "it has all of its answer"


def test_requests_that_wait_leave_room_for_others() -> None:
    site = Site()
    waiting = [Later[Response]() for _ in range(http.WAITING_MAX + 1)]
    answers = iter(waiting)
    site.server.handler = lambda request: next(answers, None) or site.answer(request)
    written = []
    for _ in range(http.WAITING_MAX + 2):
        connection, transport = site.connect()
        connection.data_received(GET)
        site.machine.advance(1)
        written.append(bytes(transport.written))
    assert written[: http.WAITING_MAX] == [b""] * http.WAITING_MAX
    assert b" 503 " in written[-2]
    assert waiting[-1].done, "it is cancelled"
    assert written[-1].endswith(b"hello")
    waiting[0].finish(Response(200, "text/plain", b"late"))
    assert site.server.waiting() == http.WAITING_MAX - 1
