"""`ottla certs`: a certificate authority, certificates of a server and of clients, and what clients write to use them.

For development and tests: the authority's key lies beside the certificates, and one password protects every store.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from .broker.tls import jks
from .java_properties import escaped

HOSTS = ("localhost", "127.0.0.1", "::1")
DAYS = 825  # the longest time that all clients accept
TAKEN = ("ca", "server", "truststore")
_AN_HOUR = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Issued:
    """A private key, and its certificate with those of its issuers."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    issuers: tuple[x509.Certificate, ...] = ()

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @property
    def chain(self) -> tuple[x509.Certificate, ...]:
        return (self.certificate, *self.issuers)

    @property
    def chain_pem(self) -> bytes:
        return b"".join(one.public_bytes(Encoding.PEM) for one in self.chain)

    def p12(self, name: str, password: str) -> bytes:
        return pkcs12.serialize_key_and_certificates(
            name.encode(), self.key, self.certificate, self.issuers, BestAvailableEncryption(password.encode())
        )

    def jks(self, name: str, password: str) -> bytes:
        key = self.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        return jks.dump(password, {name: (key, [one.public_bytes(Encoding.DER) for one in self.chain])})


def authority(name: str = "ottla development CA", days: int = DAYS) -> Issued:
    """Makes a certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    built = _builder(name, key.public_key(), _now(), days).issuer_name(_name(name))
    built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    built = built.add_extension(_usage(signs_certificates=True), critical=True)
    return Issued(key, built.sign(key, hashes.SHA256()))


def issue(
    ca: Issued,
    name: str,
    hosts: Iterable[str] = (),
    *,
    begin: datetime.datetime | None = None,
    days: int = DAYS,
    unit: str | None = None,
) -> Issued:
    """Makes a key and a certificate, of a server if `hosts` are given, else of a client. `unit`: its OU."""
    key = ec.generate_private_key(ec.SECP256R1())
    hosts = tuple(hosts)
    built = _builder(name, key.public_key(), begin or _now(), days, unit).issuer_name(ca.certificate.subject)
    built = built.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    built = built.add_extension(_usage(signs_certificates=False), critical=True)
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH] if hosts else []  # brokers are clients of one another
    built = built.add_extension(x509.ExtendedKeyUsage([*purposes, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    if hosts:
        built = built.add_extension(x509.SubjectAlternativeName([_general_name(one) for one in hosts]), critical=False)
    authority_key = ca.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    built = built.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority_key), critical=False
    )
    return Issued(key, built.sign(ca.key, hashes.SHA256()), ca.chain)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _name(name: str, unit: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit)] if unit else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    name: str, key: ec.EllipticCurvePublicKey, begin: datetime.datetime, days: int, unit: str | None = None
) -> x509.CertificateBuilder:
    built = x509.CertificateBuilder().subject_name(_name(name, unit)).public_key(key)
    built = built.serial_number(x509.random_serial_number())
    built = built.not_valid_before(begin - _AN_HOUR).not_valid_after(begin + datetime.timedelta(days=days))
    return built.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


# files


def write(path: Path, data: bytes) -> None:
    """Writes a file that only its owner may read."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def write_stores(folder: Path, name: str, issued: Issued, password: str) -> None:
    """Writes a key with its certificates in each form: `NAME.pem`, and the two parts of it, `NAME.p12`, `NAME.jks`."""
    write(folder / f"{name}.key", issued.key_pem)
    write(folder / f"{name}.crt", issued.chain_pem)
    write(folder / f"{name}.pem", issued.key_pem + issued.chain_pem)
    write(folder / f"{name}.p12", issued.p12(name, password))
    write(folder / f"{name}.jks", issued.jks(name, password))


def write_trust(folder: Path, certificate: x509.Certificate, password: str) -> None:
    """Writes what trusts an authority in each form: `ca.crt`, `truststore.p12` and `truststore.jks`."""
    write(folder / "ca.crt", certificate.public_bytes(Encoding.PEM))
    entry = pkcs12.PKCS12Certificate(certificate, b"ca")
    trust = pkcs12.serialize_java_truststore([entry], BestAvailableEncryption(password.encode()))
    write(folder / "truststore.p12", trust)
    write(folder / "truststore.jks", jks.dump(password, certificates={"ca": certificate.public_bytes(Encoding.DER)}))


