"""Features go up and down at any node, and each node says how far they are: as with Apache Kafka."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.node_stories import NODES, Story
from ..support.stories.features import (
    FEATURES,
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    Change,
    feature_request,
)

pytestmark = pytest.mark.slow
VERSIONS = m.ApiVersionsRequest(client_software_name="w", client_software_version="1")
NAMES = "streams.version", "transaction.version"


@pytest.fixture
def features(story: Story) -> Iterator[Story]:
    story.trims.update(UpdateFeatures=any_controller, ApiVersions=features_only)
    yield story
    levels(story)


def any_controller(reply: Any) -> None:
    """The controller of Kafka's three is none of them, and has an id of its own."""
    for one in (reply, *reply.results):
        one.error_message = re.sub(r"controller \d+", "controller", one.error_message or "")


def features_only(reply: Any) -> None:
    reply.api_keys = []


def levels(story: Story) -> None:
    """Waits until each node that runs says of features what the controller has decided."""
    for node in sorted(story.running):
        story.at(node).agree("ApiVersions", 4, VERSIONS)


def known(story: Story, node: int) -> list[int]:
    """The levels at a node of ours, once each node of Kafka agrees; 0 where a feature is off."""
    levels(story)
    found = {
        one.name: one.max_version_level
        for one in story.at(node).ours.ask("ApiVersions", 4, VERSIONS).finalized_features
    }
    return [found.get(name, 0) for name in NAMES]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_dry_run_changes_nothing_at_any_node(features: Story, version: int) -> None:
    """Version 0 has no dry run, and takes every update as an upgrade: none of these is possible."""
    before = known(features, 1)
    for node, updates in zip(cycle(NODES), FEATURES, strict=False):
        features.at(node).ask("UpdateFeatures", version, feature_request(version, updates))
    assert known(features, 3) == before
    assert features.errors("UpdateFeatures") == {"NONE", "INVALID_UPDATE_VERSION"}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_features_go_down_and_up(features: Story, version: int) -> None:
    streams, transactions = known(features, 1)

    def change(node: int, *updates: Change, at: int = version) -> None:
        features.at(node).ask("UpdateFeatures", at, feature_request(at, list(updates), try_only=False))

    down = (NAMES[0], 0, SAFE_DOWNGRADE), (NAMES[1], 1, UNSAFE_DOWNGRADE)
    change(1, *down, ("nope", 1, UPGRADE))
    assert known(features, 2) == [streams, transactions], "all or none"
    change(2, *down, at=max(version, 1))
    assert known(features, 3) == [0, 1]
    change(3, (NAMES[1], 2, UPGRADE), (NAMES[0], 9, UPGRADE))
    assert known(features, 1) == [0, 1]
    change(1, (NAMES[1], 0, UPGRADE))
    change(2, (NAMES[1], 1, UPGRADE), (NAMES[1], 2, UPGRADE))
    change(3, (NAMES[0], streams, UPGRADE))
    assert known(features, 1) == [streams, transactions]
    assert features.errors("UpdateFeatures") == {"NONE", "INVALID_UPDATE_VERSION"}


def test_features_change_while_a_node_is_gone(features: Story) -> None:
    """The node is not asked whether it knows the level: it has said so when it registered."""
    for what, back in (("stop", "start"), ("pause", "resume")):
        features.happens(what, 3)
        features.at(1).ask("UpdateFeatures", 2, feature_request(2, [(NAMES[0], 0, SAFE_DOWNGRADE)], try_only=False))
        assert known(features, 2)[0] == 0
        features.happens(back, 3)
        assert known(features, 3)[0] == 0
        features.at(3).ask("UpdateFeatures", 2, feature_request(2, [(NAMES[0], 1, UPGRADE)], try_only=False))
        assert known(features, 1)[0] == 1
    assert features.errors("UpdateFeatures") == {"NONE"}
