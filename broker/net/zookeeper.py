"""The start of a broker that is registered in a ZooKeeper."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...protocol.config_def import numbers_of
from .. import seed
from ..config.config import ConfigError
from ..later import drive
from .listener_changes import check_listeners

if TYPE_CHECKING:
    from ..broker import Broker
    from ..machine import Machine

TRANSACTIONS_SINCE = 0, 11


async def connect(broker: Broker, machine: Machine) -> None:
    """Connects to the ZooKeeper that the configuration names. Raises ConfigError or ZooKeeperError."""
    config = broker.config
    try:
        from ..zookeeper.login import client_of
        from ..zookeeper.neighbours import Neighbours, ask
        from ..zookeeper.zookeeper import ZooKeeper
    except ImportError as error:
        words = f"zookeeper.connect needs kazoo: pip install 'ottla[zookeeper]' ({error})"
        raise ConfigError(config.where["zookeeper.connect"], words) from None
    parts = broker.turn, config, broker.nodes, broker.metadata, broker.image
    files, thread = broker.log_directories.files, machine.own_thread("ottla-zookeeper")
    threads = machine.own_thread("ottla-neighbours")
    prepare = partial(make_coordinators_topics, broker)
    neighbours = Neighbours(broker.turn, broker.image, broker.nodes.by_id, threads, ask, prepare)
    broker.zookeeper = ZooKeeper(*parts, files, thread, client_of, partial(check_listeners, broker), neighbours)
    await seed.settled(drive(broker.zookeeper.connect()))


async def make_coordinators_topics(broker: Broker) -> None:
    """Makes the coordinators' topics if they do not exist. A broker of Kafka that is asked for a coordinator first
    would make them with itself as the leader. Raises ApiError.
    """
    await broker.groups.create_topic()
    if numbers_of(broker.config.emulates or "") >= TRANSACTIONS_SINCE:
        await broker.transactions.create_topic()


async def register(broker: Broker) -> None:
    """Registers the broker, after its start. Raises ZooKeeperError."""
    assert broker.zookeeper is not None
    await seed.settled(drive(broker.zookeeper.register(broker.cluster_id)))
