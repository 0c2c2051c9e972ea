"""Decides what an adoption makes of directories, and of what ZooKeeper knew.

The plan is a source as that of a takeover, whose metadata is made here: topic ids, partitions with their leader epochs,
configurations that Kafka 4.4 knows, and the next producer id. Without ZooKeeper's topics they are those that have
directories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from uuid import uuid4

from ..broker.config.listener_values import key_of_listener
from ..broker.zookeeper.passwords import opened_by_one
from ..coordinator.hashing import partition_for
from ..coordinator.metadata.state import BROKER, NO_LEADER, TOPIC, MetadataState, Partition
from ..handover import EXIT_UNUSABLE, HandoverRefused
from ..handover.metadata import what_is_wrong
from ..handover.source import Source
from ..protocol import messages
from ..protocol.config_def import keys
from ..protocol.features import defaults
from ..storage.layout import partition_directory
from ..storage.settings import LogSettings
from . import CONSUMER_OFFSETS, COORDINATORS_TOPICS, TRANSACTION_STATE
from .catalog import Catalog, KnownTopic, State
from .findings import NO_BROKER, Found
from .groups import PARTITIONS_USUAL, Committed, committed, partitions_that_fit
from .producers import largest_producer_id
from .survey import Survey

NODE_ID = 1  # where nothing says which broker it was
PRODUCER_IDS = 1000  # in a block
METADATA_END, METADATA_EPOCH = 1, 1  # of the log whose snapshot is made: it is not that of a new cluster
FOREVER = "-1"
ENCRYPTED = "it is encrypted with password.encoder.secret; name the broker's server.properties with -c, or set it again"
ANOTHER_SECRET = "it is encrypted with another password.encoder.secret; set it again"
COORDINATORS_CONFIGS = {
    CONSUMER_OFFSETS: {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"},
    TRANSACTION_STATE: {"cleanup.policy": "compact", "compression.type": "uncompressed", "segment.bytes": "104857600"},
}


@dataclass(slots=True)
class Plan:
    """`renewed`: what is committed, by the partition of `__consumer_offsets`, if its retention begins again; `kept`:
    topics that would lose segments at the start, and get another retention; `dropped`: configurations that are not
    carried over, with the reason, `guessed`: those that nothing says; `refused`: what else of ZooKeeper is not carried
    over; `raised`: committed offsets that ZooKeeper had larger; `unplaced`: those of partitions that there are not;
    `strays`: names of directories that no topic has; `emptied`: partitions of coordinators that no directory has;
    `is_known`: what ZooKeeper knew of topics was given.
    """

    source: Source
    found: list[Found]
    renewed: dict[int, Committed] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    guessed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    unplaced: int = 0
    strays: list[str] = field(default_factory=list)
    is_known: bool = False
    emptied: list[str] = field(default_factory=list)
    groups: int = 0
    offsets: int = 0
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Given:
    """What the user says. `lets_expire`: retention is left as it was; `secrets`: with one of them passwords that
    ZooKeeper has are encrypted.
    """

    catalog: Catalog | None = None
    lets_expire: bool = False
    new_cluster_id: str = ""
    secrets: tuple[str, ...] = ()


def planned(found: list[Found], given: Given, now_ms: int) -> Plan:
    """Raises HandoverRefused, OSError."""
    _name_brokers(found, given.catalog)
    cluster = next((one.cluster_id for one in found if one.cluster_id), "")
    known = given.catalog.cluster_id if given.catalog is not None else ""
    if cluster and known and cluster != known:
        raise HandoverRefused(f"the directories belong to cluster {cluster}, ZooKeeper to {known}", EXIT_UNUSABLE)
    for one in found:
        one.home.cluster_id = cluster or known or given.new_cluster_id
    image = MetadataState()
    image.features.update(defaults())
    plan = Plan(Source([one.home for one in found], image, METADATA_END, METADATA_EPOCH), found)
    if given.catalog is not None:
        plan.is_known = True
        plan.refused = given.catalog.refused
        for record in given.catalog.entities:
            image.apply(record)
    _read_groups(plan)
    topics = list(_topics(plan, given))
    if given.catalog is not None and given.catalog.committed:
        _take_offsets(plan, given.catalog, topics)
    for topic in topics:
        _add(plan, topic, given, now_ms)
    _configure_brokers(plan, given)
    image.scalars["next_producer_id"] = _next_producer_id(plan, given)
    plan.groups = len({name for read in plan.renewed.values() for name in read.names})
    plan.offsets = sum(len(read.commits) for read in plan.renewed.values())
    if given.lets_expire:
        plan.renewed = {index: read.imported_only() for index, read in plan.renewed.items()}
    return plan


def _name_brokers(found: list[Found], catalog: Catalog | None) -> None:
    """Sets the ids of brokers, also of those whose directories do not say them."""
    for one in found:
        if one.broker_id == NO_BROKER:
            one.broker_id = _guessed_broker(one, catalog)
        one.home.node_id = one.broker_id
        one.home.nodes = frozenset((one.broker_id,))


def _guessed_broker(one: Found, catalog: Catalog | None) -> int:
    """Returns the one broker that has all these partitions."""
    sets = []
    for topic, index in one.surveys:
        known = catalog.topics.get(topic) if catalog is not None else None
        if known is not None and index in known.partitions:
            sets.append(set(known.partitions[index].replicas))
    common = set.intersection(*sets) if sets else set()
    return common.pop() if len(common) == 1 else NODE_ID


def _read_groups(plan: Plan) -> None:
    """Reads what is committed, of each partition from the longest of its logs."""
    for index, (one, survey) in _longest(plan.found, CONSUMER_OFFSETS).items():
        read = committed(one.home.partition_path((CONSUMER_OFFSETS, index)), survey.end)
        plan.renewed[index] = read
        plan.unread += read.unread


def _take_offsets(plan: Plan, catalog: Catalog, topics: list[KnownTopic]) -> None:
    """Takes the offsets that ZooKeeper has of consumers; where both have one, the larger (`dual.commit.enabled`). A
    topic for them is made if there is none.
    """
    by_name = {topic.name: topic for topic in topics}
    if CONSUMER_OFFSETS not in by_name:
        node = plan.found[0].broker_id
        made = KnownTopic(CONSUMER_OFFSETS, is_new=True)
        made.partitions = {index: State((node,), (node,)) for index in range(PARTITIONS_USUAL)}
        by_name[CONSUMER_OFFSETS] = made
        topics.append(made)
    count = len(by_name[CONSUMER_OFFSETS].partitions)
    for (group, name, index), offset in catalog.committed.items():
        if name not in by_name or index not in by_name[name].partitions or offset < 0:
            plan.unplaced += 1
            continue
        read = plan.renewed.setdefault(partition_for(group, count), Committed())
        smaller = read.take((group, name, index), offset)
        if smaller is not None:
            plan.raised.append(f"{group}: offset {offset} of {name}-{index}, from ZooKeeper, instead of {smaller}")


def _longest(found: list[Found], topic: str) -> dict[int, tuple[Found, Survey]]:
    best: dict[int, tuple[Found, Survey]] = {}
    for one in found:
        for (name, index), survey in one.surveys.items():
            if name == topic and (index not in best or survey.end > best[index][1].end):
                best[index] = one, survey
    return best


# topics


def _topics(plan: Plan, given: Given) -> Iterator[KnownTopic]:
    """Yields topics with all their partitions: those that ZooKeeper knew, else those that have directories."""
    held: dict[str, dict[int, list[int]]] = {}
    for one in plan.found:
        for name, index in one.surveys:
            held.setdefault(name, {}).setdefault(index, []).append(one.broker_id)
    if given.catalog is not None:
        for name in sorted(held.keys() - given.catalog.topics.keys()):
            why = "is marked for deletion" if name in given.catalog.doomed else "is not known"
            plan.strays += [f"{partition_directory(name, index)}: its topic {why}" for index in sorted(held[name])]
        for name, topic in sorted(given.catalog.topics.items()):
            count = max([*topic.partitions, *held.get(name, ())], default=-1) + 1
            made = KnownTopic(name, topic.id, dict(topic.partitions), topic.configs)
            for index in range(count):
                brokers = tuple(held.get(name, {}).get(index, ()))
                made.partitions.setdefault(index, State(brokers, brokers))
            yield made
        return
    for name, brokers_of in sorted(held.items()):
        count = max(brokers_of) + 1
        if name == CONSUMER_OFFSETS:
            count = _offsets_partitions(plan, count)
        yield KnownTopic(
            name,
            partitions={n: State(tuple(brokers_of.get(n, ())), tuple(brokers_of.get(n, ()))) for n in range(count)},
        )


def _offsets_partitions(plan: Plan, least: int) -> int:
    """Returns how many partitions `__consumer_offsets` had: where groups are says it. Raises HandoverRefused."""
    pairs = [(index, group) for index, read in plan.renewed.items() for group in read.names]
    count = partitions_that_fit(pairs, least)
    if count is None:
        raise HandoverRefused(
            f"no number of partitions of {CONSUMER_OFFSETS} fits the groups in them; name --zookeeper or --configs",
            EXIT_UNUSABLE,
        )
    return count


def _add(plan: Plan, topic: KnownTopic, given: Given, now_ms: int) -> None:
    """Adds a topic to the metadata."""
    name, image = topic.name, plan.source.image
    surveys = {n: [s for one in plan.found if (s := one.surveys.get((name, n)))] for n in topic.partitions}
    said = {survey.topic_id for some in surveys.values() for survey in some if survey.topic_id}
    topic_id = topic.id or (said.pop() if len(said) == 1 else uuid4().bytes)
    image.apply(messages.TopicRecord(name=name, topic_id=topic_id))
    nodes = [one.broker_id for one in plan.found]
    elsewhere = max((max(one.replicas, default=0) for one in topic.partitions.values()), default=0)
    elsewhere = max(elsewhere, *nodes) + 1
    for index, state in sorted(topic.partitions.items()):
        path, replicas, isr = partition_directory(name, index), state.replicas, state.isr
        if not surveys[index] and name in COORDINATORS_TOPICS:
            plan.emptied += [] if topic.is_new else [path]
            replicas = isr = (nodes[0],)
        elif not surveys[index]:
            replicas = isr = tuple(one for one in replicas if one not in nodes) or (elsewhere,)
        elif not set(replicas) & set(nodes):  # ZooKeeper places it elsewhere: what is here is what there is
            replicas = (*replicas, *(one.broker_id for one in plan.found if (name, index) in one.surveys))
        epoch = max(state.epoch, 0, *(one.epoch for one in surveys[index]))
        image.partitions[topic_id, index] = Partition(
            topic_id, index, replicas, isr, state.leader if state.leader in isr else NO_LEADER, epoch, 0, ()
        )
    image.partition_counts[topic_id] = len(topic.partitions)
    configs = _configs(plan, topic, given.catalog is not None)
    if not given.lets_expire:
        _keep(plan, topic, configs, [s for some in surveys.values() for s in some], now_ms)
    if configs:
        image.configs[TOPIC, name] = configs


# configurations


def _configs(plan: Plan, topic: KnownTopic, is_known: bool) -> dict[str, str]:
    """Returns the configurations of a topic that Kafka 4.4 takes."""
    values = dict(topic.configs)
    cleaned = {name for one in plan.found for name, _ in one.home.cleaner_offsets}
    if not is_known and topic.name in cleaned:
        values["cleanup.policy"] = "compact"
        if topic.name not in COORDINATORS_TOPICS:
            plan.guessed.append(f"{topic.name}: cleanup.policy=compact, because the cleaner's checkpoint has it")
    values = {**COORDINATORS_CONFIGS.get(topic.name, {}), **values}
    return dict(_checked(plan, topic.name, values))


def _checked(plan: Plan, name: str, values: dict[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in sorted(values.items()):
        why = what_is_wrong(TOPIC, key, value)
        if why is None:
            yield key, value
        else:
            plan.dropped.append(f"{name}: {key}={value}: {why}")


def _keep(plan: Plan, topic: KnownTopic, configs: dict[str, str], surveys: list[Survey], now_ms: int) -> None:
    """Lets a topic keep the segments that retention would delete at the first start."""
    known = keys("topic")
    settings = LogSettings.of({key: known[key].parse(value) for key, value in configs.items()})
    if not settings.is_deleted or settings.retention_ms < 0:
        return
    due = [s for survey in surveys for s in survey.segments if s.size and s.newest_ms < now_ms - settings.retention_ms]
    if due:
        was = f"retention.ms={configs['retention.ms']}" if "retention.ms" in configs else "the default of 7 days"
        plan.kept.append(f"{topic.name}: retention.ms=-1 instead of {was}, which would delete {len(due)} segments")
        configs["retention.ms"] = FOREVER


def _configure_brokers(plan: Plan, given: Given) -> None:
    """Takes over the dynamic configurations of brokers."""
    if given.catalog is None:
        return
    for broker, values in given.catalog.brokers.items():
        taken = {}
        for key, kept in values.items():
            value, why = _opened(kept, given.secrets) if _is_password(key) else (kept, None)
            why = why or what_is_wrong(BROKER, key, value)
            if why is None:
                taken[key] = value
            else:
                plan.dropped.append(f"broker {broker or 'default'}: {key}: {why}")
        if taken:
            plan.source.image.configs[BROKER, broker] = taken


def _opened(kept: str, secrets: tuple[str, ...]) -> tuple[str, str | None]:
    """Returns the password of a value in ZooKeeper, and why it cannot be opened."""
    found = opened_by_one(kept, secrets)
    if found is None:
        return "", ANOTHER_SECRET if secrets else ENCRYPTED
    return found[0], None


def _is_password(name: str) -> bool:
    of_listener = key_of_listener(name)
    key = of_listener[1] if of_listener is not None else keys("broker").get(name)
    return key is not None and key.type == "PASSWORD"


# producers


def _next_producer_id(plan: Plan, given: Given) -> int:
    """Returns an id above all that were given out: a new producer with one of those would be taken for the old one."""
    ids: Iterable[int] = (survey.producer_id for one in plan.found for survey in one.surveys.values())
    states = _longest(plan.found, TRANSACTION_STATE)
    of_transactions = (
        largest_producer_id(one.home.partition_path((TRANSACTION_STATE, index)), survey.end)
        for index, (one, survey) in states.items()
    )
    largest = max(*ids, *of_transactions, -1)
    known = given.catalog.next_producer_id if given.catalog is not None else 0
    return max(known, (largest // PRODUCER_IDS + 1) * PRODUCER_IDS)
