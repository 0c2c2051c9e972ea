"""Brokers of earlier releases that are registered in a real ZooKeeper."""

from __future__ import annotations

from ottla.testing import Broker

from ..oracle.zookeeper import TICK_MS, ZooKeeperServer

SHORT_MS = 2 * TICK_MS  # a session that ends soon
LONG_MS = 20 * TICK_MS  # and one that a busy machine does not end


def registered(zookeeper: ZooKeeperServer, chroot: str, release: str, *, lab: bool = False, **more: object) -> Broker:
    settings: dict[str, object] = {
        "ottla.emulate": release,
        "node.id": 7,
        "zookeeper.connect": f"{zookeeper.address}{chroot}",
        "zookeeper.session.timeout.ms": LONG_MS,
        "offsets.topic.num.partitions": 1,
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    return Broker(settings, lab=lab)
