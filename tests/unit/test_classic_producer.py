"""The queue of the producer of `ottla.classic`, its callbacks, and where keys go."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from ottla.classic import (
    CallbackHandler,
    DefaultPartitioner,
    Producer,
    ProducerClosed,
    ProducerConfig,
    ProducerData,
    QueueFull,
)
from ottla.classic.partitioning import hash_code

Data = ProducerData[bytes, bytes]
HOURS_MS = 3_600_000


class Handler:
    """Takes batches in place of a broker. `gate`: what it waits for; `taken`: whether it has a batch."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.gate, self.taken = threading.Event(), threading.Semaphore(0)
        self.gate.set()
        self.is_closed = False

    def handle(self, events: Sequence[Data]) -> None:
        self.taken.release()
        assert self.gate.wait(60)
        if any(b"bad" in one.data for one in events):
            raise ValueError("bad")
        self.batches.append([value for one in events for value in one.data])

    def close(self) -> None:
        self.is_closed = True


def producer(
    handler: Handler, callbacks: CallbackHandler[bytes, bytes] | None = None, **more: int
) -> Producer[bytes, bytes]:
    values = {"batch_size": 3, "queue_time_ms": HOURS_MS, **more}
    config = ProducerConfig("127.0.0.1:9", producer_type="async", **values)  # type: ignore[arg-type]
    return Producer(config, event_handler=handler, callback_handler=callbacks)


def one(value: bytes) -> Data:
    return ProducerData("t", [value])


def test_a_batch_is_sent_when_it_has_batch_size_messages() -> None:
    handler = Handler()
    with producer(handler) as made:
        for value in (b"a", b"b", b"c", b"d"):
            made.send(one(value))
        made.send(ProducerData("t", [b"e", b"f"]))
        made.send(one(b"g"))
        for _ in range(2):
            assert handler.taken.acquire(timeout=60)
    assert handler.batches == [[b"a", b"b", b"c"], [b"d", b"e", b"f"], [b"g"]]
    assert handler.is_closed


def test_a_batch_is_sent_after_queue_time() -> None:
    handler = Handler()
    with producer(handler, queue_time_ms=1, batch_size=1000) as made:
        made.send(one(b"a"))
        assert handler.taken.acquire(timeout=60)  # nothing else comes, and it is not closed yet
    assert handler.batches == [[b"a"]]


def test_a_full_queue_refuses_what_does_not_wait() -> None:
    handler = Handler()
    handler.gate.clear()
    with producer(handler, batch_size=1, queue_size=1, queue_enqueue_timeout_ms=0) as made:
        made.send(one(b"a"))
        assert handler.taken.acquire(timeout=60)
        made.send(one(b"b"))
        with pytest.raises(QueueFull):
            made.send(one(b"c"))
        handler.gate.set()
    assert handler.batches == [[b"a"], [b"b"]]


def test_a_batch_that_fails_does_not_stop_the_next() -> None:
    handler = Handler()
    with producer(handler, batch_size=1) as made:
        made.send(one(b"bad"), one(b"good"))
    assert handler.batches == [[b"good"]]


class Callbacks(CallbackHandler[bytes, bytes]):
    def __init__(self) -> None:
        self.added: list[bool] = []
        self.is_closed = False

    def before_enqueue(self, data: Data) -> Data:
        return ProducerData(data.topic, [b"<" + value for value in data.data])

    def after_enqueue(self, data: Data, added: bool) -> None:
        self.added.append(added)

    def after_dequeuing_existing_data(self, data: Data | None) -> list[Data]:
        return [data, data] if data is not None else []

    def before_sending_data(self, batch: list[Data]) -> list[Data]:
        return [ProducerData(data.topic, [value + b">" for value in data.data]) for data in batch]

    def last_batch_before_close(self) -> list[Data]:
        return [one(b"last")]

    def close(self) -> None:
        self.is_closed = True


def test_callbacks_see_and_change_what_passes() -> None:
    handler, callbacks = Handler(), Callbacks()
    with producer(handler, callbacks) as made:
        made.send(one(b"a"))
    assert handler.batches == [[b"<a>", b"<a>"], [b"last>"]]
    assert callbacks.added == [True]
    assert callbacks.is_closed


class Refusing(CallbackHandler[bytes, bytes]):
    def after_dequeuing_existing_data(self, data: Data | None) -> list[Data]:
        if data is not None and data.data == [b"bad"]:
            raise ValueError("bad")
        return super().after_dequeuing_existing_data(data)


def test_a_callback_that_fails_does_not_stop_the_next() -> None:
    handler = Handler()
    with producer(handler, Refusing()) as made:
        made.send(one(b"bad"), one(b"good"))
    assert handler.batches == [[b"good"]]


def test_a_closed_producer_refuses() -> None:
    made = producer(Handler())
    made.close()
    made.close()
    with pytest.raises(ProducerClosed):
        made.send(one(b"a"))


def test_a_synchronous_producer_raises_what_its_handler_raises() -> None:
    made: Producer[bytes, bytes] = Producer(ProducerConfig("127.0.0.1:9"), event_handler=Handler())
    with pytest.raises(ValueError, match="bad"):
        made.send(one(b"bad"))


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("", 0),
        ("a", 97),
        ("key", 106079),
        ("polygenelubricants", -(1 << 31)),
        ("\U0001f600", 1772899),
        (b"", 1),
        (b"a", 128),
        (b"\xff\x00", 930),
        (7, 7),
        (-1, -1),
        (1 << 32, 1),
    ],
)
def test_keys_have_javas_hash(key: str | bytes | int, code: int) -> None:
    assert hash_code(key) == code


def test_the_default_partition_is_the_hash_modulo_the_number() -> None:
    partitioner = DefaultPartitioner()
    assert partitioner.partition("key", 10) == 9
    assert partitioner.partition(-3, 10) == 3
    assert partitioner.partition("polygenelubricants", 10) == 0
    with pytest.raises(TypeError):
        partitioner.partition(1.5, 10)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"broker_list": "a:1", "zk_connect": "b:2"},
        {"broker_list": "a:1", "producer_type": "both"},
        {"broker_list": "a:1", "compression_codec": "zip"},
        {"broker_list": "a:1", "batch_size": 0},
    ],
)
def test_a_configuration_that_contradicts_itself_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        ProducerConfig(**wrong)  # type: ignore[arg-type]
