"""Requests that raise and lower features."""

from __future__ import annotations

from typing import Any

from ottla.protocol import messages as m

Change = tuple[str, int, int]  # a feature, its level, and the type of the update
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
FEATURES: tuple[list[Change], ...] = (
    [("share.version", 1, 1)],
    [("share.version", 1, 2)],
    [("share.version", 1, 3)],
    [("share.version", 9, 1)],
    [("share.version", -1, 1)],
    [("share.version", 2, 1)],
    [("share.version", 1, 0)],
    [("share.version", 1, 7)],
    [("share.version", 1, 2), ("nope", 3, 1)],
    [("share.version", 1, 2), ("share.version", 2, 1)],
    [("nope", 1, 1)],
    [("", 1, 1)],
    [],
    [("kraft.version", 1, 1)],
    [("kraft.version", 0, 2)],
    [("metadata.version", 5, 2)],
    [("metadata.version", 28, 2)],
    [("metadata.version", 28, 3)],
    [("group.version", 0, 2), ("transaction.version", 1, 2)],
)


def feature_request(version: int, updates: list[Change], try_only: bool = True) -> Any:
    u = m.UpdateFeaturesRequest
    request = u(timeout_ms=5000)
    for name, level, kind in updates:
        one = u.FeatureUpdateKey(feature=name, max_version_level=level)
        if version == 0:
            one.allow_downgrade = kind > UPGRADE
        else:
            one.upgrade_type = kind
        request.feature_updates.append(one)
    if version >= 1:
        request.validate_only = try_only
    return request
