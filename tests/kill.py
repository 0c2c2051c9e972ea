"""SIGKILL at random moments under load: what was acknowledged is there, once, in order, and nothing else is.

python -m tests.kill [moments] [seed]
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from pathlib import Path

from ottla.testing import Broker

from .ask import create, fetch, produce
from .wire import Closed, Wire


def run(directory: Path, moments: int, seed: int) -> None:
    """AssertionError with the seed when a record is lost, invented or doubled."""
    chance = random.Random(seed)
    broker = Broker({"log.segment.bytes": 1048576, "log.index.interval.bytes": 200}, directory=directory, lab=False).start()
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, "kill")
    sent = acknowledged = 0
    for moment in range(moments):
        killer = threading.Timer(chance.uniform(0.005, 0.25), broker.kill)
        killer.start()
        try:
            with Wire(broker.bootstrap_servers, timeout=10) as wire:
                while True:
                    count = chance.randint(1, 20)
                    values = [b"%d" % n + bytes(chance.randrange(300)) for n in range(sent, sent + count)]
                    answer = produce(wire, "kill", *values, producer_id=9, producer_epoch=0, base_sequence=sent)
                    assert answer.error_code == 0, (seed, moment, answer)
                    sent += count
                    acknowledged = sent
        except (Closed, OSError):
            killer.join()
        broker.start()
        with Wire(broker.bootstrap_servers) as wire:
            until = time.monotonic() + 20
            while True:
                try:
                    found = [int((v or b"").split(b"\0")[0]) for v in fetch(wire, "kill")]
                    break
                except AssertionError:  # not open yet
                    assert time.monotonic() < until, (seed, moment)
                except Closed:
                    raise AssertionError(f"seed {seed}, moment {moment}: the broker hung up:\n{broker.log[-3000:]}") from None
        assert found == list(range(len(found))), f"seed {seed}, moment {moment}: a record lost, invented or doubled"
        assert len(found) >= acknowledged, f"seed {seed}, moment {moment}: {acknowledged} acknowledged, {len(found)} found"
        sent = acknowledged = len(found)
    broker.close()


def main(arguments: list[str]) -> int:
    moments = int(arguments[0]) if arguments else 200
    seed = int(arguments[1]) if len(arguments) > 1 else random.randrange(10**9)
    with tempfile.TemporaryDirectory() as directory:
        run(Path(directory), moments, seed)
    print(f"killed at {moments} moments (seed {seed}): nothing acknowledged was lost, nothing invented, nothing doubled")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
