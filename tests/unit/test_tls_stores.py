"""Keys and certificates from PEM, PKCS#12 and JKS, in files and in the configuration, and Kafka's words for errors."""

from __future__ import annotations

import ssl
import subprocess
from datetime import timedelta
from pathlib import Path

import javaproperties
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from ottla.broker.config.listener_values import ListenerValues
from ottla.broker.peer import SecurityProtocol
from ottla.broker.tls import jks
from ottla.broker.tls.listener import TlsListener
from ottla.broker.tls.stores import StoreError
from ottla.protocol.config_def import keys

from ottla import certs

SSL = SecurityProtocol.SSL


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certs")
    certs.make(made, certs.HOSTS, ["client"], "secret")
    return made


def listener(given: dict[str, str], between_brokers: bool = False) -> TlsListener:
    def general(name: str) -> object:
        key = keys("broker")[name]
        return key.parse(given.get(name, key.default))

    return TlsListener("SSL", SSL, lambda: ListenerValues("SSL", given, general, keys("broker")), between_brokers)


def key_from(folder: Path, kind: str) -> dict[str, str]:
    """The keys of the configuration for one kind of store."""
    if kind == "inline":
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": (folder / "server.key").read_text().replace("\n", " "),
            "ssl.keystore.certificate.chain": (folder / "server.crt").read_text(),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": (folder / "ca.crt").read_text().replace("\n", " "),
        }
    found = {"ssl.keystore.type": kind, "ssl.truststore.type": kind}
    if kind == "PEM":
        return found | {
            "ssl.keystore.location": str(folder / "server.pem"),
            "ssl.truststore.location": str(folder / "ca.crt"),
        }
    ending = {"PKCS12": "p12", "JKS": "jks"}[kind]
    return found | {
        "ssl.keystore.location": str(folder / f"server.{ending}"),
        "ssl.keystore.password": "secret",
        "ssl.truststore.location": str(folder / f"truststore.{ending}"),
        "ssl.truststore.password": "secret",
    }


def shake(
    server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost"
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """A whole handshake in memory."""
    ends = ssl.MemoryBIO(), ssl.MemoryBIO()
    hands = client.wrap_bio(ends[0], ends[1], server_hostname=host), server.wrap_bio(ends[1], ends[0], server_side=True)
    for _ in range(3):
        for hand in hands:
            try:
                hand.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return hands


def client_of(folder: Path, name: str | None = "client") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    if name is not None:
        context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    return context


@pytest.mark.parametrize("kind", ["PEM", "inline", "PKCS12", "JKS"])
def test_every_kind_of_store_makes_a_listener(folder: Path, kind: str) -> None:
    made = listener({**key_from(folder, kind), "ssl.client.auth": "required"}, between_brokers=True)
    client, server = shake(made.context, client_of(folder))
    assert client.version() == "TLSv1.3"
    assert made.principal(server.getpeercert(True)) == "User:CN=client"


def issued(tmp_path: Path, bits: int, digest: str) -> dict[str, str]:
    """The keys of a listener whose certificate a private authority has issued. OpenSSL's command still signs with
    digests that libraries refuse.
    """

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=tmp_path, check=True, capture_output=True, timeout=60)

    new = ("req", "-newkey", f"rsa:{bits}", "-nodes", "-keyout", "own.key", "-subj", "/CN=server", "-out", "own.csr")
    root = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-subj", "/CN=ca", "-out", "ca.crt")
    openssl(*root)
    openssl(*new)
    signs = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", f"-{digest}", "-days", "2", "-out", "own.crt")
    openssl("x509", "-req", "-in", "own.csr", *signs)
    (tmp_path / "own.pem").write_text("".join((tmp_path / one).read_text() for one in ("own.key", "own.crt", "ca.crt")))
    types = {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"}
    files = {"ssl.keystore.location": "own.pem", "ssl.truststore.location": "ca.crt"}
    return types | {key: str(tmp_path / name) for key, name in files.items()}


@pytest.mark.long
@pytest.mark.parametrize("between_brokers", [False, True])
@pytest.mark.parametrize(("bits", "digest"), [(1024, "sha256"), (2048, "sha1")])
def test_old_certificates_that_java_takes_are_taken(
    tmp_path: Path, bits: int, digest: str, between_brokers: bool
) -> None:
    """kafkajs tests with a certificate of 2018 that is signed with SHA-1."""
    made = listener(issued(tmp_path, bits, digest), between_brokers)
    client = ssl.create_default_context()
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    assert shake(made.context, client)[0].version() == "TLSv1.3"
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shake(made.context, client)[0].version() == "TLSv1.2"


@pytest.mark.long
def test_a_certificate_signed_with_md5_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="a certificate is signed with MD5"):
        listener(issued(tmp_path, 2048, "md5"))


