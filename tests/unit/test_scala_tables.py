"""The order of Scala's hash tables, as Kafka 4.4 listed what was asked for in a ListOffsets and in a DeleteRecords."""

from __future__ import annotations

from ottla.coordinator.scala_tables import (
    buckets_for,
    hash_in_trie,
    in_trie,
    partition_hash,
    place_in_table,
    trie_order,
)

ASKED = [
    "orders",
    "payments",
    "users",
    "audit",
    "clicks",
    "stock",
    "prices",
    "returns",
    "mails",
    "carts",
    "logs",
    "jobs",
]
TOPICS = [
    "prices",
    "users",
    "mails",
    "returns",
    "orders",
    "audit",
    "logs",
    "carts",
    "stock",
    "payments",
    "clicks",
    "jobs",
]
OF_LIST_OFFSETS = [7, 8, 9, 10, 11, 12, 13, 0, 1, 2, 3, 4, 5, 6]
OF_DELETE_RECORDS = [3, 10, 6, 9, 2, 7, 12, 4, 8, 0, 1, 11, 5, 13]


def test_an_immutable_map_has_names_by_the_bits_of_their_hashes() -> None:
    assert list(trie_order({name: hash_in_trie(name) for name in ASKED})) == TOPICS
    assert list(trie_order({name: hash_in_trie(name) for name in sorted(ASKED)})) == TOPICS


def test_a_mutable_map_has_partitions_by_bucket() -> None:
    size = buckets_for(14)
    assert size == 32
    assert sorted(range(14), key=lambda i: place_in_table(partition_hash("orders", i), size)) == OF_LIST_OFFSETS


def test_an_immutable_map_has_partitions_by_the_bits_of_their_hashes() -> None:
    assert (
        list(trie_order({index: in_trie(partition_hash("orders", index)) for index in range(14)})) == OF_DELETE_RECORDS
    )


def test_keys_with_the_same_bits_stay_as_they_came() -> None:
    assert list(trie_order({"b": 7, "a": 7, "c": 6})) == ["c", "b", "a"]
    assert not list(trie_order({}))
