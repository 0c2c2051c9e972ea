"""JAAS files: what Java makes of them (recorded from Java 17's ConfigFile), and which section a listener uses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ottla.broker.broker import Broker
from ottla.broker.clock import VirtualSchedule
from ottla.broker.config import sources as configuration
from ottla.broker.config.config import LOGIN_CONFIG, ConfigError
from ottla.broker.config.jaas import JaasEntry
from ottla.broker.config.jaas_file import entry_of, parse_jaas_file

from ..support.memory_files import MemFiles
from ..support.sasl_world import SETTINGS as LISTENERS

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
Read = dict[str, list[tuple[str, dict[str, str]]]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('KafkaServer { a.B required user_x="y"; };', {"KafkaServer": [("a.B", {"user_x": "y"})]}),
        (
            'KafkaServer { a.B Required x="1" y=true; c.D optional; };',
            {"KafkaServer": [("a.B", {"x": "1", "y": "true"}), ("c.D", {})]},
        ),
        ("KafkaServer { }; ", {}),
        ("", {}),
        ("12 { a.B required; };", {}),
        ('KafkaServer { a.B required k="${/}x${/}${{/}}${/"; };', {"KafkaServer": [("a.B", {"k": "/x/${{/}}${/"})]}),
        ("KafkaServer { a.B required k=v*w-$_; };", {"KafkaServer": [("a.B", {"k": "v*w-$_"})]}),
        ('"KafkaServer" { "a.B" "required" "k"="v"; };', {"KafkaServer": [("a.B", {"k": "v"})]}),
        (r'KafkaServer { a.B required k = "a\"b\n\101"; };', {"KafkaServer": [("a.B", {"k": 'a"b\nA'})]}),
        ('KafkaServer { a.B required k="v" k="w"; };', {"KafkaServer": [("a.B", {"k": "w"})]}),
        ("KafkaServer { a.B required k=é; };", {"KafkaServer": [("a.B", {"k": "é"})]}),
        ("* { a.B required; };", {"*": [("a.B", {})]}),
        ('KafkaServer { a.B required k=""; };', {"KafkaServer": [("a.B", {"k": ""})]}),
        (
            "KafkaServer{a.B required;};other{c.D requisite;};",
            {"KafkaServer": [("a.B", {})], "other": [("c.D", {})]},
        ),
        ('other { c.D requisite user_a="b\n; };', {"other": [("c.D", {"user_a": "b"})]}),
        ("/* x\n */ a { b.C sufficient; // y\n };", {"a": [("b.C", {})]}),
    ],
)
def test_what_java_reads(text: str, expected: Read) -> None:
    found = {name: [(one.module, one.options) for one in entries] for name, entries in parse_jaas_file(text).items()}
    assert found == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("KafkaServer { a.B REQUIRED user_x='y'; };", "Line 1: expected [option value]"),
        ("KafkaServer { a.B required x=1; };", "Line 1: expected [option value]"),
        ("KafkaServer { a.B required };", "Line 1: expected [option key]"),
        ("KafkaServer { a.B required; }", "expected [;], read [end of file]"),
        ("KafkaServer { a.B nope; };", "Invalid control flag, NOPE"),
        (
            "KafkaServer { a.B required; }; KafkaServer { c.D required; };",
            "Can not specify multiple entries for KafkaServer",
        ),
        ('// comment\nKafkaServer { a.B required // x\n k="v" ; }; # no', "Line 3: expected [{]"),
        ('KafkaServer { a.B required k="${no.prop}"; };', "unable to expand property no.prop"),
        ("KafkaServer a.B required; };", "Line 1: expected [{]"),
        ("KafkaServer { a.B required k; };", "Line 1: expected [=]"),
        ("KafkaServer { a.B required =v; };", "Line 1: expected [option key]"),
        ("KafkaServer { ; };", "Line 1: expected [module class name]"),
        ('KafkaServer { a.B required k="unclosed ; };', "expected [option key], read [end of file]"),
        ("KafkaServer { a.B required k=/etc/x; };", "expected [option value], read [end of file]"),
        ("KafkaServer { a.B required; }; };", "Line 1: expected [{]"),
        ("{ a.B required; };", "Line 1: expected [{]"),
    ],
)
def test_what_java_refuses(text: str, words: str) -> None:
    """In Java's words, of which what was found is left out, because it may be a secret."""
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        parse_jaas_file(text)


