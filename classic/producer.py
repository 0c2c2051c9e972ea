"""`Producer`: sends at once, or queues and sends in batches."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Sequence
from typing import Generic, Self, TypeVar

from .cluster import Cluster, Discovery, addresses
from .errors import ProducerClosed, QueueFull
from .event_handler import DefaultEventHandler, EventHandler, ProducerData
from .partitioning import Encoder, Partitioner
from .producer_config import ASYNC, ProducerConfig

K = TypeVar("K")
V = TypeVar("V")
_log = logging.getLogger(__name__)


class CallbackHandler(Generic[K, V]):
    """What an asynchronous producer calls at the stages of its queue. Whoever derives from it takes what is wanted."""

    def before_enqueue(self, data: ProducerData[K, V]) -> ProducerData[K, V]:
        """Returns what is put into the queue."""
        return data

    def after_enqueue(self, data: ProducerData[K, V], added: bool) -> None:
        """`added`: False if the queue was full."""

    def after_dequeuing_existing_data(self, data: ProducerData[K, V] | None) -> list[ProducerData[K, V]]:
        """Called for each that leaves the queue, and with None when `queue_time_ms` is over. Returns what joins the
        batch.
        """
        return [] if data is None else [data]

    def before_sending_data(self, batch: list[ProducerData[K, V]]) -> list[ProducerData[K, V]]:
        """Returns what is given to the event handler."""
        return batch

    def last_batch_before_close(self) -> list[ProducerData[K, V]]:
        """Returns what is sent at the end, after the queue."""
        return []

    def close(self) -> None:
        """The producer is closed."""


class Producer(Generic[K, V]):
    """Sends messages to the partitions of topics.

    `encoder`, `key_encoder`: make messages of data and of keys; by default both are bytes. `partitioner`: by default
    hash(key) % num_partitions. `event_handler`: sends a batch, in place of the default one, which serializes and
    sends. `callback_handler`: for asynchronous producers.
    """

    def __init__(
        self,
        config: ProducerConfig,
        *,
        encoder: Encoder[V] | None = None,
        key_encoder: Encoder[K] | None = None,
        partitioner: Partitioner[K] | None = None,
        event_handler: EventHandler[K, V] | None = None,
        callback_handler: CallbackHandler[K, V] | None = None,
    ) -> None:
        self._handler: EventHandler[K, V] = event_handler or DefaultEventHandler(
            config,
            Cluster(_discovery(config), config.client_id, config.request_timeout_ms / 1000),
            encoder,
            key_encoder,
            partitioner,
        )
        self._is_closed = False
        self._sender: _Sender[K, V] | None = None
        if config.producer_type == ASYNC:
            self._sender = _Sender(config, self._handler, callback_handler or CallbackHandler())
            self._sender.start()

    def send(self, *data: ProducerData[K, V]) -> None:
        """Sends, or queues, each of `data`.

        Raises FailedToSendMessage when brokers do not take it in so many tries (an asynchronous producer logs that, and
        drops the batch), QueueFull, ProducerClosed, and what encoders and partitioner raise.
        """
        if self._is_closed:
            raise ProducerClosed("the producer is closed")
        if self._sender is None:
            self._handler.handle(data)
            return
        for one in data:
            self._sender.enqueue(one)

    def close(self) -> None:
        """Sends what is queued, and ends."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._sender is not None:
            self._sender.finish()
        self._handler.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _discovery(config: ProducerConfig) -> Discovery:
    if config.zk_connect:
        from .zookeeper import brokers_of

        return lambda: brokers_of(config.zk_connect)
    found = addresses(config.broker_list)
    return lambda: found


class _Sender(threading.Thread, Generic[K, V]):
    """The thread that empties the queue."""

    def __init__(self, config: ProducerConfig, handler: EventHandler[K, V], callbacks: CallbackHandler[K, V]) -> None:
        super().__init__(name="ottla-classic-producer", daemon=True)
        self._config, self._handler, self._callbacks = config, handler, callbacks
        self._queue: queue.Queue[ProducerData[K, V] | None] = queue.Queue(config.queue_size)

    def enqueue(self, data: ProducerData[K, V]) -> None:
        data, wait_ms = self._callbacks.before_enqueue(data), self._config.queue_enqueue_timeout_ms
        try:
            self._queue.put(data, block=wait_ms != 0, timeout=wait_ms / 1000 if wait_ms > 0 else None)
        except queue.Full:
            self._callbacks.after_enqueue(data, False)
            raise QueueFull(f"{self._config.queue_size} messages wait to be sent") from None
        self._callbacks.after_enqueue(data, True)

    def finish(self) -> None:
        self._queue.put(None)
        self.join()

    def run(self) -> None:
        batch: list[ProducerData[K, V]] = []
        messages, due_s = 0, self._next_due_s()
        while True:
            try:
                data = self._queue.get(timeout=max(0.0, due_s - time.monotonic()))
            except queue.Empty:
                batch += self._dequeued(None)
            else:
                if data is None:
                    break
                came = self._dequeued(data)
                batch += came
                messages += sum(len(one.data) for one in came)
                if messages < self._config.batch_size:
                    continue
            self._send(batch)
            batch, messages, due_s = [], 0, self._next_due_s()
        self._send(batch)
        self._send(self._callbacks.last_batch_before_close())
        self._callbacks.close()

    def _dequeued(self, data: ProducerData[K, V] | None) -> list[ProducerData[K, V]]:
        try:
            return self._callbacks.after_dequeuing_existing_data(data)
        except Exception:  # without this thread, whoever sends or closes would wait for room in the queue for ever
            _log.exception("an entry of the queue is lost")
            return []

    def _next_due_s(self) -> float:
        return time.monotonic() + self._config.queue_time_ms / 1000

    def _send(self, batch: Sequence[ProducerData[K, V]]) -> None:
        if not batch:
            return
        try:
            self._handler.handle(self._callbacks.before_sending_data(list(batch)))
        except Exception:  # whatever a handler raises: the messages after these are sent
            _log.exception("%d entries of the queue are lost", len(batch))
