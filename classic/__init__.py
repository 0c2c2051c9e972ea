"""The client of Kafka 0.8's time, with Python's names.

It is for study and for old installations: its consumers share groups with those of Kafka 0.8 to 1.1 in a ZooKeeper.
Whoever writes something new takes a client of today.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .balance.filters import Blacklist, TopicFilter, Whitelist
from .consumer_config import ConsumerConfig
from .errors import (
    BrokerUnreachable,
    ConsumerRebalanceFailed,
    ConsumerTimeout,
    FailedToSendMessage,
    KafkaError,
    MessageStreamsExist,
    OffsetOutOfRange,
    ProducerClosed,
    QueueFull,
)
from .event_handler import DefaultEventHandler, EventHandler, ProducerData
from .message import Message, MessageAndOffset, MessageSet
from .partitioning import DefaultEncoder, DefaultPartitioner, Encoder, Partitioner, StringEncoder
from .producer import CallbackHandler, Producer
from .producer_config import ProducerConfig
from .requests import EARLIEST_TIME, LATEST_TIME, FetchRequest
from .simple_consumer import SimpleConsumer
from .streams import KafkaStream, MessageAndMetadata

if TYPE_CHECKING:
    from .connector import ConsumerConnector as ConsumerConnector

__all__ = [
    "EARLIEST_TIME",
    "LATEST_TIME",
    "Blacklist",
    "BrokerUnreachable",
    "CallbackHandler",
    "ConsumerConfig",
    "ConsumerConnector",
    "ConsumerRebalanceFailed",
    "ConsumerTimeout",
    "DefaultEncoder",
    "DefaultEventHandler",
    "DefaultPartitioner",
    "Encoder",
    "EventHandler",
    "FailedToSendMessage",
    "FetchRequest",
    "KafkaError",
    "KafkaStream",
    "Message",
    "MessageAndMetadata",
    "MessageAndOffset",
    "MessageSet",
    "MessageStreamsExist",
    "OffsetOutOfRange",
    "Partitioner",
    "Producer",
    "ProducerClosed",
    "ProducerConfig",
    "ProducerData",
    "QueueFull",
    "SimpleConsumer",
    "StringEncoder",
    "TopicFilter",
    "Whitelist",
]


def __getattr__(name: str) -> object:
    if name == "ConsumerConnector":  # it needs kazoo, which the others do not
        from .connector import ConsumerConnector

        return ConsumerConnector
    raise AttributeError(name)
