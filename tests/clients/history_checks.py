"""What is true of clients' records, transactions and groups at the end of a history of nodes (history.py)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, TopicPartition

from .history import PARTITIONS, SHARES, WITHOUT_OFFSETS, Program


def check(address: str, program: Program) -> list[str]:
    """Returns what is wrong with a client's records, transactions and groups."""
    name = program.name
    records = contents(address, name)
    return [
        *wrong_records(program, records),
        *wrong_reads(program, records, lambda group: committed(address, group, name, PARTITIONS)),
        *wrong_accepts(program),
        *wrong_transactions(
            program, contents(address, f"{name}-whole"), committed(address, f"{name}-whole", name, 1)[0]
        ),
    ]


def contents(address: str, topic: str) -> dict[tuple[int, int], str]:
    """The committed records of a topic, by partition and offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    count = len(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, index, 0) for index in range(count)])
    found: dict[tuple[int, int], str] = {}
    ended = 0
    while ended < count:
        message = consumer.poll(30)
        assert message is not None, f"{topic} cannot be read"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended += 1
            continue
        found[message.partition() or 0, message.offset() or 0] = (message.value() or b"").decode()
    consumer.close()
    return found


def committed(address: str, group: str, topic: str, count: int) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "log_level": 0})
    found = consumer.committed([TopicPartition(topic, index) for index in range(count)], timeout=30)
    consumer.close()
    return {one.partition: one.offset for one in found}


def wrong_records(program: Program, records: dict[tuple[int, int], str]) -> list[str]:
    count, acked = Counter(records.values()), {number for (number,) in program.said("acked")}
    wrong = [f"record {number} was acknowledged and is lost" for number in acked if not count[number]]
    wrong += [f"record {number} is there {times} times" for number, times in count.items() if times > 1]
    known = acked | {number for (number,) in program.said("lost")}
    return wrong + [f"record {number} was never sent to its end" for number in count if number not in known]


def wrong_reads(
    program: Program, records: dict[tuple[int, int], str], offsets_of: Callable[[str], dict[int, int]]
) -> list[str]:
    """Every group reads all that was acknowledged, what is there, and nothing below what it has committed."""
    wrong: list[str] = []
    seen: dict[str, set[str]] = defaultdict(set)
    ends: dict[tuple[str, int], int] = {}
    for _, words in program.lines:
        if words[0] == "read":
            group, partition, offset = words[1], int(words[2]), int(words[3])
            seen[group].add(words[4])
            if records.get((partition, offset)) != words[4]:
                wrong.append(
                    f"{group} read {words[4]} at {partition}:{offset}, where {records.get((partition, offset))} is"
                )
            if offset < ends.get((group, partition), 0):
                wrong.append(f"{group} read {partition}:{offset} after it committed {ends[group, partition]}")
        elif words[0] == "committed":
            ends[words[1], int(words[2])] = int(words[3])
    acked = {number for (number,) in program.said("acked")}
    wrong += [f"{group} missed {len(acked - numbers)} records" for group, numbers in seen.items() if acked - numbers]
    for (group, partition), end in ends.items():
        if offsets_of(group)[partition] < end:
            wrong.append(f"{group} committed {partition}:{end}, and {offsets_of(group)[partition]} is left")
    return wrong


def wrong_accepts(program: Program) -> list[str]:
    if program.name not in SHARES:
        return []
    count = Counter(number for (number,) in program.said("accepted"))
    acked = {number for (number,) in program.said("acked")}
    wrong = [f"the share group accepted {number} {times} times" for number, times in count.items() if times > 1]
    missed = acked - count.keys() - {number for (number,) in program.said("unsure")}
    return wrong + [f"the share group missed {number}" for number in missed]


def wrong_transactions(program: Program, records: dict[tuple[int, int], str], offset: int) -> list[str]:
    count = Counter(records.values())
    whole, doubtful = ([int(number) for (number,) in program.said(kind)] for kind in ("whole", "doubtful"))
    wrong, allowed = [], {**dict.fromkeys(whole, (3,)), **dict.fromkeys(doubtful, (0, 3))}
    for number in {int(value.partition("-")[0]) for value in count} | set(whole):
        times = [count[f"{number}-{part}"] for part in range(3)]
        if sum(times) not in allowed.get(number, (0,)) or max(times) > 1:
            wrong.append(f"transaction {number} has left {times}, of {allowed.get(number, (0,))}")
    if program.name not in WITHOUT_OFFSETS and offset not in (
        max(whole),
        *(one for one in doubtful if one > max(whole)),
    ):
        wrong.append(f"the offset of the last transaction, {max(whole)}, is {offset}")
    return wrong
