"""Reads a ZooKeeper, by kazoo (`ottla[zookeeper]`); nothing is written there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..handover import EXIT_UNUSABLE, EXIT_USAGE, HandoverRefused
from .catalog import Catalog, CatalogInvalid, from_zookeeper

if TYPE_CHECKING:
    from kazoo.client import KazooClient

    from ..broker.config.config import Config

CONNECT_S = 10.0


def read_catalog(config: Config) -> Catalog:
    """Returns what a ZooKeeper knows of a cluster, whose chroot is in `zookeeper.connect` if there is one. Raises
    HandoverRefused, and ConfigError.
    """
    try:
        from kazoo.exceptions import KazooException, NoAuthError
        from kazoo.handlers.threading import KazooTimeoutError
    except ModuleNotFoundError:
        raise HandoverRefused("--zookeeper needs kazoo: pip install 'ottla[zookeeper]'", EXIT_USAGE) from None
    connect = config["zookeeper.connect"]
    try:
        with _session(config) as client:
            found = from_zookeeper(_Nodes(client))
    except NoAuthError:
        words = "what the brokers keep for themselves needs their login (-c, -o java.security.auth.login.config=FILE)"
        raise HandoverRefused(f"ZooKeeper at {connect}: {words}", EXIT_UNUSABLE) from None
    except (KazooException, KazooTimeoutError, OSError) as error:
        raise HandoverRefused(f"ZooKeeper at {connect}: {str(error) or type(error).__name__}", EXIT_UNUSABLE) from None
    except (CatalogInvalid, ValueError) as error:
        raise HandoverRefused(f"ZooKeeper at {connect}: {error}", EXIT_UNUSABLE) from None
    if not found.topics:
        raise HandoverRefused(f"ZooKeeper at {connect} knows no topic; is a chroot missing?", EXIT_UNUSABLE)
    return found


@contextmanager
def _session(config: Config) -> Iterator[KazooClient]:
    from ..broker.zookeeper.login import client_of

    client = client_of(config, reads_only=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a chroot that is not there shows in what is read
            client.start(timeout=CONNECT_S)
        yield client
    finally:
        client.stop()
        client.close()


class _Nodes:
    """The nodes as `catalog` reads them."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client

    def get(self, path: str) -> bytes | None:
        from kazoo.exceptions import NoNodeError

        try:
            data: bytes | None = self._client.get(path)[0]
        except NoNodeError:
            return None
        return data

    def children(self, path: str) -> list[str]:
        from kazoo.exceptions import NoNodeError

        try:
            found: list[str] = sorted(self._client.get_children(path))
        except NoNodeError:
            return []
        return found
