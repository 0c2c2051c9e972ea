"""Makes the metadata of the target: a snapshot that ends where the source's metadata log did, and an empty log.

All nodes are registered, fenced, and have been shut down cleanly; no partition has a leader. The first start elects.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..broker.config.listener_values import key_of_listener
from ..broker.controller import metadata_log
from ..broker.controller.metadata_log import Voter
from ..broker.replica.directories import write_meta
from ..broker.steps import all_at_once
from ..coordinator.metadata.configs import check_topic_config
from ..coordinator.metadata.state import BROKER, NO_LEADER, TOPIC, MetadataState
from ..protocol.config_def import ConfigInvalid, keys
from ..protocol.errors import ApiError
from ..protocol.features import DIRECTORIES_SINCE, METADATA_VERSION, defaults
from ..storage.checkpoints import encode_partition_metadata
from ..storage.files import Files, OsFiles
from ..storage.layout import (
    CLEAN_SHUTDOWN,
    LOG,
    META_PROPERTIES,
    PARTITION_METADATA,
    QUORUM_STATE,
    file_name,
    snapshot_name,
)
from .layout import Layout, NewNode
from .replicas import Choice
from .source import Source

OWN_PREFIX = "ottla."
UNKNOWN = "Kafka 4.4 does not know it"


class Dropped(NamedTuple):
    """A configuration that the target does not have. `kind`: the resource type."""

    kind: int
    name: str
    key: str
    why: str


def dropped_configs(source: Source, nodes: Collection[int], *, for_kafka: bool) -> list[Dropped]:
    """Returns the configurations that the target does not have: those that it does not know or take, and those of
    brokers that there are no more.
    """
    found = []
    for (kind, name), values in source.image.configs.items():
        is_gone = kind == BROKER and name and name not in map(str, nodes)
        for key, value in values.items():
            why = "there is no such broker any more" if is_gone else what_is_wrong(kind, key, value)
            if key.startswith(OWN_PREFIX) and not is_gone:
                why = "Kafka does not know it" if for_kafka else None
            if why is not None:
                found.append(Dropped(kind, name, key, why))
    return found


def what_is_wrong(kind: int, key: str, value: str) -> str | None:
    """Returns why a topic or a broker cannot have a configuration that it had with an earlier Kafka."""
    try:
        if kind == TOPIC:
            check_topic_config({key: value})
        elif kind == BROKER:
            of_listener = key_of_listener(key)
            (of_listener[1] if of_listener is not None else keys("broker")[key]).parse(value)
    except KeyError:
        return UNKNOWN
    except (ConfigInvalid, ApiError) as error:
        return str(error) if key in keys("topic") or kind == BROKER else UNKNOWN
    return None


def target_image(source: Source, layout: Layout, choice: Choice, *, for_kafka: bool) -> MetadataState:
    """Returns the image of the target. Partitions that are missing stay with the nodes that have them."""
    image = source.image.copied()
    image.brokers = {one.id: one.registration() for one in layout.nodes}
    for controller in list(image.controllers):
        image.drop("controllers", controller)
    missing = {(one.topic_id, one.index) for one in choice.missing}
    for key, before in source.image.partitions.items():
        changed = replace(before, leader=NO_LEADER, partition_epoch=before.partition_epoch + 1)
        if key not in missing:
            replicas = layout.replicas[key]
            directories = tuple(layout.by_id[one].directory_id for one in replicas)
            changed = replace(changed, replicas=replicas, directories=directories, adding=(), removing=())
            behind = choice.ends.get(key, {})
            isr = tuple(one for one in replicas if one not in behind or one in before.isr)
            if isr:
                changed = replace(changed, isr=isr, elr=(), last_known_elr=())
            else:
                changed = replace(changed, elr=tuple(one for one in before.elr if one in replicas))
        image.partitions[key] = changed
    for one in dropped_configs(source, layout.by_id, for_kafka=for_kafka):
        values = dict(image.configs[one.kind, one.name])
        del values[one.key]
        if values:
            image.configs[one.kind, one.name] = values
        else:
            del image.configs[one.kind, one.name]
    _keep_to_level(image)
    return image


def _keep_to_level(image: MetadataState) -> None:
    """Leaves out what the metadata version does not have: Kafka does not start on a snapshot with that, nor on one
    without a version.
    """
    if METADATA_VERSION not in image.features:
        image.features = dict(defaults())
    version = image.metadata_version
    image.brokers = {key: one.at(version) for key, one in image.brokers.items()}
    if version < DIRECTORIES_SINCE:
        image.partitions = {key: replace(one, directories=()) for key, one in image.partitions.items()}


def write(nodes: Sequence[NewNode], voters: Sequence[NewNode], source: Source, image: MetadataState) -> None:
    """Writes `meta.properties`, the metadata log and the mark of a clean shutdown into the directories of the nodes;
    nodes that share one get one. Raises OSError.
    """
    files = OsFiles()
    for node in {one.path: one for one in reversed(nodes)}.values():
        write_meta(files, f"{node.path}/{META_PROPERTIES}", node.id, source.cluster_id, node.directory_id)
        write_log(files, node.path, voters, source, image)
        mark_clean(files, node)


def write_log(files: Files, directory: str, voters: Sequence[NewNode], source: Source, image: MetadataState) -> None:
    """Writes the metadata log into a directory. Raises OSError."""
    named = [Voter(v.id, v.directory_id, v.controller.name, v.controller.host, v.controller.port) for v in voters]
    now = int(time.time() * 1000)
    data = all_at_once(metadata_log.build_snapshot(named, image.as_records(), source.epoch, now, now))
    path = f"{directory}/{metadata_log.DIRECTORY}"
    files.make_directory(path)
    files.replace(f"{path}/{snapshot_name(source.offset, source.epoch)}", data, durable=False)
    files.replace(f"{path}/{file_name(source.offset, LOG)}", b"", durable=False)
    files.replace(f"{path}/{PARTITION_METADATA}", encode_partition_metadata(metadata_log.TOPIC_ID), durable=False)
    files.replace(f"{path}/{QUORUM_STATE}", metadata_log.quorum_state(NO_LEADER, source.epoch))


def mark_clean(files: Files, node: NewNode) -> None:
    """Writes the mark of a clean shutdown into the directory of a node. Raises OSError."""
    mark = json.dumps({"version": 0, "brokerEpoch": node.epoch}, separators=(",", ":"))
    files.replace(f"{node.path}/{CLEAN_SHUTDOWN}", mark.encode(), durable=False)
