"""A JAAS file in place of JAAS lines: ottla and Apache Kafka let in the same users of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support import transcripts
from ..support.differential import Pair
from ..support.secured import MODULES, SecuredKafka, settle

pytestmark = pytest.mark.slow
PLAIN = f"{MODULES}.plain.PlainLoginModule"
FILE = f"""
/* the first section is not for this listener, the second one is, before the third */
SASL_PLAINTEXT.KafkaServer {{ {PLAIN} required user_alice="in-capitals"; }};
sasl_plaintext.KafkaServer {{
    {PLAIN} required user_alice="own" user_bob=b-secret; // of an option that is repeated, the first one counts
    {PLAIN} REQUIRED user_alice="second" user_carol="c${{/}}\\"secret";
}};
KafkaServer {{ {PLAIN} required user_alice="general" user_dan="d-secret"; }};
"""
SETTINGS: dict[str, object] = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "connection.failed.authentication.delay.ms": 0,
}
LOGIN_CONFIG = "java.security.auth.login.config"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("jaas") / "jaas.conf"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def kafka(file: Path) -> Iterator[str]:
    if transcripts.mode() == "recorded":
        yield ""
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", f"-D{LOGIN_CONFIG}={file}")
        with SecuredKafka(SETTINGS) as running:
            yield running.sasl_servers


@pytest.fixture(scope="module")
def ours(file: Path) -> Iterator[Broker]:
    with Broker({**SETTINGS, LOGIN_CONFIG: file}, lab=False) as broker:
        yield broker


@pytest.fixture(scope="module")
def settled(kafka: str) -> None:
    settle(kafka, "PLAIN", b"\0bob\0b-secret")


@pytest.mark.parametrize(
    ("user", "password", "is_let_in"),
    [
        ("alice", "own", True),
        ("alice", "second", False),
        ("alice", "general", False),
        ("alice", "in-capitals", False),
        ("bob", "b-secret", True),
        ("carol", 'c/"secret', True),
        ("dan", "d-secret", False),
    ],
    ids=["first", "second", "general", "in capitals", "a word", "escapes", "of the general section"],
)
def test_users_of_the_file(pair: Pair, user: str, password: str, is_let_in: bool) -> None:
    pair.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
    token = f"\0{user}\0{password}".encode()
    pair.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=token))
    assert pair.errors("SaslAuthenticate") == ({"NONE"} if is_let_in else {"SASL_AUTHENTICATION_FAILED"})
