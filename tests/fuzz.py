"""Mutated requests of every API against a broker: it answers, or ends the connection; it lives, and forgets nothing.

python -m tests.fuzz [count=100000] [seed=N]
"""

from __future__ import annotations

import random
import sys

import psutil
from ottla.broker.registry import apis
from ottla.protocol import schema

from ottla.testing import Broker

from .ask import create, fetch, produce
from .generate import Generator
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
    known = list(apis().values())
    process = psutil.Process(broker.pid)
    topic = f"fuzz-kept-{seed}"
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, topic)
        produce(wire, topic, b"acknowledged")
    before = process.memory_info().rss
    wire = Wire(broker.bootstrap_servers, timeout=20)
    for _ in range(count):
        api = chance.choice(known)
        version = chance.randint(api.low, api.high)
        message = Generator(schema.load(api.request), version, chance).message()
        for name, value in (("max_wait_ms", 0), ("timeout_ms", 10), ("acks", 1)):
            if hasattr(message, name):
                setattr(message, name, value)
        try:
            wire.send(mutated(request_frame(api.name, version, message), chance))
            wire.socket.settimeout(0.3)
            wire.read_frame()
        except (Closed, ConnectionError, TimeoutError):
            wire.close()
            wire = Wire(broker.bootstrap_servers, timeout=20)
    wire.close()
    assert broker.running, f"seed {seed}: the broker ended:\n{broker.log[-3000:]}"
    assert "Traceback" not in broker.log, f"seed {seed}:\n{broker.log[-3000:]}"
    with Wire(broker.bootstrap_servers) as good:
        assert fetch(good, topic) == [b"acknowledged"], f"seed {seed}"
    growth = process.memory_info().rss - before
    assert growth < MEMORY_GROWTH_MAX, f"seed {seed}: {growth >> 20} MiB more"
    return count


def main(arguments: list[str]) -> int:
    options = {k: int(v) for k, _, v in (a.partition("=") for a in arguments)}
    with Broker() as broker:
        done = run(broker, options.get("count", 100_000), options.get("seed", random.randrange(10**9)))
    print(f"{done} requests, the broker is well")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
