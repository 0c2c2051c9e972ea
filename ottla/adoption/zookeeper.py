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

CONNECT_S = 10.0


def read_catalog(connect: str) -> Catalog:
    """Returns what a ZooKeeper knows of a cluster. `connect`: as in `zookeeper.connect`, with a chroot if there is one.
    Raises HandoverRefused.
    """
    try:
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError
    except ModuleNotFoundError:
        raise HandoverRefused("--zookeeper needs kazoo: pip install 'ottla[zookeeper]'", EXIT_USAGE) from None
    try:
        with _session(connect) as client:
            found = from_zookeeper(_Nodes(client))
    except (KazooException, KazooTimeoutError, OSError) as error:
        raise HandoverRefused(f"ZooKeeper at {connect}: {error or type(error).__name__}", EXIT_UNUSABLE) from None
    except (CatalogInvalid, ValueError) as error:
        raise HandoverRefused(f"ZooKeeper at {connect}: {error}", EXIT_UNUSABLE) from None
    if not found.topics:
        raise HandoverRefused(f"ZooKeeper at {connect} knows no topic; is a chroot missing?", EXIT_UNUSABLE)
    return found


@contextmanager
def _session(connect: str) -> Iterator[KazooClient]:
    from kazoo.client import KazooClient

    client = KazooClient(hosts=connect, timeout=CONNECT_S, read_only=True)
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
