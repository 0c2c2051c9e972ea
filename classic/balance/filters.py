"""Which topics a consumer wants by a regular expression: white lists and black lists."""

from __future__ import annotations

import re
from typing import ClassVar

from ...protocol.zookeeper_values import BLACK_LIST, WHITE_LIST

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
_QUOTES = "\"'"


class TopicFilter:
    """A regular expression for names of topics. As in Kafka 0.8, a comma means `|`; spaces are left out, and quotes
    around the whole.

    Raises re.error if it is none.
    """

    pattern: ClassVar[str]  # as registrations have it

    def __init__(self, raw_regex: str) -> None:
        self.regex = raw_regex.strip().replace(",", "|").replace(" ", "").strip(_QUOTES)
        self._compiled = re.compile(self.regex)

    def _matches(self, topic: str) -> bool:
        return self._compiled.fullmatch(topic) is not None

    def is_topic_allowed(self, topic: str, exclude_internal_topics: bool = True) -> bool:
        """Whether a topic is wanted. Internal topics are not, unless they are not excluded."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.regex!r})"


class Whitelist(TopicFilter):
    """Topics whose whole name matches."""

    pattern = WHITE_LIST

    def is_topic_allowed(self, topic: str, exclude_internal_topics: bool = True) -> bool:
        return self._matches(topic) and not (exclude_internal_topics and topic in INTERNAL_TOPICS)


class Blacklist(TopicFilter):
    """Topics whose whole name does not match."""

    pattern = BLACK_LIST

    def is_topic_allowed(self, topic: str, exclude_internal_topics: bool = True) -> bool:
        return not self._matches(topic) and not (exclude_internal_topics and topic in INTERNAL_TOPICS)
