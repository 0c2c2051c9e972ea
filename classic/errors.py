"""What can go wrong, by the names of Kafka 0.8 without `Exception`."""

from __future__ import annotations

from ..protocol.errors import CODES

_NAMES = {code: name for name, code in CODES.items()}
OFFSET_OUT_OF_RANGE = CODES["OFFSET_OUT_OF_RANGE"]
UNKNOWN = CODES["UNKNOWN_SERVER_ERROR"]


class KafkaError(Exception):
    """A broker answered with an error. `code`: its number in the protocol."""

    def __init__(self, code: int, where: str) -> None:
        super().__init__(f"{_NAMES.get(code, code)}: {where}")
        self.code = code


class OffsetOutOfRange(KafkaError):
    """The offset does not exist, or not any more."""


class BrokerUnreachable(Exception):
    """No broker answers."""


class FailedToSendMessage(Exception):
    """Some messages were not taken, whatever was tried. `count`: how many."""

    def __init__(self, count: int, tries: int, reason: str) -> None:
        super().__init__(f"{count} messages were not taken in {tries} tries: {reason}")
        self.count = count


class QueueFull(Exception):
    """The queue of an asynchronous producer has no room."""


class ProducerClosed(Exception):
    """The producer is closed."""


class ConsumerTimeout(Exception):
    """No message came within `consumer_timeout_ms`."""


class ConsumerRebalanceFailed(Exception):
    """The consumer did not get its partitions in `rebalance_max_retries` tries."""


class MessageStreamsExist(Exception):
    """A connector makes streams once."""


def check(code: int, where: str) -> None:
    """Raises KafkaError unless `code` is 0."""
    if code == OFFSET_OUT_OF_RANGE:
        raise OffsetOutOfRange(code, where)
    if code:
        raise KafkaError(code, where)
