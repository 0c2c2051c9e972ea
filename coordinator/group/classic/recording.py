"""The decision to write the record of a classic group, which is encoded in steps where the group has many members."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

from ....protocol import codec
from ....protocol.errors import ApiError
from ...packing import Built
from ...shard import Decision, Result
from ..format import WRITTEN_VERSIONS, GroupFormat
from .group import ClassicGroup
from .replies import STEP_MEMBERS


def recorded(
    group: ClassicGroup,
    assignments: Mapping[str, bytes],
    on_committed: Callable[[ApiError | None], None],
    on_failed: Callable[[ApiError], None] | None = None,
) -> Decision[None]:
    """Writes the group, whose members are to have these assignments."""
    if len(group.members) <= STEP_MEMBERS:
        record: object = group.record(assignments)
    else:
        record = yield from _built(group, assignments)
    return Result([record], on_committed=on_committed, replay=False, on_failed=on_failed)


def _built(group: ClassicGroup, assignments: Mapping[str, bytes]) -> Generator[None, None, Built]:
    key, value = group.record_without_members()
    name = type(value).__name__
    members = codec.encoded(name, WRITTEN_VERSIONS[name], "members")
    for number, member in enumerate(group.recorded_members(assignments), 1):
        members.append(member)
        if number % STEP_MEMBERS == 0:
            yield
    value.members = members  # type: ignore[assignment] # its bytes
    return Built(GroupFormat().encode((key, value)))
