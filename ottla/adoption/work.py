"""Carries an adoption out: makes a directory of ottla (`--to`), or changes the directories in place."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from ..broker.replica.directories import write_meta
from ..coordinator.metadata.state import MetadataState
from ..handover import EXIT_IN_USE, EXIT_UNUSABLE, EXIT_USAGE, HandoverRefused
from ..handover import metadata as target_metadata
from ..handover.layout import Layout, Wanted, ottla_nodes, placed
from ..handover.logs import Copied, Copier, bytes_of
from ..handover.replicas import Choice, choose
from ..storage import layout
from ..storage.files import HELD, Files, OsFiles
from ..storage.log import Log
from . import CONSUMER_OFFSETS, swap
from .findings import MARKER, Found, opened
from .groups import append_renewed
from .plan import Given, Plan, planned

PartitionKey = tuple[bytes, int]


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be adopted. `target`: None to change the directories in place; `links`: of closed segments there are
    links where that is possible.
    """

    paths: tuple[str, ...]
    target: str | None
    given: Given
    links: bool = False


@dataclass(slots=True)
class Adoption:
    """A plan that has been made, and can be carried out."""

    order: Order
    plan: Plan
    choice: Choice
    layout: Layout
    now_ms: int
    cuts: list[str]

    @property
    def bytes_copied(self) -> int:
        """The bytes that `--to` copies or links."""
        names = self.plan.source.image.topic_names
        return bytes_of(((names[t], n), home) for (t, n), home in self.choice.homes.items())

    def carry_out(self, files: Files | None = None, sync: Callable[[], None] = os.sync) -> None:
        """Raises HandoverRefused, OSError."""
        files = files or OsFiles()
        if self.order.target is None:
            _in_place(self, files, sync)
        else:
            _into(self, self.order.target, files, sync)


@contextmanager
def prepared(order: Order, now_ms: int | None = None) -> Iterator[Adoption]:
    """Makes the plan; the directories stay locked. `now_ms`: the time of the adoption.
    Raises HandoverRefused, OSError.
    """
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    with opened(order.paths) as found:
        plan = planned(found, order.given, now_ms)
        source = plan.source
        path = os.path.abspath(order.target) if order.target is not None else found[0].home.path
        if order.target is None and len({one.broker_id for one in found}) > 1:
            raise HandoverRefused("the directories are of several brokers: name --to with a new directory", EXIT_USAGE)
        nodes = ottla_nodes(source, Wanted(), path)
        choice = choose(source)
        made = placed(source, nodes, Wanted())
        for one in choice.missing:
            made.replicas.pop((one.topic_id, one.index))
        choice.ends.clear()
        adoption = Adoption(order, plan, choice, made, now_ms, [])
        if order.target is not None:
            _check_target(order.target, found, adoption.bytes_copied)
        yield adoption


def continued(paths: tuple[str, ...], target: str | None, files: Files | None = None) -> list[str]:
    """Finishes an adoption that a crash interrupted after its point of no return; returns the directories that it made.
    Raises OSError.
    """
    files = files or OsFiles()
    if target is not None:
        marker = f"{target}/{MARKER}"
        if not files.exists(marker) or not files.exists(f"{target}/{layout.META_PROPERTIES}"):
            return []
        files.remove_tree(marker)
        return [target]
    left = swap.begun(files, [os.path.realpath(one) for one in paths])
    if left:
        with _exclusively(left):
            swap.finish(files, left)
    return left


def _image(adoption: Adoption, directories: dict[PartitionKey, bytes]) -> MetadataState:
    """Returns the target's metadata. `directories`: of partitions that are not in the node's first one."""
    image = target_metadata.target_image(adoption.plan.source, adoption.layout, adoption.choice, for_kafka=False)
    for key, directory_id in directories.items():
        image.partitions[key] = replace(image.partitions[key], directories=(directory_id,))
    (node,) = adoption.layout.nodes
    if adoption.order.target is None and not adoption.plan.source.is_clean:
        for key in adoption.choice.homes:  # as if the node had led them when it stopped, and were not back yet
            image.partitions[key] = replace(image.partitions[key], isr=(), elr=(), last_known_elr=(node.id,))
    ids = tuple(dict.fromkeys((node.directory_id, *directories.values())))
    image.brokers[node.id] = image.brokers[node.id]._replace(log_dirs=ids)
    return image


def _then(adoption: Adoption, key: PartitionKey, name: str) -> Callable[[Log], None] | None:
    """Returns what is appended to the copy of a partition."""
    read = adoption.plan.renewed.get(key[1]) if name == CONSUMER_OFFSETS else None
    if read is None or not read.names:
        return None
    epoch = adoption.plan.source.image.partitions[key].leader_epoch
    return partial(append_renewed, found=read, leader_epoch=epoch, now_ms=adoption.now_ms)


def _copy(adoption: Adoption, copier: Copier, keys: list[PartitionKey]) -> Copied:
    names = adoption.plan.source.image.topic_names
    for key in keys:
        name = names[key[0]]
        copier.add((name, key[1]), key[0], adoption.choice.homes[key], then=_then(adoption, key, name))
    copier.done.high_watermarks.update(copier.done.recovery_points)  # of one replica all is committed
    adoption.cuts += [one for one in copier.done.cuts if one not in adoption.cuts]
    return copier.done