def test_java_reads_jks_and_pkcs12_by_either_name(folder: Path) -> None:
    as_jks, as_p12 = key_from(folder, "JKS"), key_from(folder, "PKCS12")
    listener({**as_jks, "ssl.keystore.type": "pkcs12", "ssl.truststore.type": "PKCS12"})
    listener({**as_p12, "ssl.keystore.type": "jks", "ssl.truststore.type": "JKS"})


def test_a_client_of_another_authority_is_refused(folder: Path, tmp_path: Path) -> None:
    certs.make(tmp_path, certs.HOSTS, ["client"], "secret")
    made = listener({**key_from(folder, "PEM"), "ssl.client.auth": "requested"})
    stranger = client_of(folder, None)
    shake(made.context, stranger)  # a certificate is asked for and not needed
    stranger.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(made.context, stranger)


@pytest.mark.parametrize(
    ("given", "version", "suite"),
    [
        ({"ssl.enabled.protocols": "TLSv1.2"}, "TLSv1.2", None),
        ({"ssl.enabled.protocols": "TLSv1.1,TLSv1.3"}, "TLSv1.3", None),
        (
            {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
            "TLSv1.2",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
        ),
        (
            {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"},
            "TLSv1.2",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        ),
        ({"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}, "TLSv1.3", None),
    ],
)
def test_versions_and_suites_are_those_of_the_configuration(
    folder: Path, given: dict[str, str], version: str, suite: str | None
) -> None:
    client, _ = shake(listener({**key_from(folder, "PEM"), **given}).context, client_of(folder))
    cipher = client.cipher()
    assert cipher is not None
    assert client.version() == version
    assert suite in (None, cipher[0])


@pytest.mark.parametrize(
    ("kind", "changes", "key", "words"),
    [
        ("PEM", {"ssl.keystore.password": "x"}, "ssl.keystore.location", "cannot be specified with PEM format"),
        ("PEM", {"ssl.keystore.type": "JKS"}, "ssl.keystore.location", "key store password is not specified"),
        ("PEM", {"ssl.keystore.location": "/nowhere"}, "ssl.keystore.location", "No such file or directory"),
        ("PEM", {"ssl.truststore.password": "x"}, "ssl.truststore.location", "cannot be specified for PEM format"),
        ("inline", {"ssl.keystore.key": "no key"}, "ssl.keystore.key", "No matching PRIVATE KEY entries"),
        ("inline", {"ssl.keystore.certificate.chain": "x"}, "ssl.keystore.key", "No matching CERTIFICATE entries"),
        ("inline", {"ssl.keystore.location": "/x"}, "ssl.keystore.key", "Both SSL key store location and separate"),
        ("inline", {"ssl.keystore.type": "JKS"}, "ssl.keystore.key", "can be specified only for PEM"),
        ("JKS", {"ssl.keystore.password": "wrong"}, "ssl.keystore.location", "password was incorrect"),
        ("JKS", {"ssl.key.password": "wrong"}, "ssl.keystore.location", "Cannot recover key"),
        ("JKS", {"ssl.truststore.password": "wrong"}, "ssl.truststore.location", "password was incorrect"),
        ("PKCS12", {"ssl.keystore.password": "wrong"}, "ssl.keystore.location", "Failed to load SSL keystore"),
        ("PKCS12", {"ssl.keystore.type": "BKS"}, "ssl.keystore.location", "ottla reads PEM, PKCS12 and JKS"),
        ("PEM", {"ssl.cipher.suites": "TLS_NONSENSE"}, "ssl.cipher.suites", "Unsupported CipherSuite: TLS_NONSENSE"),
        ("PEM", {"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols", "No appropriate protocol"),
        ("PEM", {"ssl.enabled.protocols": "TLSv9"}, "ssl.enabled.protocols", "Unsupported protocol: TLSv9"),
        ("PEM", {"ssl.protocol": "x"}, "ssl.protocol", "x SSLContext not available"),
        ("PEM", {"ssl.principal.mapping.rules": "x"}, "ssl.principal.mapping.rules", "Invalid rule: `x`"),
        ("PEM", {"ssl.engine.factory.class": "a.B"}, "ssl.engine.factory.class", "cannot load Java classes"),
    ],
)
def test_what_cannot_be_used_is_named(folder: Path, kind: str, changes: dict[str, str], key: str, words: str) -> None:
    with pytest.raises(StoreError) as refusal:
        listener({**key_from(folder, kind), **changes})
    assert (refusal.value.key, words in str(refusal.value)) == (key, True), str(refusal.value)
    assert "wrong" not in str(refusal.value)


def test_between_brokers_a_certificate_must_be_trusted_by_its_own_listener(folder: Path, tmp_path: Path) -> None:
    certs.make(tmp_path, certs.HOSTS, [], "secret")
    given = {**key_from(folder, "PEM"), "ssl.truststore.location": str(tmp_path / "ca.crt")}
    listener(given)
    with pytest.raises(StoreError, match="can't connect to a server SSLEngine"):
        listener(given, between_brokers=True)


def test_files_and_values_that_change_make_a_new_context(folder: Path, tmp_path: Path) -> None:
    given = key_from(folder, "PEM")
    path = tmp_path / "server.pem"
    path.write_bytes((folder / "server.pem").read_bytes())
    given["ssl.keystore.location"] = str(path)
    made = listener(given)
    assert made.changed() is None
    before = made.context
    path.write_bytes(b"no key any more")
    renew = made.changed()
    assert renew is not None
    with pytest.raises(StoreError, match="No matching PRIVATE KEY"):
        renew()
    assert (made.context, made.changed()) == (before, None)
    given["ssl.keystore.location"] = str(folder / "server.pem")
    renew = made.changed()
    assert renew is not None
    renew()
    assert made.context is not before


def test_a_key_of_another_name_is_refused_while_the_broker_runs(folder: Path, tmp_path: Path) -> None:
    certs.make(tmp_path / "other", ["other"], [], "secret")
    certs.make(tmp_path / "fewer", ["localhost"], [], "secret")

    def values(path: Path, **changes: str) -> ListenerValues:
        given = {**key_from(folder, "PEM"), "ssl.keystore.location": str(path), **changes}
        return ListenerValues("SSL", given, lambda name: keys("broker")[name].parse(given.get(name)), keys("broker"))

    made = listener(key_from(folder, "PEM"))
    made.check(values(folder / "server.pem"))
    with pytest.raises(StoreError, match=r"DistinguishedName does not match: .*CN=localhost.*CN=other"):
        made.check(values(tmp_path / "other" / "server.pem"))
    with pytest.raises(StoreError, match="SubjectAltNames do not match"):
        made.check(values(tmp_path / "fewer" / "server.pem"))
    free = listener({**key_from(folder, "PEM"), "ssl.allow.dn.changes": "true", "ssl.allow.san.changes": "true"})
    free.check(values(tmp_path / "other" / "server.pem"))


def test_a_damaged_store_is_an_error_and_nothing_else(folder: Path) -> None:
    whole = (folder / "server.jks").read_bytes()
    for cut in range(0, len(whole), 7):
        with pytest.raises(jks.JksError):
            jks.load(whole[:cut], "secret")
    for at in range(len(whole) - 20):  # without a password nothing notices that bytes are others
        try:
            found = jks.load(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :], None)
            for key, _ in found.keys.values():
                jks.unprotected(key, "secret")
        except jks.JksError:
            continue


def test_files_of_certificates_are_private_and_an_authority_is_used_again(tmp_path: Path) -> None:
    certs.make(tmp_path, ["h"], ["a"], "secret")
    authority = (tmp_path / "ca.crt").read_bytes()
    certs.make(tmp_path, ["h"], ["b"], "secret")
    assert (tmp_path / "ca.crt").read_bytes() == authority
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert len({(tmp_path / f"{name}.crt").exists() for name in "ab"}) == 1
    for name in ("../x", "server", "", "a/b"):
        with pytest.raises(ValueError, match="cannot be the name"):
            certs.make(tmp_path, ["h"], [name], "secret")


def test_certificates_are_valid_as_long_as_was_asked(tmp_path: Path) -> None:
    certs.make(tmp_path, ["h"], [], "secret", days=3650)
    ca, server = (x509.load_pem_x509_certificate((tmp_path / f"{name}.crt").read_bytes()) for name in ("ca", "server"))
    assert server.not_valid_after_utc - ca.not_valid_before_utc > timedelta(days=3649)
    assert ca.not_valid_after_utc > server.not_valid_after_utc - timedelta(days=1)


def test_an_authority_whose_key_is_encrypted_is_refused_and_stays(tmp_path: Path) -> None:
    certs.make(tmp_path, ["h"], [], "secret")
    key = certs.authority_of(tmp_path).key
    theirs = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"theirs"))
    (tmp_path / "ca.key").write_bytes(theirs)
    with pytest.raises(ValueError, match="is not a key that ottla certs made"):
        certs.make(tmp_path, ["h"], [], "secret")
    assert (tmp_path / "ca.key").read_bytes() == theirs


def test_java_reads_the_password_that_was_given(tmp_path: Path) -> None:
    password = r"a\b\u0041 ö"
    printed = certs.described(tmp_path, "client", password)
    java = next(part for part in printed.split("\n\n") if part.startswith("# Java"))
    assert javaproperties.loads(java)["ssl.key.password"] == password
