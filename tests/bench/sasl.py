"""Log-ins per second with SCRAM, and the server's processor time of one. `make bench ARGS="sasl"`.

The client salts the password once; with 4096 iterations it would otherwise be the client that is measured.
"""

from __future__ import annotations

import atexit
import hashlib
import time
from pathlib import Path
from tempfile import mkdtemp

import psutil
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.poll import until
from ..support.scram import ScramClient
from ..support.secured import SETTINGS, SecuredKafka
from ..support.wire import Wire
from .servers import Figures
from .sides import dispose

SECONDS = 6.0
AT_ONCE = 32
SALT = b"a salt"
USER, PASSWORD = "carol", "pencil"
DIGESTS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}


def salted(digest: str) -> bytes:
    return hashlib.pbkdf2_hmac(digest, PASSWORD.encode(), SALT, 4096)


def _put(servers: str, mechanism: str) -> None:
    number, digest = DIGESTS[mechanism]
    r = m.AlterUserScramCredentialsRequest
    with Wire(servers) as wire:
        wire.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
        wire.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=b"\0admin\0admin-secret"))
        up = r.ScramCredentialUpsertion(
            name=USER, mechanism=number, iterations=4096, salt=SALT, salted_password=salted(digest)
        )
        assert wire.ask("AlterUserScramCredentials", 0, r(upsertions=[up])).results[0].error_code == 0
    until(lambda: _log_in(servers, mechanism, 1), "the credentials are known")


def _log_in(servers: str, mechanism: str, count: int) -> bool:
    """Logs in on `count` connections at once; whether the server let all in."""
    key = salted_keys[mechanism]
    wires = [Wire(servers) for _ in range(count)]
    clients = [ScramClient(mechanism, USER, PASSWORD, salted=key) for _ in wires]
    tokens = [client.first() for client in clients]
    for wire in wires:
        wire.say("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism=mechanism))
    for wire in wires:
        wire.reply("SaslHandshake", 1)
    is_in = True
    for is_last in (False, True):
        for wire, token in zip(wires, tokens, strict=True):
            wire.say("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=token))
        replies = [wire.reply("SaslAuthenticate", 2) for wire in wires]
        is_in = not any(reply.error_code for reply in replies)
        if is_last or not is_in:
            break
        tokens = [client.final(reply.auth_bytes) for client, reply in zip(clients, replies, strict=True)]
    for wire in wires:
        wire.close()
    return is_in


salted_keys = {mechanism: salted(digest) for mechanism, (_, digest) in DIGESTS.items()}


def sasl(side: str) -> Figures:
    directory = Path(mkdtemp(prefix=f"bench-{side}-"))
    if side == "ottla":
        server: Broker | SecuredKafka = Broker(SETTINGS, directory=directory, lab=False)
    else:
        server = SecuredKafka(SETTINGS, directory, quick=False)
    atexit.register(dispose, server)
    server.start()
    servers = server.sasl_servers if isinstance(server, SecuredKafka) else server.bootstrap_servers
    process, found = psutil.Process(server.pid), Figures()
    for mechanism in DIGESTS:
        _put(servers, mechanism)
        for warm in (True, False):
            count, began, used = 0, time.perf_counter(), sum(process.cpu_times()[:2])
            while time.perf_counter() - began < SECONDS:
                assert _log_in(servers, mechanism, AT_ONCE)
                count += AT_ONCE
            if not warm:
                found[f"log-ins with {mechanism}, /s"] = count / (time.perf_counter() - began)
                found[f"processor time of one ({mechanism}), us"] = (sum(process.cpu_times()[:2]) - used) / count * 1e6
    dispose(server)
    return found


SECTIONS = {"sasl": sasl}
