"""SIGKILL at random moments under load: what was acknowledged is there, once, in order, and nothing else is.

python -m tests.support.kill [moments] [seed]
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
from pathlib import Path

from ottla.testing import Broker

from .ask import create, fetch, produce
from .poll import until
from .wire import Closed, Wire


def run(directory: Path, moments: int, seed: int) -> None:
    """AssertionError with the seed when a record is lost, invented or doubled."""
    chance = random.Random(seed)
    broker = Broker(
        {"log.segment.bytes": 1048576, "log.index.interval.bytes": 200}, directory=directory, lab=False
    ).start()
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, "kill")
    sent = acknowledged = checked = 0
    for moment in range(moments):
        killer = threading.Timer(chance.uniform(0.005, 0.25), broker.kill)
        killer.start()
        try:
            with Wire(broker.bootstrap_servers, timeout=60) as wire:
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
        whole = moment % 20 == 19 or moment == moments - 1
        first = 0 if whole else max(0, checked - 50)
        found = list(range(first)) + _read(broker, first, f"seed {seed}, moment {moment}")
        assert found == list(range(len(found))), f"seed {seed}, moment {moment}: a record lost, invented or doubled"
        assert len(found) >= acknowledged, (
            f"seed {seed}, moment {moment}: {acknowledged} acknowledged, {len(found)} found"
        )
        checked = len(found)
        sent = acknowledged = len(found)
    broker.close()


def _read(broker: Broker, first: int, where: str) -> list[int]:
    """The numbers from an offset on, once the partition is open."""
    with Wire(broker.bootstrap_servers) as wire:

        def found() -> list[list[int]]:
            try:
                return [[int((v or b"").split(b"\0")[0]) for v in _from(wire, first)]]
            except AssertionError:
                return []
            except Closed:
                raise AssertionError(f"{where}: the broker hung up:\n{broker.log[-3000:]}") from None

        return until(found, f"{where}: the partition is open")[0]


def _from(wire: Wire, first: int) -> list[bytes | None]:
    """Values from an offset on; a batch that began before it is cut."""
    found = fetch(wire, "kill", first)
    skip = next((n for n, v in enumerate(found) if int((v or b"").split(b"\0")[0]) >= first), len(found))
    return found[skip:]


def main(arguments: list[str]) -> int:
    moments = int(arguments[0]) if arguments else 200
    seed = int(arguments[1]) if len(arguments) > 1 else random.randrange(10**9)
    with tempfile.TemporaryDirectory() as directory:
        run(Path(directory), moments, seed)
    print(
        f"killed at {moments} moments (seed {seed}): nothing acknowledged was lost, nothing invented, nothing doubled"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
