"""`ottla offsets`: carries the offsets of a group of consumers from a ZooKeeper to a broker, and back.

Both sides are asked first, and a plan is made: an offset is carried over where it is larger than the one that is there,
as consumers with `dual.commit.enabled` take the larger one. A group that is active on either side is refused. Any
broker that keeps offsets will do, from Kafka 0.8.2 on.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import wraps
from typing import TYPE_CHECKING, Literal, TypeVar

import click

from .broker.config.config import Config, ConfigError
from .classic.balance.assignment import TopicPartition
from .classic.cluster import Cluster, addresses
from .classic.connection import Connection
from .classic.errors import BrokerUnreachable, check
from .classic.offset_manager import OffsetManager
from .command_logs import logged_from
from .lab_output import table
from .protocol import messages
from .protocol import zookeeper_paths as paths
from .protocol.text import printable
from .protocol.zookeeper_json import Malformed
from .protocol.zookeeper_values import (
    offset_of,
)
from .zookeeper_options import zookeeper_config, zookeeper_keys_option

if TYPE_CHECKING:
    from kazoo.client import KazooClient

Offsets = dict[TopicPartition, int]
Action = Literal["set", "keep", "no partition"]
F = TypeVar("F", bound=Callable[..., object])
ANSWER_SECONDS = 5.0
FILES_HELP = "A server.properties file, whose zookeeper.ssl.* says how ZooKeeper is reached."
TRIES, BACKOFF_SECONDS = 20, 0.25  # the coordinator may have to be made first
WITHOUT_MEMBERS = ("Empty", "Dead", "")
STATES_SINCE = 4  # the version of ListGroups, which also knows groups that are not classic ones


class Refused(click.ClickException):
    """The offsets are not carried over."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


@dataclass(frozen=True)
class Row:
    """A partition of the plan. `offset`: that of the source; `before`: that of the target; None if there is none."""

    topic: str
    partition: int
    offset: int
    before: int | None
    action: Action


def planned(source: Offsets, target: Offsets, existing: Collection[TopicPartition], overwrite: bool) -> list[Row]:
    """Returns what is to be done for each partition that the source has an offset of, in their order. `existing`: the
    partitions that the target can have offsets of.
    """
    rows = []
    for place, offset in sorted(source.items()):
        before = target.get(place)
        action: Action = "keep"
        if place not in existing:
            action = "no partition"
        elif before is None or offset > before or (overwrite and offset != before):
            action = "set"
        rows.append(Row(place.topic, place.partition, offset, before, action))
    return rows


class ZooKeeperSide:
    """The offsets of a group in ZooKeeper."""

    def __init__(self, client: KazooClient, group: str) -> None:
        self._client, self._group = client, group

    def _children(self, path: str) -> list[str]:
        return sorted(self._client.get_children(path)) if self._client.exists(path) else []

    def refuse_active(self) -> None:
        """Raises Refused."""
        found = self._children(paths.consumers_path(self._group))
        if found:
            raise Refused(f"group {self._group} is active: consumers {', '.join(found)} are registered in ZooKeeper")

    def fetch(self) -> Offsets:
        """Returns the offsets, without those below 0, which mean that there is none. Raises Refused for a node that has
        something else.
        """
        found = {}
        for topic in self._children(paths.group_offsets_path(self._group)):
            for name in self._children(paths.offsets_path(self._group, topic)):
                path = f"{paths.offsets_path(self._group, topic)}/{name}"
                try:
                    partition, offset = int(name), offset_of(self._client.get(path)[0])
                except (Malformed, ValueError) as error:
                    raise Refused(f"{path}: {error}") from None
                if offset >= 0:
                    found[TopicPartition(topic, partition)] = offset
        return found

    def commit(self, offsets: Offsets) -> None:
        for (topic, partition), offset in sorted(offsets.items()):
            path = paths.offset_path(self._group, topic, partition)
            self._client.ensure_path(path)
            self._client.set(path, b"%d" % offset)


class BrokerSide:
    """The offsets of a group at its coordinator."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self._cluster, self._group = cluster, group
        self._manager = OffsetManager(cluster, group, TRIES, BACKOFF_SECONDS)

    def refuse_active(self) -> None:
        """Raises Refused."""
        state = self._manager.ask(self._state, "tells the group's state")
        if state is None:
            raise self._refused("does not tell the state")
        if state not in WITHOUT_MEMBERS:
            raise Refused(f"group {self._group} is active: its state at the broker is {state}")

    def _refused(self, what: str) -> Refused:
        return Refused(f"the broker {what} of group {self._group}: {self._manager.failure}")

    def _state(self, connection: Connection) -> str:
        """Returns the state of the group; empty if the broker has no such group."""
        try:
            version = connection.version_of("ListGroups")
        except KeyError:
            try:
                return self._described(connection)
            except ConnectionError:  # 0.8.2, where consumers register in ZooKeeper alone, closes the connection
                return ""
        if version < STATES_SINCE:
            return self._described(connection)
        listed = connection.ask("ListGroups", version, messages.ListGroupsRequest())
        check(listed.error_code, "the groups")
        return next((str(one.group_state) for one in listed.groups if one.group_id == self._group), "")

    def _described(self, connection: Connection) -> str:
        (found,) = connection.ask("DescribeGroups", 0, messages.DescribeGroupsRequest(groups=[self._group])).groups
        check(found.error_code, f"group {self._group}")
        return str(found.group_state)

    def partitions(self) -> list[TopicPartition]:
        """Returns all that there are. Raises Refused."""
        try:
            return self._cluster.all_partitions()
        except BrokerUnreachable as error:
            raise Refused(f"no broker answers: {error}") from None

    def fetch(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Asks for each partition, which a broker of any release answers. Raises Refused."""
        found = self._manager.fetch(partitions)
        if found is None:
            raise self._refused("does not return the offsets")
        return found

    def commit(self, offsets: Offsets) -> None:
        """Raises Refused, also if the group has members meanwhile."""
        if not self._manager.commit(offsets):
            raise self._refused("does not take the offsets")


