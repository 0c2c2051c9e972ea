"""The assignors of `group.consumer.assignors`: Kafka's two by their names, and a user's own as `module:function`.

A user's function receives a `Spec` and returns targets by member id: partitions by topic id. One that raises, or gives partitions that
are not there or to which a member is not subscribed, or gives one twice, fails the heartbeat with UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from ..environment import Target
from . import Assignor, AssignorFailed, Spec, range, uniform

BUILT_IN: dict[str, Assignor] = {"uniform": uniform.assign, "range": range.assign}
# Kafka's classes of the same assignors, which its configuration may name too
CLASSES = {f"org.apache.kafka.coordinator.group.assignor.{name.capitalize()}Assignor": name for name in BUILT_IN}


class Assignors:
    """The configured assignors, the first of which is the default. ValueError for a name that is none."""

    def __init__(self, names: list[str]) -> None:
        if not names:
            raise ValueError("group.consumer.assignors: at least one is needed")
        self.names: list[str] = []
        self._by_name: dict[str, Assignor] = {}
        for text in names:
            name = CLASSES.get(text, text)
            self.names.append(name)
            self._by_name[name] = BUILT_IN[name] if name in BUILT_IN else _load(name)

    @property
    def default(self) -> str:
        return self.names[0]

    def by_name(self, name: str) -> Assignor:
        """A group may remember one that is not configured any more; the default serves it then."""
        return self._by_name.get(name) or self._by_name[self.default]


def _load(name: str) -> Assignor:
    module, colon, function = name.partition(":")
    if not colon:
        raise ValueError(f"group.consumer.assignors: {name!r} is neither uniform, range nor module:function")
    try:
        found: Assignor = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"group.consumer.assignors: {name}: {error}") from None
    return _guarded(name, found)


def _guarded(name: str, assignor: Assignor) -> Assignor:
    """A user's assignor, whose mistakes stay its own."""

    def assign(spec: Spec) -> Mapping[str, Target]:
        try:
            found = {member: {topic: frozenset(of) for topic, of in target.items()} for member, target in assignor(spec).items()}
        except Exception as error:
            raise AssignorFailed(f"{name}: {error}") from error
        taken: set[tuple[bytes, int]] = set()
        for member, target in found.items():
            if member not in spec.members:
                raise AssignorFailed(f"{name}: {member} is not a member")
            for topic, partitions in target.items():
                if topic not in spec.members[member].topic_ids:
                    raise AssignorFailed(f"{name}: {member} is not subscribed to topic {topic.hex()}")
                for partition in partitions:
                    if not 0 <= partition < spec.partition_counts[topic] or (topic, partition) in taken:
                        raise AssignorFailed(f"{name}: partition {partition} of {topic.hex()} is not there or given twice")
                    taken.add((topic, partition))
        return found

    return assign