def authority_of(folder: Path) -> Issued:
    """Reads the authority of a folder. Raises OSError, or ValueError for one that was not made here."""
    try:
        key = load_pem_private_key((folder / "ca.key").read_bytes(), None)
    except TypeError as error:  # it is encrypted
        raise ValueError(f"{folder / 'ca.key'} is not a key that ottla certs made: {error}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{folder / 'ca.key'} is not a key that ottla certs made")
    return Issued(key, x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes()))


def make(folder: Path, hosts: Sequence[str], clients: Sequence[str], password: str, days: int = DAYS) -> None:
    """Writes certificates of a server and of clients into a folder. An authority that is there issues them, so that
    clients can be added later. Raises OSError, or ValueError for names that no certificate can have.
    """
    for name in clients:
        if name in ("", ".", "..", *TAKEN) or Path(name).name != name:
            raise ValueError(f"{name!r} cannot be the name of a client's files")
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "ca.key").exists():
        ca = authority_of(folder)
    else:
        ca = authority(days=max(days, DAYS))  # what it issues is valid no longer than it
        write(folder / "ca.key", ca.key_pem)
    write_trust(folder, ca.certificate, password)
    write_stores(folder, "server", issue(ca, hosts[0], hosts, days=days), password)
    for name in clients:
        write_stores(folder, name, issue(ca, name, days=days), password)


# what to write where

_SERVER = """\
# the broker: server.properties, or the same lines as arguments of `ottla serve`
listeners=SSL://127.0.0.1:9093
inter.broker.listener.name=SSL
ssl.keystore.type=PEM
ssl.keystore.location={folder}/server.pem
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.crt
ssl.client.auth=required
"""
_JAVA = """\
# Java, and Kafka's tools with --command-config
security.protocol=SSL
ssl.truststore.type=PKCS12
ssl.truststore.location={folder}/truststore.p12
ssl.truststore.password={password}
ssl.keystore.type=PKCS12
ssl.keystore.location={folder}/{client}.p12
ssl.keystore.password={password}
ssl.key.password={password}
"""
_LIBRDKAFKA = """\
# librdkafka: kcat -F FILE, confluent-kafka, and clients of other languages on it
security.protocol=ssl
ssl.ca.location={folder}/ca.crt
ssl.certificate.location={folder}/{client}.crt
ssl.key.location={folder}/{client}.key
"""
_PYTHON = """\
# Python
import ssl
context = ssl.create_default_context(cafile="{folder}/ca.crt")
context.load_cert_chain("{folder}/{client}.crt", "{folder}/{client}.key")
kafka.KafkaProducer(bootstrap_servers="localhost:9093", security_protocol="SSL", ssl_context=context)
aiokafka.AIOKafkaProducer(bootstrap_servers="localhost:9093", security_protocol="SSL", ssl_context=context)
"""
_GO = """\
// Go
authority, _ := os.ReadFile("{folder}/ca.crt")
pool := x509.NewCertPool()
pool.AppendCertsFromPEM(authority)
pair, _ := tls.LoadX509KeyPair("{folder}/{client}.crt", "{folder}/{client}.key")
config := &tls.Config{{RootCAs: pool, Certificates: []tls.Certificate{{pair}}}}
kgo.NewClient(kgo.SeedBrokers("localhost:9093"), kgo.DialTLSConfig(config)) // franz-go
sarama.Net.TLS.Enable, sarama.Net.TLS.Config = true, config                 // sarama.NewConfig()
"""


def described(folder: Path, client: str, password: str) -> str:
    """Returns what the broker and clients of each kind write to use a folder's certificates."""
    place = str(folder.absolute())
    java = _JAVA.format(folder=escaped(place), client=escaped(client), password=escaped(password))
    others = (one.format(folder=place, client=client) for one in (_LIBRDKAFKA, _PYTHON, _GO))
    return "\n".join((_SERVER.format(folder=place), java, *others))
