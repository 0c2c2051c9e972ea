"""The metadata of consumers in classic groups, as far as a coordinator reads it."""

from __future__ import annotations

import pytest
from ottla.coordinator.group.consumer_protocol import subscribed_topics
from ottla.protocol.errors import MalformedMessage

TOPIC_T = b"\0\0\0\1\0\1t"
NO_USER_DATA = b"\xff\xff\xff\xff"


@pytest.mark.parametrize("version", [0, 1, 3, 9])
def test_topics_are_read_from_what_all_versions_begin_with(version: int) -> None:
    """@platformatic/kafka names version 1 and ends its metadata as version 0 does; Kafka reads its topics."""
    metadata = version.to_bytes(2, "big") + TOPIC_T + NO_USER_DATA
    assert subscribed_topics(metadata) == {"t"}
    assert subscribed_topics(metadata + b"what came later") == {"t"}


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\xff\xff" + TOPIC_T + NO_USER_DATA, b"\0\0" + TOPIC_T, b"\0\1\0\0"])
def test_metadata_that_ends_early_or_has_no_version_has_no_topics(metadata: bytes) -> None:
    with pytest.raises(MalformedMessage):
        subscribed_topics(metadata)
