"""A consumer of `ottla.classic` as a program, to be killed: prints each message as `read NAME TOPIC PARTITION OFFSET`.

python -m tests.support.classic_consumer ZOOKEEPER GROUP NAME REGEX
"""

from __future__ import annotations

import sys

from ottla.classic import ConsumerConnector, Whitelist

from .classic_group import config


def main(zookeeper: str, group: str, name: str, regex: str) -> None:
    connector = ConsumerConnector(config(zookeeper, group, name))
    (stream,) = connector.create_message_streams_by_filter(Whitelist(regex), 1)
    print("ready", flush=True)
    for one in stream:
        print("read", name, one.topic, one.partition, one.offset, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
