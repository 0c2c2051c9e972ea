"""Raising and lowering the finalized levels of features (KIP-584, KIP-778)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.features import ELR_SINCE, ELR_VERSION, KRAFT_VERSION, METADATA_VERSION, changing_metadata, supported
from ...protocol.structs import Struct
from ..hashing import java_order
from ..shard import Result
from .configs import records_for_elr
from .controller import Controller

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class Update(NamedTuple):
    name: str
    level: int
    kind: int


def update_features(controller: Controller, node_id: int, updates: Iterable[Update], validate_only: bool) -> Result:
    """Applies all of the updates, or none. Raises ApiError(INVALID_UPDATE_VERSION)."""
    by_name = {update.name: update for update in updates}  # the last of several updates of a feature counts
    features = controller.state.features
    present = controller.state.metadata_version
    metadata = by_name[METADATA_VERSION].level if METADATA_VERSION in by_name else present
    for name in java_order(by_name):
        update = by_name[name]
        reason = _refused(node_id, update, int(features.get(name, _absent(name)))) or _unmet(update, metadata)
        if reason is not None:
            text = f"The update failed for all features since the following feature had an error: {reason}"
            raise ApiError(Errors.INVALID_UPDATE_VERSION, text)
    if validate_only:
        return Result()
    changed = [update for name, update in by_name.items() if update.level != features.get(name, _absent(name))]
    records: list[Struct] = [messages.FeatureLevelRecord(name=one.name, feature_level=one.level) for one in changed]
    if any(one.name == ELR_VERSION and one.level for one in changed):
        records += records_for_elr(controller)
    return Result(records)


def _absent(name: str) -> int:
    """Returns the level of a feature without a record: `kraft.version` is in a control record."""
    return supported()[KRAFT_VERSION][1] if name == KRAFT_VERSION else 0


def _refused(node_id: int, update: Update, present: int) -> str | None:
    """Returns Kafka's message if an update is refused."""
    name, level = update.name, update.level
    invalid = f"Invalid update version {level} for feature {name}. "
    known = supported().get(name)
    if update.kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return f"{invalid}The controller does not support the given upgrade type."
    if level < 0:
        return f"{invalid}A feature version cannot be less than 0."
    if known is None:
        reason = f"Local controller {node_id} does not support this feature." if level else f"Feature {name} not found."
        return invalid + reason
    if not known[0] <= level <= known[1]:
        return f"{invalid}Local controller {node_id} only supports versions {known[0]}-{known[1]}"
    if level > present and update.kind != UPGRADE:
        return f"{invalid}Can't downgrade to a newer version."
    if level >= present:
        return None
    if update.kind == UPGRADE:
        return (
            f"{invalid}Can't downgrade the version of this feature without setting the upgrade type to either "
            "safe or unsafe downgrade."
        )
    if name == KRAFT_VERSION:
        return f"{invalid}Can't downgrade the version of this feature."
    if name == METADATA_VERSION and any(level < one <= present for one in changing_metadata()):
        why = "Refusing to perform the requested downgrade because it might delete metadata information."
        if update.kind == UNSAFE_DOWNGRADE:
            why = "Unsafe metadata downgrade is not supported in this version."
        return f"Unsupported metadata.version downgrade from {present} to {level}. {why}"
    return None


def _unmet(update: Update, metadata: int) -> str | None:
    """Returns Kafka's message if a level needs a higher one of `metadata.version` than that of after the updates."""
    name, level = update.name, update.level
    if name in (METADATA_VERSION, KRAFT_VERSION) or level == 0:
        return None
    told = (
        f"Invalid update version {level} for feature {name}. {name} could not be set to {level} because it depends on"
    )
    if metadata < supported()[METADATA_VERSION][0]:
        return f"{told} {METADATA_VERSION}={supported()[METADATA_VERSION][0]} (3.3-IV3)"
    if name == ELR_VERSION and metadata < ELR_SINCE:
        return f"{told} {METADATA_VERSION} level {ELR_SINCE}"
    return None