def test_of_modules_that_are_repeated_the_first_option_counts() -> None:
    entries = [JaasEntry("a", {"x": "1"}), JaasEntry("b", {"y": "2"}), JaasEntry("a", {"x": "3", "z": "4"})]
    assert entry_of(entries, "a") == JaasEntry("a", {"x": "1", "z": "4"})
    assert entry_of(entries, "c") is None


def passwords(folder: Path, text: str, **more: str) -> dict[str, bytes]:
    """The passwords of PLAIN on the listener AUTH."""
    path = folder / "jaas.conf"
    path.write_text(text)
    environment = {"KAFKA_OPTS": f"-Xmx1G -D{LOGIN_CONFIG}={path}"}
    pairs = {**LISTENERS, "log.dirs": "/data", "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256", **more}
    given = [f"{name}={value}" for name, value in pairs.items()]
    config = configuration.build(configuration.from_environment(environment), configuration.from_arguments(given))
    broker = Broker(config, VirtualSchedule(), MemFiles(), lambda: bytes(16))
    found: dict[str, bytes] = broker.sasl["AUTH"].mechanisms["PLAIN"]._passwords  # type: ignore[attr-defined]
    return found


GENERAL = f'KafkaServer {{ {SCRAM} required; {PLAIN} required user_alice="general"; }};'
OWN = f'auth.KafkaServer {{ {PLAIN} required user_alice="own"; }};'


def test_a_listener_uses_its_line_then_its_section_then_the_general_one(tmp_path: Path) -> None:
    line = {"listener.name.auth.plain.sasl.jaas.config": f'{PLAIN} required user_alice="line";'}
    assert passwords(tmp_path, GENERAL) == {"alice": b"general"}
    assert passwords(tmp_path, GENERAL + OWN) == {"alice": b"own"}
    assert passwords(tmp_path, GENERAL + OWN, **line) == {"alice": b"line"}
    users = {"ottla.users": "bob:bob"}
    assert passwords(tmp_path, GENERAL, **users) == {"alice": b"general", "bob": b"bob"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Could not find a 'KafkaServer' or 'auth.KafkaServer' entry in the JAAS configuration"),
        ("AUTH.KafkaServer { a.B required; };", "Could not find a 'KafkaServer' or 'auth.KafkaServer' entry"),
        ("KafkaServer { a.B required k=secret };", "jaas.conf: Configuration Error: Line 1: expected [option key]"),
    ],
)
def test_a_file_that_cannot_be_used_ends_the_start(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        passwords(tmp_path, text)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "$KAFKA_OPTS" in str(caught.value)


def test_a_file_that_no_listener_needs_is_not_read(tmp_path: Path) -> None:
    line = {"listener.name.auth.plain.sasl.jaas.config": f'{PLAIN} required user_alice="line";'}
    only_plain = {"sasl.enabled.mechanisms": "PLAIN"}
    assert passwords(tmp_path, "KafkaServer { wrong", **line, **only_plain) == {"alice": b"line"}


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read /no/such/file: No such file"):
        passwords(tmp_path, "", **{LOGIN_CONFIG: "file:/no/such/file"})


def test_an_error_of_a_mechanism_names_the_mechanism_and_not_its_jaas_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        passwords(tmp_path, f"KafkaServer {{ {SCRAM} required; }};")
    assert str(caught.value).startswith("$KAFKA_OPTS: PLAIN on the listener AUTH: PLAIN has no users")


def test_an_error_does_not_repeat_its_key() -> None:
    assert str(ConfigError("a.key", "a.key: it is wrong")) == "a.key: it is wrong"
    assert str(ConfigError("server.properties, line 1", "a.key: it is wrong")) == (
        "server.properties, line 1: a.key: it is wrong"
    )
