"""The low-level consumer: one broker, and requests as they are sent to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from .connection import Connection
from .errors import check
from .message import MessageSet
from .requests import FetchRequest, fetched, offsets_before

MESSAGE_BYTES_MAX = 1 << 30


class SimpleConsumer:
    """Reads from one broker, and remembers nothing: each request names its offset.

    `buffer_size`: of the socket, in bytes. `max_wait_ms`, `min_bytes`: how long the broker waits for how much.
    `message_max_bytes`: how far the buffer of a fetch grows, in bytes.

    All methods raise OSError if the broker does not answer.
    """

    def __init__(
        self,
        host: str,
        port: int,
        so_timeout_ms: int = 30_000,
        buffer_size: int = 65_536,
        client_id: str = "",
        *,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        message_max_bytes: int = MESSAGE_BYTES_MAX,
    ) -> None:
        self._connection = Connection(host, port, client_id, so_timeout_ms / 1000, buffer_size)
        self._max_wait_ms, self._min_bytes = max_wait_ms, min_bytes
        self._message_max_bytes = message_max_bytes

    def fetch(self, request: FetchRequest) -> MessageSet:
        """Fetches from a partition. A message that is larger than `max_size` comes in part, and the fetch is repeated,
        each time with a buffer twice as large.

        Raises KafkaError; OffsetOutOfRange if there is no such offset.
        """
        while True:
            (found,) = self.multifetch([request])
            check(found.error_code, f"{request.topic}-{request.partition} from offset {request.offset}")
            if not found.is_partial or request.max_size >= self._message_max_bytes:
                return found
            request = replace(request, max_size=min(2 * request.max_size, self._message_max_bytes))

    def multifetch(self, fetches: Sequence[FetchRequest]) -> list[MessageSet]:
        """Fetches from several partitions at once; returns their sets, in the order of the requests. A set with an
        error raises it when it is iterated.
        """
        return fetched(self._connection, fetches, self._max_wait_ms, self._min_bytes)

    def get_offsets_before(self, topic: str, partition: int, time: int, max_num_offsets: int) -> list[int]:
        """Returns valid offsets before a time, at most `max_num_offsets`, in descending order. `time`: milliseconds,
        LATEST_TIME or EARLIEST_TIME. A broker of Kafka 4 returns two at most: the offset of the first message since
        that time, or the end, and the first of the log.

        Raises KafkaError.
        """
        return offsets_before(self._connection, topic, partition, time, max_num_offsets)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
