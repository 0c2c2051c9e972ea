"""The internal topics of Kafka Streams applications, which the broker creates on behalf of a member that needs them
(KIP-1071): repartition and changelog topics.

A topic that could not be created is tried again after a time, and until then the members are told why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ...coordinator.metadata import topics
from ...protocol import messages
from ...protocol.errors import ApiError
from ..controller.controller import MetadataController
from ..later import Later

if TYPE_CHECKING:
    from ...coordinator.group.streams.topology import InternalTopic

ERRORS_MAX = 1_000  # that are remembered
DEFAULT = -1  # the broker's number of replicas


class _Failure(NamedTuple):
    words: str
    until_ms: int


class StreamsTopics:
    """What is being created, and what could not be."""

    def __init__(self, metadata: MetadataController, now_ms: Callable[[], int]) -> None:
        self._metadata = metadata
        self._now_ms = now_ms
        self._creating: set[str] = set()
        self._failures: dict[str, _Failure] = {}

    def create(self, missing: Iterable[InternalTopic], mutate: topics.Mutate, retry_ms: int) -> None:
        """Begins to create those that are not being created, and have not failed within the time of a retry."""
        now = self._now_ms()
        wanted = [one for one in missing if one.name not in self._creating and self._failure(one.name, now) is None]
        if not wanted:
            return
        names = [one.name for one in wanted]
        self._creating.update(names)
        create = partial(topics.create_topics, self._metadata.controller, [_creatable(one) for one in wanted], mutate)
        later = self._metadata.submit(create)
        later.when_done(partial(self._created, names, retry_ms))

    def failures(self, names: Iterable[str]) -> dict[str, str]:
        """Returns why topics could not be created, by their names."""
        now = self._now_ms()
        return {name: found.words for name in names if (found := self._failure(name, now)) is not None}

    def _failure(self, name: str, now: int) -> _Failure | None:
        found = self._failures.get(name)
        if found is not None and found.until_ms <= now:
            del self._failures[name]
            return None
        return found

    def _created(self, names: list[str], retry_ms: int, later: Later[list[topics.Created]]) -> None:
        self._creating.difference_update(names)
        until = self._now_ms() + retry_ms
        try:
            for topic, error, *_ in later.get():
                if error is not None:
                    self._note(topic.name, error, until)
        except ApiError as error:
            for name in names:
                self._note(name, error, until)

    def _note(self, name: str, error: ApiError, until: int) -> None:
        self._failures.pop(name, None)
        while len(self._failures) >= ERRORS_MAX:
            del self._failures[next(iter(self._failures))]
        self._failures[name] = _Failure(error.message_or_default or "", until)


def _creatable(one: InternalTopic) -> messages.CreateTopicsRequest.CreatableTopic:
    r = messages.CreateTopicsRequest
    return r.CreatableTopic(
        name=one.name,
        num_partitions=one.partitions,
        replication_factor=one.replication_factor or DEFAULT,
        configs=[r.CreatableTopicConfig(name=key, value=value) for key, value in one.configs],
    )
