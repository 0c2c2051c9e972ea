"""What an adoption says: what it found, what it will do or has done, and what the user has to know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypedDict

from ..broker.config.checks import STANDARD_AUTHORIZER
from ..coordinator.metadata.state import TOPIC
from ..handover import EXIT_INCOMPLETE
from ..handover.metadata import dropped_configs
from ..handover.report import NAMED_MAX, section
from ..storage.checkpoints import uuid_to_text
from ..storage.layout import META_PROPERTIES, partition_directory
from .findings import releases
from .plan import Plan
from .swap import OLD_META
from .work import Adoption

NODE_ID_USUAL = 1
ONLY_IN_ZOOKEEPER = ("client_quotas", "scram_credentials", "access_control_entries", "delegation_tokens")


class DirectoryView(TypedDict):
    """A directory that was found. `passing`: files of deletions and compactions that were not over."""

    path: str
    broker_id: int
    was_clean: bool
    partitions: int
    bytes: int
    passing_files: int


class FoundView(TypedDict):
    """What there will be."""

    topics: int
    partitions: int
    bytes: int
    groups: int
    committed_offsets: int
    configurations: int
    client_quotas: int
    scram_credentials: int
    access_control_entries: int
    delegation_tokens: int


class TopicView(TypedDict):
    """A topic. `formats`: of messages, as far as they were seen."""

    name: str
    topic_id: str
    partitions: int
    formats: list[int]
    configurations: dict[str, str]


class ReportView(TypedDict):
    """The report as JSON. `lost`: what there will not be; `left_out`: what is not needed or not known; `changed`: what
    will be otherwise than it was; `notes`: what there is to know or to do.
    """

    cluster_id: str
    kafka: str
    topics_from: str
    made: bool
    target: str
    directories: list[DirectoryView]
    found: FoundView
    topics: list[TopicView]
    lost: list[str]
    left_out: list[str]
    changed: list[str]
    actions: list[str]
    notes: list[str]


class Report(NamedTuple):
    view: ReportView

    @property
    def exit_code(self) -> int:
        return EXIT_INCOMPLETE if self.view["lost"] else 0

    def lines(self) -> Iterator[str]:
        view = self.view
        yield f"cluster {view['cluster_id']}, files of Kafka {view['kafka']}"
        for one in view["directories"]:
            state = "stopped cleanly" if one["was_clean"] else "not stopped cleanly"
            yield f"  {one['path']}  broker {one['broker_id']}  {one['partitions']} partitions  {state}"
        yield f"ottla {'finds' if view['made'] else 'will find'} (topics and configurations from {view['topics_from']})"
        for name, count in view["found"].items():
            if count or name not in ONLY_IN_ZOOKEEPER:
                yield f"  {count:>12} {name.replace('_', ' ')}"
        for topic in view["topics"][:NAMED_MAX]:
            formats = ",".join(map(str, topic["formats"])) or "none"
            configs = "".join(f"  {key}={value}" for key, value in topic["configurations"].items())
            yield f"  {topic['name']}  partitions {topic['partitions']}  formats {formats}{configs}"
        if len(view["topics"]) > NAMED_MAX:
            yield f"  and {len(view['topics']) - NAMED_MAX} more topics"
        for title, words in (
            ("ottla does not find", view["lost"]),
            ("left out", view["left_out"]),
            ("otherwise than it was", view["changed"]),
            ("done" if view["made"] else "to do", view["actions"]),
            ("note", view["notes"]),
        ):
            yield from section(title, words)


def report(adoption: Adoption, topics_from: str) -> Report:
    """Returns the plan. `topics_from`: where topics and their configurations are known from."""
    plan, image = adoption.plan, adoption.plan.source.image
    target = adoption.order.target or adoption.plan.found[0].home.path
    return Report(
        {
            "cluster_id": plan.source.cluster_id,
            "kafka": releases(plan.found),
            "topics_from": topics_from,
            "made": False,
            "target": target,
            "directories": [
                {
                    "path": one.home.path,
                    "broker_id": one.broker_id,
                    "was_clean": one.is_clean,
                    "partitions": len(one.surveys),
                    "bytes": sum(one.home.partitions.values()),
                    "passing_files": sum(survey.passing for survey in one.surveys.values()),
                }
                for one in plan.found
            ],
            "found": {
                "topics": len(image.topics),
                "partitions": len(adoption.choice.homes),
                "bytes": adoption.bytes_copied,
                "groups": plan.groups,
                "committed_offsets": plan.offsets,
                "configurations": sum(map(len, image.configs.values())),
                "client_quotas": len(image.quotas),
                "scram_credentials": len(image.credentials),
                "access_control_entries": len(image.acls),
                "delegation_tokens": len(image.tokens),
            },
            "topics": list(_topics(adoption)),
            "lost": list(_lost(adoption)),
            "left_out": list(_left_out(adoption)),
            "changed": [*plan.dropped, *_of_others(adoption), *plan.guessed, *plan.kept, *plan.raised],
            "actions": list(_actions(adoption)),
            "notes": list(_notes(adoption, topics_from, target)),
        }
    )


def _topics(adoption: Adoption) -> Iterator[TopicView]:
    image = adoption.plan.source.image
    for topic in image.topics.values():
        seen = [s for one in adoption.plan.found for (name, _), s in one.surveys.items() if name == topic.name]
        yield {
            "name": topic.name,
            "topic_id": uuid_to_text(topic.id),
            "partitions": image.partition_counts[topic.id],
            "formats": sorted(set[int]().union(*(one.formats for one in seen))),
            "configurations": image.config_of(TOPIC, topic.name),
        }


def _lost(adoption: Adoption) -> Iterator[str]:
    plan, names = adoption.plan, adoption.plan.source.image.topic_names
    for one in adoption.choice.missing:
        yield f"{partition_directory(names[one.topic_id], one.index)}: no directory has it; it is offline"
    for path in plan.emptied:
        yield f"{path}: no directory has it; it is made empty, and what was in it begins again"
    for one in adoption.choice.doubtful:
        name, isr = partition_directory(names[one.topic_id], one.index), ", ".join(map(str, one.isr))
        yield f"{name}: what only the replicas in sync have, which were on brokers {isr or 'that are not known'}"
    for found in plan.found:
        for (topic, index), survey in found.surveys.items():
            if survey.cut:
                name = partition_directory(topic, index)
                yield f"{name}: {survey.cut} bytes from offset {survey.end} on, which are damaged"
    yield from plan.refused
    if plan.unread:
        yield f"{plan.unread} batches of committed offsets that cannot be read"


def _left_out(adoption: Adoption) -> Iterator[str]:
    plan = adoption.plan
    for one in plan.found:
        yield from (f"{one.home.path}/{name}" for name in one.home.others)
    becomes = "it is not copied" if adoption.order.target is not None else "it becomes a stray directory"
    yield from (f"{words}; {becomes}" for words in plan.strays)
    if plan.unplaced:
        yield f"{plan.unplaced} committed offsets in ZooKeeper of partitions that there are not"


def _of_others(adoption: Adoption) -> Iterator[str]:
    """Yields the configurations of brokers that there are no more."""
    for one in dropped_configs(adoption.plan.source, adoption.layout.by_id, for_kafka=False):
        yield f"broker {one.name}: {one.key}: {one.why}"


def _actions(adoption: Adoption) -> Iterator[str]:
    plan, target = adoption.plan, adoption.order.target
    renewed = [index for index, read in sorted(plan.renewed.items()) if read.names]
    if target is not None:
        how = "copy or link" if adoption.order.links else "copy"
        yield f"{how} {adoption.bytes_copied} bytes to {target}; nothing else changes"
    else:
        yield f"write {META_PROPERTIES} (the old one is kept as {OLD_META}) and the metadata log"
        if renewed:
            which = ", ".join(map(str, renewed))
            yield f"replace partitions {which} of __consumer_offsets by copies; the old ones become stray directories"
    if renewed:
        taken = sum(len(read.imported) for read in plan.renewed.values())
        again = sum(len(read.commits) for read in plan.renewed.values()) - taken
        if again:
            yield f"write {again} committed offsets again, so that their retention begins now"
        if taken:
            yield f"write {taken} committed offsets that ZooKeeper has"


def _notes(adoption: Adoption, topics_from: str, target: str) -> Iterator[str]:
    plan = adoption.plan
    (node,) = adoption.layout.nodes
    if not all(one.has_meta for one in plan.found):
        yield f"no file says which broker it was: it is taken for broker {node.id}"
    if not plan.is_known:
        yield (
            "configurations of topics are not in the directories: name --zookeeper or --configs; those that are not "
            "known are Kafka's defaults"
        )
        yield (
            "whether other brokers had more partitions, or more of these, cannot be known: a replica that was behind "
            "looks like one that was not"
        )
    yield from _notes_on_entities(plan)
    for one in plan.found:
        yield from (f"{words}; its offsets are taken from the logs" for words in one.damaged)
    if not plan.source.is_clean:
        yield "after a crash logs are checked from their recovery points on, and cut off where they are damaged"
    if adoption.order.links:
        yield "links share their bytes: Kafka must not be started on the old directories again"
    if adoption.order.target is None:
        yield "no older Kafka starts on the directories afterwards"
    own = "" if node.id == NODE_ID_USUAL else f" node.id={node.id}"
    paths = target if adoption.order.target is not None else ",".join(one.home.path for one in plan.found)
    yield f"start it with: ottla serve log.dirs={paths}{own}"


def _notes_on_entities(plan: Plan) -> Iterator[str]:
    """Yields what makes rights, credentials and tokens count."""
    image = plan.source.image
    if image.acls:
        yield f"rights count with authorizer.class.name={STANDARD_AUTHORIZER}"
    if image.credentials:
        yield "credentials count at listeners with sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512"
    if image.tokens:
        yield "tokens are valid with delegation.token.secret.key as it was (delegation.token.master.key before 2.8)"
