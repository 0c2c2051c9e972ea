"""Keys of tokens come from a URL of https: whom the broker trusts there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ottla.broker.security.jwks_endpoint import read_url, tls_context

from ..support.oauth import jwk, served, signing_key
from ..support.tls import PASSWORD, make_certificates

JWKS = json.dumps({"keys": [jwk(signing_key(), kid="one")]}).encode()
PEM = {"ssl.truststore.type": "PEM"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certs"))


def options(folder: Path, what: str) -> dict[str, str]:
    """Options of a JAAS line. What Kafka makes of each was asked."""
    good = folder / "good"
    location, password = "ssl.truststore.location", {"ssl.truststore.password": PASSWORD}
    text = (good / "ca.crt").read_text().replace("\n", " ")
    return {
        "PEM": {**PEM, location: f"{good}/ca.crt"},
        "PKCS12": {"ssl.truststore.type": "PKCS12", location: f"{good}/truststore.p12", **password},
        "JKS": {location: f"{good}/truststore.jks", **password},
        "text": {**PEM, "ssl.truststore.certificates": text},
        "version": {**PEM, location: f"{good}/ca.crt", "ssl.enabled.protocols": "TLSv1.2", "unknown": "x"},
        "system": {},
        "other": {**PEM, location: f"{folder}/other/ca.crt"},
        "no identification": {**PEM, location: f"{good}/ca.crt", "ssl.endpoint.identification.algorithm": ""},
        "password": {
            "ssl.truststore.type": "PKCS12",
            location: f"{good}/truststore.p12",
            "ssl.truststore.password": "wrong",
        },
        "missing": {location: "/nowhere", **password},
    }[what]


@pytest.mark.parametrize("what", ["PEM", "PKCS12", "JKS", "text", "version"])
def test_the_authority_is_trusted(folder: Path, what: str) -> None:
    with served(JWKS, folder / "good" / "server.pem") as url:
        assert read_url(url, tls_context(options(folder, what))) == JWKS


@pytest.mark.parametrize(
    ("certificate", "what", "words"),
    [
        ("server", "system", "certificate verify failed"),
        ("server", "other", "certificate verify failed"),
        ("expired", "PEM", "certificate has expired"),
        ("elsewhere", "PEM", "certificate is not valid for 'localhost'"),
        ("elsewhere", "no identification", "certificate is not valid for 'localhost'"),
        ("server", "password", "Failed to load SSL keystore .*truststore.p12 of type PKCS12"),
        ("server", "missing", "Failed to load SSL keystore /nowhere of type JKS"),
    ],
)
def test_it_is_not(folder: Path, certificate: str, what: str, words: str) -> None:
    with served(JWKS, folder / "good" / f"{certificate}.pem") as url, pytest.raises(ValueError, match=words):
        read_url(url, tls_context(options(folder, what)))


def test_a_redirection_keeps_to_https(folder: Path) -> None:
    """Java follows one within https, and takes one to http for an error."""
    trust, certificate = tls_context(options(folder, "PEM")), folder / "good" / "server.pem"
    with served(JWKS, certificate, moved="/new") as url:
        assert read_url(url, trust) == JWKS
    with (
        served(JWKS, certificate, moved="http://localhost:1/new") as url,
        pytest.raises(ValueError, match="HTTP Error 302"),
    ):
        read_url(url, trust)
