"""Mutated requests of every API against a broker: it answers, or ends the connection; it lives, and forgets nothing.

python -m tests.support.fuzz [count=100000] [seed=N]
"""

from __future__ import annotations

import contextlib
import random
import sys
import tempfile
from pathlib import Path

import psutil
from ottla.broker.apis import apis
from ottla.broker.emulation.apis import emulated
from ottla.broker.emulation.releases import releases
from ottla.broker.net.api import Api
from ottla.protocol import messages as m
from ottla.protocol import schema
from ottla.protocol.frames import framed

from ottla.testing import Broker

from . import fuzz_earlier
from .ask import create, fetch, produce
from .fuzz_security import Target, kerberos
from .fuzz_security import run as run_security
from .generate import Generator
from .oauth import first, unsecured
from .scram import ScramClient
from .secured import MECHANISMS, SETTINGS
from .tls import make_certificates
from .wire import Closed, Wire, request_frame

MEMORY_GROWTH_MAX = 150 << 20
ALL_VERSIONS: dict[str, object] = {"ottla.emulate": "3.9"}  # the last release that had all versions
INTERESTING = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)


def mutated(frame: bytes, chance: random.Random) -> bytes:
    body = bytearray(frame[4:])
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        if len(body) <= 8:
            break
        what, at = chance.random(), chance.randrange(8, len(body))
        if what < 0.5:
            body[at] = chance.choice((*INTERESTING, chance.randrange(256)))
        elif what < 0.7:
            del body[at : at + chance.randint(1, 8)]
        elif what < 0.9:
            body[at:at] = chance.randbytes(chance.randint(1, 8))
        else:
            body[at : at + 4] = b"\x7f\xff\xff\xff"
    return len(body).to_bytes(4, "big") + bytes(body)


def run(broker: Broker, count: int, seed: int) -> int:
    """Sends `count` requests; AssertionError with the seed when the broker takes harm."""
    chance = random.Random(seed)
    known = list(_served(broker).values())
    process = psutil.Process(broker.pid)
    topic = f"fuzz-kept-{seed}"
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, topic)
        create(wire, f"{topic}-old")
        produce(wire, topic, b"acknowledged")
    before = process.memory_info().rss
    wire = Wire(broker.bootstrap_servers, timeout=60)
    for _ in range(count):
        api = chance.choice(known)
        version = chance.randint(api.low, api.high)
        loaded = schema.load(api.request)
        if version not in loaded.valid:
            loaded = schema.load_removed(api.request) or loaded
        if version < fuzz_earlier.BATCHES_SINCE.get(api.key, 0) and chance.random() < 0.8:
            message = fuzz_earlier.request(api.key, f"{topic}-old", chance)
        else:
            message = Generator(loaded, version, chance).message()
        for name, value in (("max_wait_ms", 0), ("timeout_ms", 10), ("acks", 1)):
            if hasattr(message, name):
                setattr(message, name, value)
        try:
            wire.send(mutated(request_frame(api.name, version, message), chance))
            wire.socket.settimeout(0.3)
            wire.read_frame()
        except (Closed, ConnectionError, TimeoutError):
            wire.close()
            wire = Wire(broker.bootstrap_servers, timeout=60)
    wire.close()
    assert broker.running, f"seed {seed}: the broker ended:\n{broker.log[-3000:]}"
    assert "Traceback" not in broker.log, f"seed {seed}:\n{broker.log[-3000:]}"
    with Wire(broker.bootstrap_servers) as good:
        assert fetch(good, topic) == [b"acknowledged"], f"seed {seed}"
    growth = process.memory_info().rss - before
    assert growth < MEMORY_GROWTH_MAX, f"seed {seed}: {growth >> 20} MiB more"
    return count


def _served(broker: Broker) -> dict[int, Api]:
    """The APIs of a broker, which may emulate a release."""
    emulates = broker.settings.get("ottla.emulate")
    return apis() if emulates is None else emulated(releases()[str(emulates)], apis())


def run_sasl(broker: Broker, count: int, seed: int) -> int:
    """Authenticates `count` times with mutated frames at some step; who knows the password gets in after that."""
    chance = random.Random(seed)
    for _ in range(count):
        with Wire(broker.bootstrap_servers, timeout=60) as wire, contextlib.suppress(Closed, OSError):
            _exchange(wire, chance)
    assert broker.running, f"seed {seed}: the broker ended:\n{broker.log[-3000:]}"
    assert "Traceback" not in broker.log, f"seed {seed}:\n{broker.log[-3000:]}"
    with Wire(broker.bootstrap_servers) as good:
        good.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
        token = b"\0alice\0alice-secret"
        assert good.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=token)).error_code == 0
    return count


def _exchange(wire: Wire, chance: random.Random) -> None:
    """One exchange, of which any frame may be mutated. Raises Closed or OSError."""
    mechanism = chance.choice((*MECHANISMS, "OAUTHBEARER", "NOPE"))
    client = ScramClient(mechanism, "alice", "alice-secret")
    single = {"PLAIN": b"\0alice\0alice-secret", "OAUTHBEARER": first(unsecured())}
    version = chance.randint(0, 1)
    wire.send(mutated(request_frame("SaslHandshake", version, m.SaslHandshakeRequest(mechanism=mechanism)), chance))
    wire.socket.settimeout(0.3)
    wire.read_frame()
    token = single.get(mechanism) or client.first()
    for _ in range(3):
        if version == 0:
            frame = framed(token)
        else:
            request = m.SaslAuthenticateRequest(auth_bytes=token)
            frame = request_frame("SaslAuthenticate", chance.randint(0, 2), request)
        wire.send(mutated(frame, chance))
        reply = wire.read_frame()
        at = reply.find(b"r=")
        if at < 0:
            return
        token = client.final(reply[at : reply.index(b"i=", at) + 6])


def main(arguments: list[str]) -> int:
    options = {k: int(v) for k, _, v in (a.partition("=") for a in arguments)}
    with Broker() as broker:
        done = run(broker, options.get("count", 100_000), options.get("seed", random.randrange(10**9)))
    with Broker(ALL_VERSIONS) as broker:
        done += run(broker, options.get("count", 100_000) // 5, options.get("seed", random.randrange(10**9)))
    secured = {
        **SETTINGS,
        "sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
        "ottla.users": "alice:alice-secret",
        "connection.failed.authentication.delay.ms": 0,
    }
    with Broker(secured) as broker:
        done += run_sasl(broker, options.get("count", 100_000) // 50, options.get("seed", random.randrange(10**9)))
    with (
        tempfile.TemporaryDirectory() as name,
        kerberos(Path(name)) as gssapi,
        Target(make_certificates(Path(name) / "certs"), gssapi) as target,
    ):
        count = options.get("count", 100_000) // 10
        done += run_security(target, count, options.get("seed", random.randrange(10**9)))
    print(f"{done} requests, the broker is well")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
