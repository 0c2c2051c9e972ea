"""The lab's HTTP: web pages of other sites, requests without an end, answers that are not read, orders without
measure.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
import urllib.error
import urllib.request
from typing import Any

from ottla.broker.security.oauthbearer import SECURED_HANDLER
from ottla.protocol import messages as m

from ottla.lab_client import Lab

from ..support.ask import create, lab, produce
from ..support.poll import until
from .harness import Site, attack, refused
from .limits import reached

POST = b"POST /v1/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


def connect(site: Site) -> socket.socket:
    host, port = site.broker.lab_url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def status(site: Site, path: str, headers: dict[str, str], body: bytes | None = None) -> int:
    request = urllib.request.Request(f"{site.broker.lab_url}{path}", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def post(site: Site, verb: str, body: Any) -> int:
    found = lab(site.broker, f"/v1/{verb}", body)
    return found if isinstance(found, int) else 200


@attack(lab=True, quick=True)
def a_web_page_of_another_site(site: Site) -> None:
    """It neither reads nor steers the lab, by its own name, by one that it made point to loopback, or by a form."""
    create_held(site)
    json_type = {"Content-Type": "application/json"}
    hold = json.dumps({"topic": "held"}).encode()
    for headers in (
        {"Host": "evil.example:9644"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        assert status(site, "/v1/topics", headers) == 403, headers
        assert status(site, "/v1/release", {**headers, **json_type}, hold) == 403, headers
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        assert status(site, "/v1/release", {"Content-Type": kind}, hold) == 415, kind
    assert status(site, "/v1/release", {}) == 405, "a GET changes nothing"
    assert lab(site.broker, "/v1/topics/held")["partitions"][0]["policy"] == "held"


@attack(
    lab=True,
    quick=True,
    settings={
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": SECURED_HANDLER,
        "ottla.users": "alice:alice-secret",
        "connection.failed.authentication.delay.ms": 10,
    },
)
def guesses_of_the_secret_of_a_client(site: Site) -> None:
    """Some are answered, each after a delay; then none is looked at, the right one included."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    guess = "grant_type=client_credentials&client_id=alice&client_secret="
    began = time.monotonic()
    found = [status(site, "/oauth/token", form, f"{guess}{n}".encode()) for n in range(500)]
    assert found[:30] == [401] * 30
    assert found.count(429) >= 500 - 30 - (time.monotonic() - began), "two seconds make room for one"
    assert status(site, "/oauth/token", form, f"{guess}alice-secret".encode()) == 429
    assert reached(site, "wrong-secrets") >= found.count(429)


def create_held(site: Site, batches: int = 1) -> None:
    with site.wire() as wire:
        create(wire, "held")
        assert post(site, "hold", {"topic": "held"}) == 200
        for _ in range(batches):
            produce(wire, "held", b"x", acks=1)


@attack(lab=True, quick=True)
def a_step_of_a_billion_batches(site: Site) -> None:
    """It ends at the log's end, and a thousand batches are taken in steps."""
    create_held(site, 1000)
    found = lab(site.broker, "/v1/step", {"topic": "held", "batches": 10**9})["partitions"][0]
    assert found["high_watermark"] == found["log_end_offset"] == 1000


@attack(lab=True, quick=True)
def orders_that_make_no_sense(site: Site) -> None:
    """Each is refused in words."""
    create_held(site)
    bodies: list[Any] = [
        [],
        1,
        {"topic": []},
        {"topic": {}},
        {"topic": "held", "partition": {}},
        {"topic": "held", "partition": "0"},
    ]
    for body in bodies:
        for verb in ("hold", "release", "step", "policy", "reload"):
            assert post(site, verb, body) in (200, 400, 404), (verb, body)
    batches: list[Any] = ["x", float("inf"), float("nan"), [], None, {}, -(10**30), "9" * 5000]
    for one in batches:
        assert post(site, "step", {"topic": "held", "batches": one}) in (200, 400), one
    policies: list[Any] = [5, None, [], "lag=" + "9" * 400 + "ms", "bytes=" + "9" * 400, "lag=1ms±" + "9" * 5000 + "ms"]
    for one in policies:
        assert post(site, "policy", {"topic": "held", "policy": one}) in (200, 400), one
    with connect(site) as plain:
        deep = b"[" * 60_000
        plain.sendall(POST % (b"hold", len(deep)) + deep)
        assert b" 400 " in plain.recv(4096)
    with connect(site) as plain, refused():
        plain.sendall(POST % (b"hold", 1 << 30) + b"x" * (1 << 20))
        assert b" 413 " in plain.recv(4096)


