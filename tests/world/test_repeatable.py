"""Two runs of one seed are one run: equal replies, equal files to the byte, also in processes that hash strings
differently.

    python -m tests.world.test_repeatable SEED

prints the digests of a run. It uses all families of APIs, fetch sessions, high watermarks that come late by chance, and
segments that roll by chance.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..sim.faults import SETTINGS, History
from ..support.ask import batch, fetch_message, produce_message
from ..support.world import World


class Noted(History):
    """A history that keeps the replies."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.replies: list[str] = []

    def ask(self, name: str, version: int, message: Any) -> Any:
        reply = super().ask(name, version, message)
        self.replies.append(repr(reply))
        return reply

    def draw_lots(self) -> list[int]:
        """Fetch sessions, segments that roll at an age of their own, and members that the broker names."""
        sessions = []
        for _ in range(3):
            message = fetch_message("t", 0)
            message.session_id, message.session_epoch = 0, 0
            sessions.append(self.ask("Fetch", 12, message).session_id)
        for n in range(60):
            self.ask("Produce", 9, produce_message("t", batch(b"%d" % n, now=self.world.schedule.now_ms())))
            self.world.pass_ms(2_000)
        for _ in range(2):
            protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
            asked = m.JoinGroupRequest(
                group_id="j", session_timeout_ms=10_000, rebalance_timeout_ms=10_000, member_id="", protocols=[protocol]
            )
            self.ask("JoinGroup", 5, asked)
        return sessions


def outcome(seed: int) -> dict[str, Any]:
    """What a run leaves: its fetch sessions, a digest of its replies, and one of each of its files."""
    more = {"log_roll_ms": "20000", "log_roll_jitter_ms": "19000", "ottla_high_watermark": "*:lag=20ms±15ms"}
    world = World(None, seed, **{**SETTINGS, **more})
    history = Noted(world)
    history.run()
    sessions = history.draw_lots()
    world.broker.stop()
    files = {path: sha256(world.files.read(path)).hexdigest() for path in world.files.paths()}
    return {"sessions": sessions, "replies": sha256("\n".join(history.replies).encode()).hexdigest(), "files": files}


def in_a_process(seed: int, hash_seed: str) -> Any:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "tests.world.test_repeatable", str(seed)]
    return json.loads(
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120).stdout
    )


@pytest.mark.long
def test_two_runs_of_one_seed_leave_the_same_bytes_and_give_the_same_replies() -> None:
    first, second = in_a_process(7, "1"), in_a_process(7, "2")
    assert first == second
    assert sum(path.startswith("/data/t-0/") and path.endswith(".log") for path in first["files"]) > 3, (
        "segments have rolled"
    )
    assert len(set(first["sessions"])) == 3
    assert 0 not in first["sessions"]


def test_another_seed_is_another_run() -> None:
    first, second = outcome(7), outcome(8)
    assert first["sessions"] != second["sessions"]
    assert first["replies"] != second["replies"]


if __name__ == "__main__":
    json.dump(outcome(int(sys.argv[1])), sys.stdout)
