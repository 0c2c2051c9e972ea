"""What a handover says: what it takes over, what is left behind, and what the user has to know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypedDict

from ..broker.replica.directories import OWN_FILE
from ..broker.replica.replica_ends import FILE as REPLICA_ENDS
from ..broker.zookeeper.agreed import FILE as AGREED_WITH_ZOOKEEPER
from ..coordinator.metadata.state import Partition
from ..protocol.features import METADATA_VERSION, defaults
from ..storage.layout import FLUSHED_OFFSET, partition_directory
from . import EXIT_INCOMPLETE
from .layout import Layout, NewNode
from .metadata import dropped_configs
from .properties import PROTOCOLS, address, left_out, taken_over
from .replicas import Choice
from .source import Source

ANONYMOUS = "User:ANONYMOUS"
NAMED_MAX = 20  # of partitions and the like in lines of text


class NodeView(TypedDict):
    """A node of the target."""

    node: int
    directory: str
    listeners: list[str]
    controller: str
    replicas: int


class FoundView(TypedDict):
    """What the target has."""

    topics: int
    partitions: int
    replicas: int
    bytes: int
    configurations: int
    acls: int
    scram_credentials: int
    client_quotas: int
    delegation_tokens: int


class ReportView(TypedDict):
    """The report as JSON. `lost`: what the target does not have; `left_out`: what it does not need; `notes`: what there
    is to do.
    """

    cluster_id: str
    was_clean: bool
    made: bool
    placement: str
    nodes: list[NodeView]
    found: FoundView
    lost: list[str]
    left_out: list[str]
    notes: list[str]


class Report(NamedTuple):
    """`view` as JSON; the command's exit code follows from what is lost."""

    view: ReportView

    @property
    def exit_code(self) -> int:
        return EXIT_INCOMPLETE if self.view["lost"] else 0

    def lines(self, receiver: str) -> Iterator[str]:
        """Yields the report as text. `receiver`: Kafka or ottla."""
        view = self.view
        yield f"cluster {view['cluster_id']}, {'stopped cleanly' if view['was_clean'] else 'not stopped cleanly'}"
        yield f"{receiver} {'finds' if view['made'] else 'will find'}"
        for name, count in view["found"].items():
            yield f"  {count:>12} {name.replace('_', ' ')}"
        yield f"on {'a node' if len(view['nodes']) == 1 else 'nodes'} (replicas {view['placement']})"
        for node in view["nodes"]:
            yield f"  {node['node']}  {node['directory']}  {','.join(node['listeners'])}  {node['replicas']} replicas"
        for title, words in (
            (f"{receiver} does not find", view["lost"]),
            ("left out", view["left_out"]),
            ("note", view["notes"]),
        ):
            yield from section(title, words)


def section(title: str, words: Sequence[str]) -> Iterator[str]:
    """Yields lines under a title, as many as are read; none if there are none."""
    if words:
        yield title
        yield from (f"  {one}" for one in words[:NAMED_MAX])
        if len(words) > NAMED_MAX:
            yield f"  and {len(words) - NAMED_MAX} more"


def report(
    source: Source,
    layout: Layout,
    choice: Choice,
    given: Mapping[str, str] | None,
    bytes_copied: int,
    *,
    for_kafka: bool,
) -> Report:
    """Returns the plan."""
    image = source.image
    by_node = _replicas_by_node(layout)
    nodes: list[NodeView] = [
        {
            "node": one.id,
            "directory": one.path,
            "listeners": [f"{e.name}://{address(e)}" for e in one.endpoints],
            "controller": address(one.controller),
            "replicas": by_node.get(one.id, 0),
        }
        for one in layout.nodes
    ]
    gone = dropped_configs(source, layout.by_id, for_kafka=for_kafka)
    found: FoundView = {
        "topics": len(image.topics),
        "partitions": len(choice.homes),
        "replicas": sum(by_node.values()),
        "bytes": bytes_copied,
        "configurations": sum(map(len, image.configs.values())) - len(gone),
        "acls": len(image.acls),
        "scram_credentials": len(image.credentials),
        "client_quotas": len(image.quotas),
        "delegation_tokens": len(image.tokens),
    }
    view: ReportView = {
        "cluster_id": source.cluster_id,
        "was_clean": source.is_clean,
        "made": False,
        "placement": "as they were" if layout.is_kept else "placed again, as Kafka places those of new topics",
        "nodes": nodes,
        "found": found,
        "lost": [*_missing(source, choice.missing), *_doubtful(source, choice.doubtful)],
        "left_out": [
            *_left_out(source, given, for_kafka),
            *(f"configuration {one.key} of {one.name}: {one.why}" for one in gone),
        ],
        "notes": list(_notes(source, layout.nodes, given) if for_kafka else _notes_of_ottla(source)),
    }
    behind = sum(map(len, choice.ends.values())) if for_kafka and layout.is_kept else 0
    if behind:
        view["notes"].append(f"{behind} replicas are out of sync or behind, and stay where they were: they catch up")
    if not source.is_clean:
        view["notes"].append(
            "the shutdown was not clean: logs are checked from their recovery points on, and what is damaged at their "
            "ends is cut off"
        )
    return Report(view)