@attack(lab=True, quick=True)
def pipelined_requests_whose_replies_are_not_read(site: Site) -> None:
    """A million requests on one connection: the lab answers what is read and keeps no more."""
    with connect(site) as plain:
        plain.settimeout(2)
        sent = 0
        with refused():
            for _ in range(1000):
                try:
                    plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)
                except TimeoutError:
                    break
                sent += 1000
        site.note(f"{sent:,} requests sent before it stopped taking them")


@attack(lab=True, quick=True)
def half_requests_on_a_thousand_connections(site: Site) -> None:
    """Beyond a limit they are closed at once; the lab answers others when those are gone."""
    half = []
    with refused():
        for _ in range(1000):
            plain = connect(site)
            half.append(plain)
            with refused():
                plain.sendall(b"GET /v1/state HTTP/1.1\r\nHost: loc")
    for plain in half:
        plain.close()
    assert any(status(site, "/live", {}) == 200 for _ in range(1))


@attack(lab=True, quick=True)
def bytes_that_are_not_http(site: Site) -> None:
    """Each ends its connection and nothing else."""
    for data in (
        b"\0" * 100_000,
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 100_000,
        b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
        b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /v1/hold HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
        b"GET /v1/share/%ff%fe/%00/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET /live HTTP/1.0\r\n\r\n",
    ):
        with connect(site) as plain, refused():
            plain.sendall(data)
            with contextlib.suppress(OSError):  # the lab may have closed the connection
                plain.shutdown(socket.SHUT_WR)
            while plain.recv(65536):
                pass
    assert status(site, "/live", {}) == 200


@attack(lab=True)
def lists_of_ten_thousand(site: Site) -> None:
    """Partitions and transactional ids: each list is made in pieces, whole or in pages."""
    with site.wire(120) as wire:
        for number in range(10):
            create(wire, f"wide-{number}", 1000)
        find = m.FindCoordinatorRequest(key_type=1, coordinator_keys=["t"])
        until(lambda: wire.ask("FindCoordinator", 4, find).coordinators[0].error_code == 0, "the coordinators load")
        for number in range(10_000):
            wanted = m.InitProducerIdRequest(transactional_id=f"t{number}", transaction_timeout_ms=60_000)
            until(lambda wanted=wanted: wire.ask("InitProducerId", 4, wanted).error_code == 0, "a producer id")  # type: ignore[misc]
    client = Lab(site.broker.lab_url)
    began = time.monotonic()
    for _ in range(5):
        found = client.get("topics")["topics"]
        assert sum(len(one["partitions"]) for one in found if one["topic"].startswith("wide")) == 10_000
        assert len(client.get("transactions/all")["transactions"]) == 10_000
        assert len(client.get("topics", limit=3)["topics"]) == 3
        assert len(client.get("topics/wide-5")["partitions"]) == 1000
        client.get("/metrics")
    site.note(f"{(time.monotonic() - began) / 5 * 1000:.0f} ms for all lists")


@attack(lab=True, quick=True)
def a_flood_behind_a_request_that_waits(site: Site) -> None:
    """The lab keeps little of what follows a request that it has not answered, and sees that a client goes away."""
    body = b'{"duration": "1h"}'
    for _ in range(3):
        waiting = [connect(site) for _ in range(32)]
        for plain in waiting:
            plain.sendall(POST % (b"wait", len(body)) + body)
        assert status(site, "/live", {}) == 200
        for plain in waiting:
            plain.settimeout(0.05)
            with contextlib.suppress(OSError):  # the lab ends such a connection
                plain.sendall(b"x" * (64 << 20))
        for plain in waiting:
            plain.close()
    assert status(site, "/live", {}) == 200
