"""Mutated requests of every API against a broker: it answers, or ends the connection; it lives, and forgets nothing.

python -m tests.support.fuzz [count=100000] [seed=N] [release=0.10.2]

With `release`, only a broker that emulates it (`earlier`: each of some in turn) gets requests: `count` mutated ones of
all APIs, and as many whole ones with messages that lie.
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
from .fuzz_security import Target, kerberos
from .fuzz_security import run as run_security
from .generate import Generator
from .oauth import first, unsecured
from .scram import ScramClient
from .secured import MECHANISMS, SETTINGS
from .tls import make_certificates
from .wire import Closed, Wire, request_frame

MEMORY_GROWTH_MAX = 150 << 20
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
    served = _served(broker)
    known = list(served.values())
    process = psutil.Process(broker.pid)
    topic = f"fuzz-kept-{seed}"
    with Wire(broker.bootstrap_servers) as wire:
        for name in (topic, f"{topic}-old"):
            fuzz_earlier.make_topic(wire, served, name)
        fuzz_earlier.produce_to(wire, served, topic, b"acknowledged")
    before = process.memory_info().rss
    has_oldest = broker.settings.get(fuzz_earlier.OLDEST_FETCH) == "true"
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
            if has_oldest and chance.random() < 0.1:
                frame = fuzz_earlier.oldest(f"{topic}-old", chance)
            else:
                frame = request_frame(api.name, version, message)
            wire.send(mutated(frame, chance))
            wire.socket.settimeout(0.3)
            wire.read_frame()
        except (Closed, ConnectionError, TimeoutError):
            wire.close()
            wire = Wire(broker.bootstrap_servers, timeout=60)
    wire.close()
    _check_well(broker, seed)
    with Wire(broker.bootstrap_servers) as good:
        kept = fuzz_earlier.reads(good, served, topic)
    assert kept == [(0, None, b"acknowledged")], f"seed {seed}: {kept}"
    growth = process.memory_info().rss - before
    assert growth < MEMORY_GROWTH_MAX, f"seed {seed}: {growth >> 20} MiB more"
    return count


def run_sets(broker: Broker, count: int, seed: int) -> int:
    """Sends `count` whole requests with messages that lie to a broker of an earlier release, and starts it again."""
    served = _served(broker)
    with Wire(broker.bootstrap_servers) as wire:
        fuzz_earlier.make_topic(wire, served, f"fuzz-sets-{seed}")
    before = psutil.Process(broker.pid).memory_info().rss
    found = fuzz_earlier.run_sets(broker, served, count, seed)
    growth = psutil.Process(broker.pid).memory_info().rss - before
    assert growth < MEMORY_GROWTH_MAX, f"seed {seed}: {growth >> 20} MiB more"
    _check_well(broker, seed)
    broker.stop()
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        again = fuzz_earlier.reads(wire, served, f"fuzz-sets-{seed}")
    assert again == found, f"seed {seed}: {len(again)} messages after a restart, {len(found)} before"
    _check_well(broker, seed)
    return count


def _check_well(broker: Broker, seed: int) -> None:
    assert broker.running, f"seed {seed}: the broker ended:\n{broker.log[-3000:]}"
    assert "Traceback" not in broker.log, f"seed {seed}:\n{broker.log[-3000:]}"


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
    words = dict(a.partition("=")[::2] for a in arguments)
    release = words.pop("release", None)
    if not words.keys() <= {"count", "seed"}:
        print("give count=N, seed=N or release=NAME")
        return 2
    options = {k: int(v) for k, v in words.items()}
    count, seed = options.get("count", 100_000), options.get("seed", random.randrange(10**9))
    if release is not None:
        names = fuzz_earlier.RELEASES if release == "earlier" else (release,)
        done = sum(run_earlier(name, count, seed) for name in names)
    else:
        done = run_all(count, seed)
    print(f"{done} requests, the broker is well")
    return 0


def run_earlier(release: str, count: int, seed: int) -> int:
    """Both kinds of requests to a broker that emulates a release."""
    settings = fuzz_earlier.settings_of(release)
    with Broker(settings, lab=False) as broker:
        done = run(broker, count, seed)  # it may be fenced then, or unregistered
    with Broker(settings, lab=False) as broker:
        return done + run_sets(broker, count, seed)


def run_all(count: int, seed: int) -> int:
    """Everything, at brokers of several kinds; earlier releases get less than the present one."""
    with Broker() as broker:
        done = run(broker, count, seed)
    done += sum(run_earlier(name, count // 20, seed) for name in fuzz_earlier.RELEASES)
    secured = {
        **SETTINGS,
        "sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
        "ottla.users": "alice:alice-secret",
        "connection.failed.authentication.delay.ms": 0,
    }
    with Broker(secured) as broker:
        done += run_sasl(broker, count // 50, seed)
    with (
        tempfile.TemporaryDirectory() as name,
        kerberos(Path(name)) as gssapi,
        Target(make_certificates(Path(name) / "certs"), gssapi) as target,
    ):
        return done + run_security(target, count // 10, seed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
