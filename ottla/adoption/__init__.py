"""Directories that a Kafka with ZooKeeper (0.8.2 to 3.9) wrote become directories of ottla.

`findings` reads the directories and changes nothing, `survey` looks at the log of a partition, `groups` at what
consumers committed; `catalog` is what ZooKeeper knew of topics, as far as it is known; `plan` decides, `report` says it
and `work` does it, into a directory of its own, or in place (`swap`).
"""

from __future__ import annotations

CONSUMER_OFFSETS, TRANSACTION_STATE = "__consumer_offsets", "__transaction_state"
COORDINATORS_TOPICS = (CONSUMER_OFFSETS, TRANSACTION_STATE)
