"""A broker and a client that sends Produce requests ahead."""

from __future__ import annotations

from typing import Any

from ottla.protocol import codec

from .ask import batch, produce_message
from .connected import Client, ConnectedWorld
from .failing_files import FailingFiles
from .topic_world import create
from .wire import request_frame

NOW = 1_700_000_000_000
VERSION = 9


class Producing:
    """A broker and a client whose requests for `t` are known. `alone`: no request is gathered with others."""

    def __init__(self, alone: bool = False, files: FailingFiles | None = None, **configs: Any) -> None:
        self.world = ConnectedWorld(files)
        self.alone = alone
        create(self.world, "t", 2, **configs)
        self.world.pass_ms(100)
        self.client = self.connected()

    def connected(self) -> Client:
        """A client that has produced to both partitions."""
        client = self.world.connect()
        if self.alone:
            self.world.dispatcher.is_own = False
        for partition in (0, 1, 0, 1):
            client.ask("Produce", VERSION, produce_message("t", batch(b"first", now=NOW), partition=partition))
        return client

    def frame(self, data: bytes, number: int = 1, transactional_id: str | None = None, **more: Any) -> bytes:
        message = produce_message("t", data, **more)
        message.transactional_id = transactional_id
        return request_frame("Produce", VERSION, message, number, "client")

    def answers(self, *frames: bytes) -> list[Any]:
        """Sends frames at once; returns what answers each."""
        before = len(self.client.frames)
        self.client.feed(b"".join(frames))
        self.world.pass_ms(5)
        return [self.answer(frame) for frame in self.client.frames[before:]]

    @staticmethod
    def answer(frame: bytes) -> Any:
        return codec.parse("ProduceResponse", VERSION, frame, 5).responses[0].partition_responses[0]

    def produce(self, *batches: bytes) -> list[tuple[int, int]]:
        """Sends batches at once; returns the error code and the offset of each."""
        found = self.answers(*(self.frame(one, number) for number, one in enumerate(batches)))
        return [(one.error_code, one.base_offset) for one in found]

    def log(self, partition: int = 0) -> Any:
        return self.world.broker.partitions.get("t", partition).open_log()

    def content(self) -> list[Any]:
        """All that is in the logs and known of them."""
        found: list[Any] = []
        for partition in (0, 1):
            log = self.log(partition)
            for segment in log.segments:
                index, times = segment.index.data, segment.times.data
                found.append((segment.read(0, segment.size), segment.size, bytes(index), bytes(times)))
                found.append((segment.max_timestamp, segment.max_timestamp_offset, segment.bytes_since_index))
            found.append((log.end_offset, log.producers.snapshot()))
            found.append(self.world.broker.partitions.get("t", partition).high_watermark)
        return found