# into a new directory


def _into(adoption: Adoption, target: str, files: Files, sync: Callable[[], None]) -> None:
    """What is unfinished has the marker and no `meta.properties`, which comes last; no broker starts on that."""
    marker, node = f"{target}/{MARKER}", adoption.layout.nodes[0]
    existed = files.exists(target)
    _clear(files, target)
    try:
        files.make_directory(marker)
        files.sync_directory(target)
        copier = Copier(target, files, links=adoption.order.links)
        _copy(adoption, copier, [key for key in adoption.layout.replicas if key in adoption.choice.homes])
        copier.write_checkpoints()
        source = adoption.plan.source
        target_metadata.write_log(files, target, [node], source, _image(adoption, {}))
        target_metadata.mark_clean(files, node)
        sync()
        write_meta(files, f"{target}/{layout.META_PROPERTIES}", node.id, source.cluster_id, node.directory_id)
        files.remove_tree(marker)
        files.sync_directory(target)
    except BaseException:
        _clear(files, target)
        if not existed and files.exists(target):
            files.remove_tree(target)
        raise


def _clear(files: Files, target: str) -> None:
    """Removes what was begun: first what makes it complete, the marker last."""
    if not files.exists(target):
        return
    for name in sorted(files.names(target), key=lambda name: (name == MARKER, name != layout.META_PROPERTIES)):
        path = f"{target}/{name}"
        if os.path.isdir(path):
            files.remove_tree(path)
        else:
            files.remove(path)


def is_unfinished(target: str) -> bool:
    """Whether an adoption into this directory was interrupted."""
    return os.path.isdir(f"{target}/{MARKER}") and not os.path.exists(f"{target}/{layout.META_PROPERTIES}")


def _check_target(target: str, found: list[Found], size: int) -> None:
    """Raises HandoverRefused if the target has files, lies in the source, or has no room."""
    real = os.path.realpath(target)
    if os.path.lexists(real) and (not os.path.isdir(real) or (os.listdir(real) and not is_unfinished(real))):
        raise HandoverRefused(f"{target} is not an empty directory", EXIT_USAGE)
    for one in found:
        if real == one.home.path or real.startswith(f"{one.home.path}/") or one.home.path.startswith(f"{real}/"):
            raise HandoverRefused(f"{target} and {one.home.path} lie within each other", EXIT_USAGE)
    above = real
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    _, free = OsFiles().space(above)
    if size > free:
        raise HandoverRefused(f"{target} needs {size} bytes, but there are {free}", EXIT_UNUSABLE)


# in place


def _in_place(adoption: Adoption, files: Files, sync: Callable[[], None]) -> None:
    plan, node = adoption.plan, adoption.layout.nodes[0]
    homes = [one.home for one in plan.found]
    paths = [one.path for one in homes]
    ids = {one.path: node.directory_id if one is homes[0] else one.id for one in homes}
    with _exclusively(paths):
        swap.begin(files, paths)
        try:
            elsewhere = {
                key: ids[home.path]
                for key, home in adoption.choice.homes.items()
                if home is not None and home is not homes[0]
            }
            for home in homes:
                copier = Copier(swap.staging(home.path), files)
                done = _copy(adoption, copier, _replaced(adoption, home.path))
                for name, old, new in (
                    (layout.RECOVERY_POINTS, home.recovery_points, done.recovery_points),
                    (layout.HIGH_WATERMARKS, home.high_watermarks, done.high_watermarks),
                ):
                    files.replace(f"{copier.path}/{name}", swap.merged_offsets(old, new), durable=False)
                swap.keep_meta(files, home.path)
                meta = f"{copier.path}/{layout.META_PROPERTIES}"
                write_meta(files, meta, node.id, plan.source.cluster_id, ids[home.path])
            target_metadata.write_log(files, swap.staging(paths[0]), [node], plan.source, _image(adoption, elsewhere))
            swap.commit(files, paths, sync)
        except BaseException:
            if not swap.begun(files, paths):
                for path in paths:
                    swap.discard(files, path)
            raise


def _replaced(adoption: Adoption, path: str) -> list[PartitionKey]:
    """Returns the partitions whose logs are replaced in a directory; what is new is made in the first one."""
    names, first = adoption.plan.source.image.topic_names, adoption.plan.found[0].home
    return [
        key
        for key, home in adoption.choice.homes.items()
        if (home or first).path == path and _then(adoption, key, names[key[0]]) is not None
    ]


@contextmanager
def _exclusively(paths: list[str]) -> Iterator[None]:
    """Holds the locks of directories, as a broker does. Raises HandoverRefused, OSError."""
    held: list[int] = []
    try:
        for path in paths:
            held.append(os.open(f"{path}/{layout.LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            try:
                fcntl.lockf(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in HELD:
                    raise HandoverRefused(f"{path} is in use by another process", EXIT_IN_USE) from None
                raise
        yield
    finally:
        for fd in held:
            os.close(fd)
