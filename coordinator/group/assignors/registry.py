"""The assignors of `group.consumer.assignors`: Kafka's two by their names, and a user's own as `module:function`.

A user's function receives a `Spec` and returns targets by member id: partitions by topic id. One that raises, or gives
partitions that are not there or to which a member is not subscribed, or gives one twice, fails the heartbeat with
UNKNOWN_SERVER_ERROR. It cannot be interrupted: for a small group it runs within a heartbeat, for a large one in a
thread (`target_assignment`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

from ..environment import Target
from . import Assignment, Assignor, AssignorFailed, Spec, Steps, range, uniform

STEPS: dict[str, Callable[[Spec], Steps[Assignment]]] = {"uniform": uniform.steps, "range": range.steps}
BUILT_IN: dict[str, Assignor] = {"uniform": uniform.assign, "range": range.assign}
# Kafka's classes of the same assignors, which its configuration may name too
CLASSES = {f"org.apache.kafka.coordinator.group.assignor.{name.capitalize()}Assignor": name for name in BUILT_IN}


class Assignors:
    """The configured assignors, the first of which is the default. Raises ValueError for an unknown name."""

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
        """Returns an assignor; the default for a name that is no longer configured,
        which a group may have in its records.
        """
        return self._by_name.get(name) or self._by_name[self.default]

    def steps_of(self, name: str) -> Callable[[Spec], Steps[Assignment]] | None:
        """Returns the assignor `name` as a generator; None for a user's function."""
        return STEPS.get(name if name in self._by_name else self.default)


def _load(name: str) -> Assignor:
    module, colon, function = name.partition(":")
    if not colon:
        raise ValueError(f"group.consumer.assignors: {name!r} is neither uniform, range nor module:function")
    try:
        found: Assignor = getattr(importlib.import_module(module), function)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise ValueError(
            f"group.consumer.assignors: {name} cannot be loaded: {type(error).__name__}: {error}"
        ) from None
    if not callable(found):
        raise ValueError(f"group.consumer.assignors: {name} is no function")
    return _guarded(name, found)


def _guarded(name: str, assignor: Assignor) -> Assignor:
    """Returns a user's assignor, whose exceptions and wrong results become AssignorFailed."""

    def assign(spec: Spec) -> Mapping[str, Target]:
        try:
            found = {
                member: {topic: frozenset(of) for topic, of in target.items()}
                for member, target in assignor(spec).items()
            }
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
                        raise AssignorFailed(
                            f"{name}: partition {partition} of {topic.hex()} does not exist or is given twice"
                        )
                    taken.add((topic, partition))
        return found

    return assign
