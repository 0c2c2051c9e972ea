"""The double of the file system fails as file systems do, and not otherwise."""

from __future__ import annotations

import random

import pytest

from ..support.memory_files import MemFiles

SEEDS = range(20)


def with_a_file(path: str) -> MemFiles:
    files = MemFiles()
    directory = path.rpartition("/")[0]
    files.make_directory(directory)
    handle = files.open(path, create=True)
    handle.write_at(0, b"durable")
    handle.sync()
    for synced in ("/", "/data", directory):
        files.sync_directory(synced)
    return files


def test_a_renamed_directory_has_one_of_both_names_with_all_its_files() -> None:
    outcomes = set()
    for seed in SEEDS:
        files = with_a_file("/data/old/a")
        files.open("/data/old/b", create=True).sync()
        files.sync_directory("/data/old")
        files.rename("/data/old", "/data/new")
        after = files.lose_power(random.Random(seed))
        (name,) = after.names("/data")
        assert after.names(f"/data/{name}") == ["a", "b"]
        assert after.read(f"/data/{name}/a") == b"durable"
        outcomes.add(name)
    assert outcomes == {"old", "new"}


def test_a_renamed_directory_is_new_for_certain_once_the_one_above_is_synced() -> None:
    for seed in SEEDS:
        files = with_a_file("/data/old/a")
        files.rename("/data/old", "/data/new")
        files.sync_directory("/data")
        assert files.lose_power(random.Random(seed)).paths() == ["/data/new/a"]


def test_a_replaced_file_is_the_old_or_the_new_one() -> None:
    outcomes = set()
    for seed in SEEDS:
        files = with_a_file("/data/a")
        handle = files.open("/data/b", create=True)
        handle.write_at(0, b"later")
        handle.sync()
        files.sync_directory("/data")
        files.rename("/data/b", "/data/a")
        after = files.lose_power(random.Random(seed))
        outcomes.add((tuple(after.paths()), after.read("/data/a")))
    assert outcomes == {(("/data/a", "/data/b"), b"durable"), (("/data/a",), b"later")}


def test_a_file_whose_name_was_not_synced_may_be_gone() -> None:
    found = set()
    for seed in SEEDS:
        files = with_a_file("/data/a")
        files.open("/data/b", create=True).sync()
        found.add(tuple(files.lose_power(random.Random(seed)).paths()))
    assert found == {("/data/a",), ("/data/a", "/data/b")}


def test_no_file_is_made_where_there_is_no_directory() -> None:
    with pytest.raises(FileNotFoundError):
        MemFiles().open("/nowhere/a", create=True)
