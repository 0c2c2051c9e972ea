"""What a server would choose by chance: ids, salts and nonces, and the ports of listeners that may have any. With a
seed (`ottla serve --seed N`) all of it follows from that number.

Such a broker has no threads either, and everything that a request causes happens before the next one is read
(`BrokerSchedule`). So what it writes and answers depends on nothing but its input and the lab's clock. The order of
what comes over several connections at the same time is not part of that: who wants it waits for a reply before sending
over another connection.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

from ...storage.files import Files
from ..config.config import Config
from ..config.listener_values import Listener

PORTS_FROM, PORTS = 20_000, 10_000  # below those that systems give to clients
_PROGRESS = "__cluster_metadata-0/quorum-state"  # each start changes it


class Chances:
    """The system's randomness."""

    def __init__(self) -> None:
        self.random: Callable[[int], bytes] = os.urandom

    def new_id(self) -> bytes:
        """Returns a random uuid whose text does not begin with a dash, like Kafka's."""
        while True:
            value = bytearray(self.random(16))
            value[6] = value[6] & 0x0F | 0x40
            value[8] = value[8] & 0x3F | 0x80
            if value[0] >> 2 != 0x3E:
                return bytes(value)

    def port(self, listener: Listener, node: int) -> int:
        """Returns the port to bind for a node, 0 for any that is free. `node`: its number, from 0."""
        return listener.port


class Seeded(Chances):
    """Everything follows from the seed, and ids also from the starts before: a directory never gets the same id
    twice.
    """

    def __init__(self, config: Config, files: Files) -> None:
        super().__init__()
        self._seed: int = config["ottla.lab.seed"]
        path = f"{config.log_dirs[0]}/{_PROGRESS}"
        before = files.read(path) if files.exists(path) else b""
        self.random = random.Random(_sha256(b"%d:%s" % (self._seed, before))).randbytes

    def port(self, listener: Listener, node: int) -> int:
        """A port that may be any follows from the seed too, because the metadata contains it."""
        if listener.port:
            return listener.port
        digest = _sha256(f"{self._seed}:{listener.name}".encode())
        return PORTS_FROM + (int.from_bytes(digest[:4], "big") + node) % PORTS


def chances(config: Config, files: Files) -> Chances:
    """What a server with this configuration chooses by."""
    return Chances() if config["ottla.lab.seed"] is None else Seeded(config, files)


def _sha256(data: bytes) -> bytes:
    from hashlib import sha256  # a broker without a seed needs none of it

    return sha256(data).digest()
