"""GSSAPI without Kerberos: Kafka's rules for principals, and the exchange with a context that only counts."""

from __future__ import annotations

import sys

import pytest
from ottla.broker.config.config import ConfigError
from ottla.broker.security.kerberos import GssExchange
from ottla.coordinator.security.kerberos import KerberosName, KerberosShortNamer
from ottla.coordinator.security.sasl import SaslFailed
from ottla.protocol.errors import MalformedMessage

from ..oracle.kerberos_cases import Case, cases, recorded
from ..support.world import World

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
JAAS = "listener.name.auth.gssapi.sasl.jaas.config"
SETTINGS = {
    "listeners": "AUTH://127.0.0.1:9092",
    "listener.security.protocol.map": "AUTH:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "GSSAPI",
    "sasl.kerberos.service.name": "kafka",
    JAAS: f'{MODULE} required useKeyTab=true storeKey=true keyTab="/none" principal="kafka/localhost@REALM";',
}


def user(case: Case) -> dict[str, str]:
    try:
        namer = KerberosShortNamer(case["realm"], case["rules"])
        return {"is": namer.short_name(KerberosName.parse(case["name"]))}
    except ValueError as error:
        return {"error": str(error)}


def test_rules_find_kafkas_users() -> None:
    """Errors have Kafka's words, except for regular expressions that Java does not compile."""
    different = []
    for case, answer in zip(cases(), recorded(), strict=True):
        found = user(case)
        is_of_expression = "error" in found and "the regular expression" in found["error"]
        if found != answer and not (is_of_expression and "error" in answer):
            different.append((case, found, answer))
    assert different == []


class Context:
    """A context that is established by the token `established`; wrapped messages begin with `w:`."""

    def __init__(self, answer: bytes | None = b"answer", peer: str = "alice@REALM") -> None:
        self.peer: str | None = None
        self._answer = answer
        self._peer = peer

    def accept(self, token: bytes) -> bytes | None:
        if token == b"wrong":
            raise SaslFailed(reason="wrong")
        if token != b"established":
            return b"more"
        self.peer = self._peer
        return self._answer

    def wrap(self, message: bytes) -> bytes:
        return b"w:" + message

    def unwrap(self, token: bytes) -> bytes:
        if not token.startswith(b"w:"):
            raise SaslFailed(reason="no checksum")
        return token[2:]


USERS = KerberosShortNamer("REALM", ["DEFAULT"])
OFFER = b"w:\x01\x01\x00\x00"
CHOICE = b"w:\x01\x00\x00\x00"


def exchange(context: Context) -> GssExchange:
    return GssExchange(lambda: context, USERS)


def test_the_steps_of_an_exchange() -> None:
    steps = exchange(Context())
    tokens = (b"begin", b"established", b"", CHOICE + b"mallory")
    assert [steps.step(token) for token in tokens[:3]] == [b"more", b"answer", OFFER]
    assert steps.user is None
    assert steps.step(tokens[3]) is None
    assert steps.user == "alice"  # the name that the client wants does not count


def test_without_an_answer_the_offer_comes_at_once() -> None:
    steps = exchange(Context(answer=None))
    assert [steps.step(token) for token in (b"established", CHOICE)] == [OFFER, None]
    assert steps.user == "alice"


@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        ((b"",), "the client has sent no token"),
        ((b"wrong",), "wrong"),
        ((b"established", b"x"), "Handshake expecting no response data from server"),
        ((b"established", b"", b"\x01\0\0\0"), "no checksum"),
        ((b"established", b"", b"w:\x04\0\0\0"), "Client selected unsupported protection: 4"),
    ],
)
def test_failures_are_reported_as_invalid_credentials(tokens: tuple[bytes, ...], reason: str) -> None:
    steps = exchange(Context())
    for token in tokens[:-1]:
        steps.step(token)
    with pytest.raises(SaslFailed) as failed:
        steps.step(tokens[-1])
    assert (failed.value.words, failed.value.reason, steps.user) == (None, reason, None)


@pytest.mark.parametrize("last", [b"w:", b"w:\x01\0\0"])
def test_a_choice_that_is_too_short_closes_the_connection(last: bytes) -> None:
    steps = exchange(Context(answer=None))
    steps.step(b"established")
    with pytest.raises(MalformedMessage):
        steps.step(last)


def test_a_principal_without_a_user_closes_the_connection() -> None:
    steps = exchange(Context(answer=None, peer="alice@OTHER"))
    steps.step(b"established")
    with pytest.raises(MalformedMessage, match="No rules apply to alice@OTHER"):
        steps.step(CHOICE)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "pip install 'ottla\\[gssapi\\]'"),
        ({JAAS: f"{MODULE} required;"}, "useKeyTab=true is missing"),
        ({JAAS: f"{MODULE} required useKeyTab=true;"}, "storeKey=true is missing"),
        ({JAAS: f"{MODULE} required useKeyTab=true storeKey=true;"}, "principal is missing"),
        ({"sasl.kerberos.service.name": ""}, "No serviceName defined in either JAAS or Kafka config"),
        (
            {JAAS: SETTINGS[JAAS].replace(";", " serviceName=other;")},
            "Conflicting serviceName values found in JAAS and Kafka configs",
        ),
    ],
)
def test_a_wrong_configuration_is_refused(
    settings: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)  # it is not installed
    given = {name: value for name, value in (SETTINGS | settings).items() if value}
    with pytest.raises(ConfigError, match=words):
        World(**given)


def test_without_a_keytab_the_default_mechanism_is_refused() -> None:
    given = {name: value for name, value in SETTINGS.items() if name not in (JAAS, "sasl.enabled.mechanisms")}
    with pytest.raises(ConfigError, match="GSSAPI needs a keytab"):
        World(**given)
