"""Makes directories: of Apache Kafka's nodes (`hand_over`), or one of ottla (`take_over`)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from . import EXIT_UNUSABLE, EXIT_USAGE, HandoverRefused, layout, metadata, properties
from .layout import Layout, Wanted
from .logs import Copier, bytes_of
from .replicas import Choice, choose
from .report import Report, report
from .source import Source, opened


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be made of which directories, and where. `given`: the keys of ottla's configuration, if it is known;
    `dry_run`: only the plan.
    """

    paths: tuple[str, ...]
    target: str
    wanted: Wanted
    given: Mapping[str, str] | None = None
    dry_run: bool = False


def hand_over(order: Order) -> Report:
    """Makes a directory for each node of Apache Kafka. Raises HandoverRefused, OSError."""
    with opened(order.paths) as source:
        nodes = layout.kafka_nodes(source, order.wanted, os.path.abspath(order.target))
        choice = choose(source)
        if choice.missing and source.is_ottlas:
            one = choice.missing[0]
            raise HandoverRefused(
                f"{source.image.topic_names[one.topic_id]}-{one.index} and {len(choice.missing) - 1} others have no "
                "directory; name all of log.dirs, restore what was lost, or let ottla start with "
                "ottla.recovery=salvage and stop it",
                EXIT_UNUSABLE,
            )
        planned = layout.placed(source, nodes, order.wanted)
        return _made(order, source, planned, choice, for_kafka=True)


def take_over(order: Order) -> Report:
    """Makes a directory of ottla. Raises HandoverRefused, OSError."""
    with opened(order.paths) as source:
        nodes = layout.ottla_nodes(source, order.wanted, os.path.abspath(order.target))
        planned = layout.placed(source, nodes, order.wanted)
        return _made(order, source, planned, choose(source), for_kafka=False)


def _made(order: Order, source: Source, planned: Layout, choice: Choice, *, for_kafka: bool) -> Report:
    for one in choice.missing:
        planned.replicas.pop((one.topic_id, one.index))
    if not (for_kafka and planned.is_kept):
        choice.ends.clear()  # each replica gets the whole log
    homes = {path: list(_homes(planned, choice, path)) for path in {one.path for one in planned.nodes}}
    names = source.image.topic_names
    size = sum(bytes_of(((names[t], n), choice.homes[t, n]) for t, n in keys) for keys in homes.values())
    found = report(source, planned, choice, order.given, size, for_kafka=for_kafka)
    _check_target(order, source, size)
    if order.dry_run:
        return found
    existed = os.path.isdir(order.target)
    try:
        for node in {one.path: one for one in reversed(planned.nodes)}.values():
            copier = Copier(node.path)
            for topic_id, index in homes[node.path]:
                reach = choice.ends.get((topic_id, index), {}).get(node.id)
                copier.add((names[topic_id], index), topic_id, choice.homes[topic_id, index], reach)
            copier.write_checkpoints()
            found.view["lost"] += [one for one in copier.done.cuts if one not in found.view["lost"]]
        image = metadata.target_image(source, planned, choice, for_kafka=for_kafka)
        voters = planned.nodes if for_kafka else planned.nodes[:1]
        metadata.write(planned.nodes, voters, source, image)
        if for_kafka:
            _write_properties(order, planned)
    except BaseException:
        _remove(order.target, existed)
        raise
    os.sync()
    found.view["made"] = True
    return found


def _homes(planned: Layout, choice: Choice, path: str) -> list[tuple[bytes, int]]:
    """Returns the partitions of which a directory has a replica."""
    nodes = {one.id for one in planned.nodes if one.path == path}
    return [key for key, replicas in planned.replicas.items() if key in choice.homes and nodes.intersection(replicas)]


def _check_target(order: Order, source: Source, size: int) -> None:
    """Raises HandoverRefused if the target has files, lies in the source, or has no room."""
    target = os.path.realpath(order.target)
    if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
        raise HandoverRefused(f"{order.target} is not an empty directory", EXIT_USAGE)
    for one in source.directories:
        if target == one.path or target.startswith(f"{one.path}/"):
            raise HandoverRefused(f"{order.target} is in {one.path}", EXIT_USAGE)
    above = target
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    space = os.statvfs(above)
    if size > space.f_bavail * space.f_frsize:
        free = space.f_bavail * space.f_frsize
        raise HandoverRefused(f"{order.target} needs {size} bytes, but there are {free}", EXIT_UNUSABLE)


def _write_properties(order: Order, planned: Layout) -> None:
    for node in planned.nodes:
        path = f"{os.path.dirname(node.path)}/server.properties"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(properties.properties_of(node, planned.nodes, order.given or {}))


def _remove(target: str, existed: bool) -> None:
    """Removes what was begun; the target was empty before."""
    if not os.path.isdir(target):
        return
    for name in os.listdir(target):
        path = f"{target}/{name}"
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    if not existed:
        os.rmdir(target)
