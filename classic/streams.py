"""`KafkaStream`: the messages of one or more partitions, for one thread of the application."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from .balance.assignment import TopicPartition
from .errors import ConsumerTimeout
from .message import MessageAndOffset

K = TypeVar("K")
V = TypeVar("V")
Decoder = Callable[[bytes | None], V]


@dataclass(frozen=True, slots=True)
class MessageAndMetadata(Generic[K, V]):
    """`key`, `message`: as the decoders of the stream return them."""

    topic: str
    partition: int
    offset: int
    key: K
    message: V


class PartitionPosition:
    """How far a partition has come. `consumed`: the offset after the last message that was handed out; None until it is
    known. `fetched`: the offset after the last one that is in the stream.
    """

    def __init__(self, place: TopicPartition, stream: KafkaStream[K, V], offset: int | None) -> None:
        self.place, self.stream = place, stream
        self.consumed = self.fetched = offset


Chunk = tuple[PartitionPosition, deque[MessageAndOffset]]


class KafkaStream(Generic[K, V]):
    """An iterator over MessageAndMetadata, which waits for messages and ends with the connector.

    A message counts as consumed when it is handed out. Raises ConsumerTimeout if none comes within the connector's
    `consumer_timeout_ms`; the iterator can go on then. What a decoder raises comes out of the iterator too.
    """

    def __init__(
        self, key_decoder: Decoder[K], value_decoder: Decoder[V], chunks_max: int, timeout_ms: int, name: str
    ) -> None:
        self._key_decoder, self._value_decoder = key_decoder, value_decoder
        self._chunks_max, self._timeout_s = chunks_max, timeout_ms / 1000
        self._chunks: deque[Chunk] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._name = name

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> MessageAndMetadata[K, V]:
        place, found = self._taken()
        key, value = self._key_decoder(found.message.key), self._value_decoder(found.message.value)
        return MessageAndMetadata(place.topic, place.partition, found.offset, key, value)

    def _taken(self) -> tuple[TopicPartition, MessageAndOffset]:
        end_s = time.monotonic() + self._timeout_s
        with self._changed:
            while not self._chunks:
                if self._is_closed:
                    raise StopIteration
                left_s = end_s - time.monotonic() if self._timeout_s >= 0 else None
                if left_s is not None and left_s <= 0:
                    raise ConsumerTimeout(f"no message in {self._timeout_s:g} s")
                self._changed.wait(left_s)
            position, messages = self._chunks[0]
            found = messages.popleft()
            position.consumed = found.next_offset
            if not messages:
                self._chunks.popleft()
                self._changed.notify_all()
            return position.place, found

    def put(self, chunk: Chunk, is_stopped: Callable[[], bool]) -> bool:
        """Adds messages when there is room; returns False if the fetch that brought them is over."""
        with self._changed:
            self._changed.wait_for(lambda: is_stopped() or len(self._chunks) < self._chunks_max)
            if is_stopped():
                return False
            self._chunks.append(chunk)
            self._changed.notify_all()
            return True

    def clear(self) -> None:
        """Forgets what was not handed out, and lets `put` look whether it is stopped."""
        with self._changed:
            self._chunks.clear()
            self._changed.notify_all()

    def close(self) -> None:
        """Lets the iterator end."""
        with self._changed:
            self._is_closed = True
            self._chunks.clear()
            self._changed.notify_all()

    def __repr__(self) -> str:
        return f"<KafkaStream {self._name}>"