def _replicas_by_node(layout: Layout) -> dict[int, int]:
    counts: dict[int, int] = {}
    for replicas in layout.replicas.values():
        for one in replicas:
            counts[one] = counts.get(one, 0) + 1
    return counts


def _missing(source: Source, partitions: list[Partition]) -> Iterator[str]:
    names = source.image.topic_names
    for one in partitions:
        where = ", ".join(map(str, one.replicas))
        yield f"{partition_directory(names[one.topic_id], one.index)}: its replicas are on nodes {where}"


def _doubtful(source: Source, partitions: list[Partition]) -> Iterator[str]:
    for one in partitions:
        name = partition_directory(source.image.topic_names[one.topic_id], one.index)
        safe = ", ".join(map(str, one.isr or one.elr))
        yield f"{name}: what only the replicas in sync have, which are on nodes {safe}"


def _left_out(source: Source, given: Mapping[str, str] | None, for_kafka: bool) -> Iterator[str]:
    if source.is_ottlas:
        own = f"{OWN_FILE}, {REPLICA_ENDS}, {AGREED_WITH_ZOOKEEPER} and {FLUSHED_OFFSET}"
        yield f"{own}, ottla's own files"
    for directory in source.directories:
        yield from (f"{directory.path}/{name}" for name in directory.others)
    if for_kafka and given is not None:
        yield from (f"{key}, which Kafka does not know" for key in left_out(given))


def _notes_of_ottla(source: Source) -> Iterator[str]:
    level, latest = source.image.features.get(METADATA_VERSION), defaults()[METADATA_VERSION]
    if level is None:
        yield f"metadata.version has no level, as before Kafka 3.3: the broker begins with {latest}, the latest"
    elif level < latest:
        yield f"metadata.version stays {level} of {latest}: `kafka-features.sh upgrade` brings what Kafka has had since"


def _notes(source: Source, nodes: Sequence[NewNode], given: Mapping[str, str] | None) -> Iterator[str]:
    image, kafkas = source.image, taken_over(given or {})
    protocols = {PROTOCOLS[e.security_protocol] for node in nodes for e in node.endpoints}
    if given is None:
        yield "ottla's configuration is not in its directory: name its file with -c, or add its keys"
    if protocols != {"PLAINTEXT"} and given is None:
        yield f"listeners with {', '.join(sorted(protocols - {'PLAINTEXT'}))} need the keys of ottla's configuration"
    if len(nodes) > 1 and "PLAINTEXT" not in protocols:
        yield "nodes log in at each other: add the keys of inter.broker.listener.name's mechanism"
    if image.acls and "authorizer.class.name" not in kafkas:
        yield "there are ACLs: set authorizer.class.name and super.users, or everyone may do everything"
    elif "authorizer.class.name" in kafkas and ANONYMOUS not in kafkas.get("super.users", "").split(";"):
        yield f"nodes talk to controllers without a login: no node starts without {ANONYMOUS} in super.users"
    if image.tokens and "delegation.token.secret.key" not in kafkas:
        yield "delegation tokens are valid with the same delegation.token.secret.key only"
    if len(nodes) > 1:
        yield "the leaders come to their preferred replicas within leader.imbalance.check.interval.seconds (300)"
