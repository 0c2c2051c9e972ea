"""Which broker keys the code reads is derived from the code, and compared with what is said of keys without effect."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest
from ottla.broker.config.checks import DEFAULT_ONLY
from ottla.broker.config.effects import WITHOUT_EFFECT, without_effect
from ottla.protocol.config_def import dynamic_broker_keys, keys, topic_synonyms
from ottla.storage.settings import LogSettings

from ..support import configuration_docs
from ..support.sources import nodes, trees

NOT_READERS = (
    "apis/_config_changes.py",
    "net/listener_changes.py",
    "config/checks.py",
    "config/listener_checks.py",
    "config/listener_values.py",
    "config/effects.py",
    "config/relations.py",
    "config/docs.py",
)  # they name keys to check or to describe them


@cache
def _texts() -> tuple[frozenset[str], frozenset[str]]:
    """The texts in the code of the broker, and its f-strings as patterns."""
    texts, patterns = set(), set()
    for path, tree in trees("broker", "coordinator", "storage").items():
        if path.endswith(NOT_READERS):
            continue
        for node in nodes(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                patterns.add(
                    "".join(
                        re.escape(str(one.value)) if isinstance(one, ast.Constant) else "(?:.+)" for one in node.values
                    )
                )
    return frozenset(texts), frozenset(patterns)


def _topic_keys() -> set[str]:
    texts, _ = _texts()
    own = {name.replace("_", ".") for name in LogSettings._fields}
    return {name for name in keys("topic") if name in texts or name in own}


def read_literally() -> set[str]:
    texts, _ = _texts()
    given = {synonym for name in _topic_keys() for synonym in topic_synonyms().get(name, ())}
    return {name for name in keys("broker") if name in texts} | given


def read_by_pattern() -> set[str]:
    _, patterns = _texts()
    telling = [one for one in patterns if one.startswith(("compression", "group", "share")) and one.count("(?:.+)") < 3]
    return {name for name in keys("broker") if any(re.fullmatch(one, name) for one in telling)}


def test_a_key_that_the_code_reads_is_not_said_to_have_no_effect() -> None:
    assert {name: without_effect(name) for name in sorted(read_literally()) if without_effect(name)} == {}


def test_a_key_that_the_code_does_not_read_is_said_to_have_no_effect() -> None:
    known = read_literally() | read_by_pattern() | set(DEFAULT_ONLY)
    assert [name for name in keys("broker") if name not in known and without_effect(name) is None] == []


def test_a_key_that_can_only_have_its_default_is_in_no_other_class() -> None:
    assert {name: without_effect(name) for name in DEFAULT_ONLY if without_effect(name)} == {}
    assert [name for name in DEFAULT_ONLY if name not in keys("broker")] == []


def test_a_key_of_groups_that_the_code_does_not_read_is_said_to_have_no_effect() -> None:
    texts, patterns = _texts()
    of_each_kind = [one.removeprefix("(?:.+)") for one in patterns if re.fullmatch(r"\(\?:\.\+\)(\\\.\w+)+", one)]
    for name, key in keys("group").items():
        kind, _, _ = name.partition(".")
        is_read = name in texts or any(re.fullmatch(kind + one, name) for one in of_each_kind)
        assert key.internal or is_read or configuration_docs.reason(name) is not None, name


NAMES = re.compile(r"[a-z0-9]+(?:\.[a-z0-9]+)+|[a-z0-9]+(?:_[a-z0-9]+)*")


@pytest.mark.long
def test_each_key_with_an_effect_is_named_in_a_test() -> None:
    """With points, or with underscores as an argument; those of OAUTHBEARER without what all of them begin with."""
    words: set[str] = set()
    for path in (Path(__file__).parents[1]).rglob("*.py"):
        if path.name not in ("config_cases.py", "test_config_effects.py"):
            words.update(found.replace("_", ".") for found in NAMES.findall(path.read_text()))
    named = {f"sasl.oauthbearer.{word}" for word in words} | words
    read = {name for name in read_literally() | read_by_pattern() if without_effect(name) is None}
    assert [name for name in sorted(read - named) if not keys("broker")[name].internal] == []


OF_A_TOPIC = {"broker/replica/appender.py"}  # what this module calls `config` is that of a topic


def test_dynamic_keys_are_read_where_changes_are_seen() -> None:
    """What is read of the static configuration (`config["the.key"]`) does not change while the broker runs."""
    static = set()
    for path, tree in trees("broker", "coordinator").items():
        if path in OF_A_TOPIC or path.startswith("broker/config/"):
            continue
        for node in nodes(tree):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                of = node.value
                name = of.id if isinstance(of, ast.Name) else of.attr if isinstance(of, ast.Attribute) else ""
                if name.strip("_") == "config" and node.slice.value in dynamic_broker_keys():
                    static.add((path, node.slice.value))
    assert static == set()


def test_patterns_match_as_those_of_a_shell() -> None:
    assert [pattern for pattern in WITHOUT_EFFECT if pattern.count("*") > 1 or set(pattern) & set("?[")] == []
    for name in (*keys("broker"), *WITHOUT_EFFECT, "", "sasl", "log.remote.", "socket.buffer.bytes"):
        expected = next((reason for pattern, reason in WITHOUT_EFFECT.items() if fnmatchcase(name, pattern)), None)
        assert without_effect(name) == expected, name


def test_each_pattern_matches_a_key() -> None:
    assert [
        pattern for pattern in WITHOUT_EFFECT if not any(fnmatchcase(name, pattern) for name in keys("broker"))
    ] == []


def test_a_key_of_topics_that_the_code_does_not_read_is_said_to_have_no_effect() -> None:
    read = {*_topic_keys(), *(name for name in keys("topic") if re.fullmatch(r"compression\.\w+\.level", name))}
    assert [name for name in keys("topic") if name not in read and configuration_docs.reason(name) is None] == []


def test_each_pattern_of_topics_and_groups_matches_a_key() -> None:
    known = [*keys("topic"), *keys("group")]
    assert [one for one in configuration_docs.WITHOUT_EFFECT if not any(fnmatchcase(key, one) for key in known)] == []


def test_the_documents_table_is_what_is_computed() -> None:
    assert configuration_docs.PATH.read_text() == configuration_docs.rendered(), (
        "python -m tests.support.configuration_docs"
    )