@contextmanager
def _sides(config: Config, servers: str, group: str) -> Iterator[tuple[ZooKeeperSide, BrokerSide]]:
    """Raises Refused: there is no ZooKeeper, or it fails."""
    try:
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError

        from .broker.zookeeper.login import client_of
    except ImportError:
        raise Refused("ZooKeeper needs kazoo: pip install 'ottla[zookeeper]'") from None
    if not paths.is_group(group):
        raise Refused(f"ZooKeeper cannot have a group of the name {group!r}")
    try:
        client, discovered = client_of(config), addresses(servers)
    except (ValueError, ConfigError) as error:
        raise click.UsageError(str(error)) from None
    cluster = Cluster(lambda: discovered, "ottla-offsets", ANSWER_SECONDS)
    with logged_from(logging.CRITICAL, "ottla.kafka.zookeeper.kazoo", "ottla.classic"):
        try:
            client.start(ANSWER_SECONDS)
            yield ZooKeeperSide(client, group), BrokerSide(cluster, group)
        except (KazooException, KazooTimeoutError) as error:
            raise Refused(f"ZooKeeper at {config['zookeeper.connect']}: {str(error) or repr(error)}") from None
        finally:
            client.stop()
            client.close()
            cluster.close()


def _carry(
    config: Config, servers: str, group: str, to_broker: bool, dry_run: bool, overwrite: bool
) -> tuple[list[Row], int]:
    """Returns the plan, which is done unless `dry_run`, and how many offsets it sets. Raises Refused."""
    with _sides(config, servers, group) as (there, here):
        there.refuse_active()
        here.refuse_active()
        old, partitions = there.fetch(), here.partitions()
        new = here.fetch(partitions)
        if to_broker:
            rows = planned(old, new, set(partitions), overwrite)
        else:
            rows = planned(new, old, new.keys(), overwrite)
        if not rows:
            raise Refused(f"group {group} has no offsets {'in ZooKeeper' if to_broker else 'at the broker'}")
        wanted = {TopicPartition(one.topic, one.partition): one.offset for one in rows if one.action == "set"}
        if wanted and not dry_run:
            (here if to_broker else there).commit(wanted)
    return rows, len(wanted)


# the commands


@click.group()
def offsets() -> None:
    """Carry the offsets of a group from a ZooKeeper to a broker, and back."""


def _command(name: str) -> Callable[[F], click.Command]:
    def decorated(function: F) -> click.Command:
        @wraps(function)
        def command(zookeeper: str, files: tuple[str, ...], zookeeper_keys: tuple[str, ...], **rest: object) -> object:
            try:
                config = zookeeper_config(zookeeper, files, zookeeper_keys)
            except ConfigError as error:
                raise click.UsageError(str(error)) from None
            return function(config, **rest)

        for option in (
            click.argument("group"),
            click.option("--json", "as_json", is_flag=True, help="Print JSON."),
            click.option("--overwrite", is_flag=True, help="Also where the offset that is there is larger."),
            click.option("--dry-run", is_flag=True, help="Show the plan, and write nothing."),
            click.option("-b", "--bootstrap-server", default="127.0.0.1:9092", show_default=True),
            zookeeper_keys_option,
            click.option("-c", "--config", "files", multiple=True, type=click.Path(), help=FILES_HELP),
            click.option("-z", "--zookeeper", default="127.0.0.1:2181", show_default=True, help="HOST:PORT[,…][/PATH]"),
        ):
            command = option(command)
        return offsets.command(name)(command)

    return decorated


@_command("import")
def import_(config: Config, bootstrap_server: str, dry_run: bool, overwrite: bool, as_json: bool, group: str) -> None:
    """Commit at the broker what GROUP has in ZooKeeper, where that is larger. The group must have no consumers.

    Exit codes: 0 done, 1 refused, with the reason, 2 wrong usage.
    """
    _show(*_carry(config, bootstrap_server, group, True, dry_run, overwrite), dry_run, as_json)


@_command("export")
def export(config: Config, bootstrap_server: str, dry_run: bool, overwrite: bool, as_json: bool, group: str) -> None:
    """Write to ZooKeeper what GROUP has committed at the broker, where that is larger. The group must have no
    consumers.

    Exit codes: 0 done, 1 refused, with the reason, 2 wrong usage.
    """
    _show(*_carry(config, bootstrap_server, group, False, dry_run, overwrite), dry_run, as_json)


def _show(rows: list[Row], count: int, dry_run: bool, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"executed": not dry_run, "offsets": [asdict(one) for one in rows]}))
        return
    for line in table(("topic", "partition", "before", "offset", "action"), [asdict(one) for one in rows]):
        click.echo(line)
    click.echo(f"{count} of {len(rows)} offsets {'would be set' if dry_run else 'set'}")
