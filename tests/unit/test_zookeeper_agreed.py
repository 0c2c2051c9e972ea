"""What a broker and ZooKeeper agreed on: its file, and configurations that both may have changed since."""

from __future__ import annotations

import pytest
from ottla.broker.zookeeper.agreed import Agreed, KnownTopic, merged

from ..support.memory_files import MemFiles

PATH = "/data/zookeeper-agreed"
ENTITY = ("topics", "t")
TOPIC_ID = bytes(range(16))


@pytest.mark.parametrize(
    ("states", "there", "here", "expected"),
    [
        (None, {"a": "1"}, {"a": "2", "b": "3"}, {"a": "1", "b": "3"}),
        ([{}], {"a": "1"}, {}, {"a": "1"}),
        ([{"a": "0"}], {"a": "1"}, {"a": "0"}, {"a": "1"}),
        ([{"a": "0"}], {}, {"a": "0"}, {}),
        ([{"a": "0"}], {"a": "0"}, {"a": "1"}, {"a": "1"}),
        ([{"a": "0"}], {"a": "0"}, {}, {}),
        ([{"a": "0"}], {"a": "1"}, {"a": "2"}, {"a": "2"}),
        ([{"a": "0"}], {"a": "1"}, {}, {}),
        ([{"a": "0", "b": "0"}], {"a": "1", "b": "0"}, {"a": "0", "b": "1"}, {"a": "1", "b": "1"}),
        ([{"a": "0"}, {"a": "1"}], {"a": "1"}, {"a": "0"}, {"a": "0"}),
        ([{"a": "0"}, {"a": "1"}], {"a": "2"}, {"a": "1"}, {"a": "2"}),
        ([{}, {"a": "1"}], {"a": "1", "b": "2"}, {}, {"b": "2"}),
    ],
    ids=[
        "nothing was agreed on: what ZooKeeper has counts",
        "a tool adds",
        "a tool changes",
        "a tool removes",
        "the broker changes",
        "the broker removes",
        "both change one key: the broker has acknowledged its value",
        "the broker removes what a tool changes",
        "each changes a key",
        "what was written and not confirmed is no change of a tool",
        "a tool changes what was written and not confirmed",
        "a tool adds to what was written and not confirmed, and the broker has removed that",
    ],
)
def test_configurations_are_merged(
    states: list[dict[str, str]] | None, there: dict[str, str], here: dict[str, str], expected: dict[str, str]
) -> None:
    assert merged(states, there, here) == expected


def save(agreed: Agreed) -> None:
    note = agreed.take()
    assert note is not None
    note()


@pytest.fixture
def files() -> MemFiles:
    files = MemFiles()
    files.make_directory("/data")
    return files


def loaded(files: MemFiles) -> Agreed:
    agreed = Agreed(files, PATH)
    agreed.load()
    return agreed


def test_the_file_has_what_was_agreed_on(files: MemFiles) -> None:
    agreed = loaded(files)
    assert agreed.is_empty
    assert agreed.states(ENTITY) is None
    agreed.begin(5)
    agreed.note_topic("t", KnownTopic(TOPIC_ID, None))
    agreed.note_topic("gone", KnownTopic(TOPIC_ID, 6))
    agreed.settle(5)
    save(agreed)
    agreed.note_topic("gone", None)
    agreed.note_config(ENTITY, {"a": "1"}, {"a": "2"})
    agreed.note_config(("users", "u"), {"a": "1"})
    agreed.note_config(("users", "u"), {})
    save(agreed)
    assert agreed.take() is None
    again = loaded(files)
    assert again.topics == {"t": KnownTopic(TOPIC_ID, None)}
    assert again.states(ENTITY) == ({"a": "1"}, {"a": "2"})
    assert again.states(("users", "u")) == ({},)


def test_another_zookeeper_has_nothing_of_it(files: MemFiles) -> None:
    agreed = loaded(files)
    agreed.note_topic("t", KnownTopic(TOPIC_ID, 6))
    agreed.settle(5)
    save(agreed)
    again = loaded(files)
    again.begin(5)
    assert again.topics
    again.begin(9)
    assert again.is_empty
    assert not again.topics
    save(again)
    assert loaded(files).is_empty


@pytest.mark.parametrize(
    "line",
    [
        *[b"x", b"{}", b"7", b"[]", b'["topic"]', b'["topic","t",7,null]', b'["topic","t","0g",null]', b'["tree"]'],
        *[b'["topic","t","00","x"]', b'["config","topics","t",[]]', b'["config","topics","t",{"a":1}]', b"\xff"],
    ],
    ids=repr,
)
def test_what_follows_a_line_of_another_form_does_not_count(files: MemFiles, line: bytes) -> None:
    """And the file is written again as a whole."""
    files.replace(PATH, b'["tree",5]\n' + line + b'\n["topic","u","00",1]\n')
    agreed = loaded(files)
    assert not agreed.is_empty
    assert not agreed.topics
    save(agreed)
    assert files.read(PATH) == b'["tree",5]\n'


def test_a_failed_write_is_made_up_for_by_the_next(files: MemFiles) -> None:
    agreed = loaded(files)
    agreed.settle(5)
    save(agreed)
    agreed.note_topic("t", KnownTopic(TOPIC_ID, 6))
    assert agreed.take() is not None  # and is not done
    agreed.note_topic("u", KnownTopic(TOPIC_ID, 7))
    save(agreed)
    assert loaded(files).topics.keys() == {"t", "u"}
