"""Stores that Java's keytool makes are read, and the recorded principals are what Java and Kafka say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ottla.broker.tls.names import subject
from ottla.broker.tls.stores import key_store, trusted

from .principal_cases import ask, cases, recorded

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
VALUES = (
    *("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password", "ssl.keystore.location"),
    *("ssl.keystore.password", "ssl.keystore.type", "ssl.truststore.type", "ssl.truststore.location"),
    *("ssl.truststore.password", "ssl.truststore.certificates"),
)


def keytool(*arguments: str | Path) -> None:
    command = ["keytool", *map(str, arguments), "-storepass", "changeit", "-noprompt"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
@pytest.mark.parametrize("algorithm", ["RSA", "EC"])
def test_stores_of_keytool_are_read(kind: str, algorithm: str, tmp_path: Path) -> None:
    keys, trust, certificate = tmp_path / "keys", tmp_path / "trust", tmp_path / "certificate"
    name = "CN=Ünïcode\\, Inc.,OU=a b"
    made: list[str | Path] = ["-genkeypair", "-alias", "own", "-keyalg", algorithm, "-dname", name]
    other_key = ["-keypass", "another"] if kind == "JKS" else []
    keytool(*made, "-keystore", keys, "-storetype", kind, *other_key)
    keytool("-exportcert", "-alias", "own", "-keystore", keys, "-file", certificate)
    keytool("-importcert", "-alias", "ca", "-keystore", trust, "-storetype", kind, "-file", certificate)
    values: dict[str, str | None] = dict.fromkeys(VALUES) | {
        "ssl.keystore.type": kind,
        "ssl.keystore.location": str(keys),
        "ssl.keystore.password": "changeit",
        "ssl.key.password": other_key[1] if other_key else None,
        "ssl.truststore.type": kind,
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": "changeit",
    }
    store, certificates = key_store(values), trusted(values)
    assert store is not None
    assert store.identity[0] == name
    assert certificates is not None
    assert [subject(one) for one in certificates] == [name]
    assert store.key.public_key() == store.chain[0].public_key()


def test_recorded_principals_are_javas_and_kafkas() -> None:
    assert ask(cases()) == recorded()
