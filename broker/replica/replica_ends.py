"""Where the replicas are of partitions with several, over a restart of the process.

A partition has one log, and a replica that is behind is a position in it. Each log directory has a file of ottla's own
with these positions; Kafka ignores it. The file is written with the checkpoints, and when a node stops. After a clean
shutdown every replica is where the file says. After a crash, or when another broker has used the directory since, that
holds for replicas out of sync: one in sync has the whole log.

The file also names the nodes that were killed and have not come back: what they had not synced is lost. In Kafka their
directories have no mark of a clean shutdown (KIP-966).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ...storage.checkpoints import uuid_from_text, uuid_to_text
from .followers import Reach

FILE = "replica-ends.json"
FORMAT = 1
NO_EPOCH = -1  # the file was not written by a clean shutdown
Key = tuple[bytes, int]  # the id of a topic, and a partition
Ends = Mapping[Key, Mapping[int, Reach]]


@dataclass(slots=True)
class ReplicaEnds:
    """The replicas in a log directory that are not in sync, or have less than the log: their nodes by partition.
    `is_exact`: the file is that of the last shutdown; `stored`: what the file holds, empty if that is not known, None
    if there is no file; `crashed`: the nodes that were killed and have not come back.
    """

    by_key: dict[Key, dict[int, Reach]] = field(default_factory=dict)
    is_exact: bool = False
    stored: bytes | None = None
    crashed: set[int] = field(default_factory=set)

    def of(self, key: Key, isr: tuple[int, ...]) -> dict[int, Reach]:
        """Returns where the replicas of a partition are, by node. `isr`: those in sync."""
        found = self.by_key.get(key, {})
        return found if self.is_exact else {node: reach for node, reach in found.items() if node not in isr}

    def note(self, key: Key, ends: dict[int, Reach]) -> None:
        if ends:
            self.by_key[key] = ends
        else:
            self.by_key.pop(key, None)

    def content(self, ends: Ends, crashed: Collection[int], broker_epoch: int) -> bytes | None:
        """Returns what the file is to hold; None for no file, if the replicas always were where their logs end."""
        return encode(ends, broker_epoch, crashed) if ends or crashed or self.stored is not None else None


def encode(ends: Ends, broker_epoch: int, crashed: Collection[int] = ()) -> bytes:
    """Encodes the file. `broker_epoch`: that of the clean shutdown, or NO_EPOCH; `crashed`: as in `ReplicaEnds`."""
    rows = [
        [uuid_to_text(topic_id), partition, node, reach.end, reach.high_watermark]
        for (topic_id, partition), nodes in sorted(ends.items())
        for node, reach in sorted(nodes.items())
    ]
    content = {"format": FORMAT, "brokerEpoch": broker_epoch, "crashed": sorted(crashed), "replicas": rows}
    return json.dumps(content).encode()


def decode(data: bytes) -> tuple[dict[Key, dict[int, Reach]], int, set[int]]:
    """Returns the ends, the broker epoch of the shutdown, and the nodes that had crashed. Raises ValueError if the file
    is damaged.
    """
    found: dict[Key, dict[int, Reach]] = {}
    try:
        read = json.loads(data)
        if read["format"] != FORMAT:
            raise ValueError(f"format {read['format']}")
        for topic_id, *numbers in read["replicas"]:
            partition, node, end, high_watermark = map(int, numbers)
            if min(partition, node, end, high_watermark) < 0:
                raise ValueError(f"a negative number: {numbers}")
            found.setdefault((uuid_from_text(topic_id), partition), {})[node] = Reach(end, high_watermark)
        return found, int(read["brokerEpoch"]), set(map(int, read.get("crashed", ())))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"not the ends of replicas: {error}") from None
