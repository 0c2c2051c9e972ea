"""Keys and certificates of a listener, from PEM, PKCS#12 or JKS, in files or in the configuration itself.

What may be given together, and the words for what may not, are those of Kafka's DefaultSslEngineFactory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..config.listener_values import Value
from ..peer import in_java
from . import jks, names

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12PrivateKeyTypes
    from cryptography.x509 import Certificate

Values = Mapping[str, Value]
"""The values of a listener's keys."""
PEM, JKS, PKCS12 = "PEM", "JKS", "PKCS12"
_KEY_BLOCK = re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----.*?-----END (?:[A-Z]+ )*PRIVATE KEY-----", re.DOTALL)
_CERTIFICATE_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_BLOCK = re.compile(r"(-----BEGIN [A-Z ]+-----)([A-Za-z0-9+/=\s]*)(-----END [A-Z ]+-----)")
STORE_BYTES_MAX: Final = 16 << 20


class StoreError(ValueError):
    """A key store or trust store that cannot be used. `key`: the configuration key to blame; `java`: the class of
    Kafka's exception, which replies of the broker name.
    """

    def __init__(self, key: str, words: str, java: str = "errors.InvalidConfigurationException") -> None:
        super().__init__(words)
        self.key = key
        self.java = f"org.apache.kafka.common.{java}"


Identity = tuple[str, frozenset[str]]
"""The subject of a certificate, and its alternative names."""


@dataclass(frozen=True, slots=True)
class KeyStore:
    """A private key, and the certificates that prove whose it is: the own one first."""

    key: PKCS12PrivateKeyTypes
    chain: list[Certificate]

    @property
    def identity(self) -> Identity:
        """Whose key it is."""
        from cryptography import x509

        own = self.chain[0]
        try:
            found = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return names.subject(_der(own)), frozenset()
        hosts = (f"[2, {one}]" for one in found.get_values_for_type(x509.DNSName))
        addresses = (f"[7, {in_java(str(one))}]" for one in found.get_values_for_type(x509.IPAddress))
        return names.subject(_der(own)), frozenset((*hosts, *addresses))


def files(values: Values) -> list[str]:
    """Returns the files that a listener's stores are read from."""
    return [path for path in (values["ssl.keystore.location"], values["ssl.truststore.location"]) if path]


def key_store(values: Values) -> KeyStore | None:
    """Returns the key store of a listener; None if none is configured. Raises StoreError."""
    kind, path, password = (values[f"ssl.keystore.{name}"] for name in ("type", "location", "password"))
    key, chain = values["ssl.keystore.key"], values["ssl.keystore.certificate.chain"]
    no_password = "SSL key store password cannot be specified with PEM format, only key password may be specified."
    if key is not None:
        place = "ssl.keystore.key"
        _refuse(
            place,
            (kind != PEM, f"SSL private key can be specified only for PEM, but key store type is {kind}."),
            (chain is None, "SSL private key is specified, but certificate chain is not specified."),
            (path is not None, "Both SSL key store location and separate private key are specified."),
            (password is not None, no_password),
        )
        return _from_pem(place, key, chain, values["ssl.key.password"])
    place = "ssl.keystore.location"
    _refuse(
        place,
        (chain is not None, "SSL certificate chain is specified, but private key is not specified"),
        (kind == PEM and path is not None and password is not None, no_password.rstrip(".")),
        (path is None and password is not None, "SSL key store is not specified, but key store password is specified."),
        (
            kind != PEM and path is not None and password is None,
            "SSL key store is specified, but key store password is not specified.",
        ),
    )
    if path is None:
        return None
    if kind != PEM:
        return _from_java(place, path, kind, password, values["ssl.key.password"])
    with _pem_file(place, path) as text:
        return _from_pem(place, text, text, values["ssl.key.password"])


def trusted(values: Values) -> list[bytes] | None:
    """Returns the certificates in DER that a listener trusts;
    None if no trust store is configured. Raises StoreError.
    """
    kind, path, password = (values[f"ssl.truststore.{name}"] for name in ("type", "location", "password"))
    text = values["ssl.truststore.certificates"]
    no_password = "SSL trust store password cannot be specified for PEM format."
    if text is not None:
        place = "ssl.truststore.certificates"
        _refuse(
            place,
            (kind != PEM, f"SSL trust store certs can be specified only for PEM, but trust store type is {kind}."),
            (path is not None, "Both SSL trust store location and separate trust certificates are specified."),
            (password is not None, no_password),
        )
        return [_der(one) for one in _certificates(place, text)]
    place = "ssl.truststore.location"
    _refuse(
        place,
        (kind == PEM and path is not None and password is not None, no_password),
        (
            path is None and password is not None,
            "SSL trust store is not specified, but trust store password is specified.",
        ),
    )
    if path is None:
        return None
    if kind != PEM:
        return _trusted_in_java(place, path, kind, password)
    with _pem_file(place, path) as text:
        return [_der(one) for one in _certificates(place, text)]


def _refuse(place: str, *rules: tuple[bool, str]) -> None:
    """Raises StoreError for the first rule that is broken."""
    for is_broken, words in rules:
        if is_broken:
            raise StoreError(place, words)


def _read(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(STORE_BYTES_MAX)


# PEM


@contextmanager
def _pem_file(place: str, path: str) -> Iterator[str]:
    """Reads a file; what is wrong with its content names the file."""
    try:
        yield _read(path).decode("utf-8", "replace")
    except OSError as error:
        raise StoreError(place, f"Failed to load PEM SSL keystore {path}: {error.strerror or error}") from None
    except StoreError as error:
        raise StoreError(place, f"Failed to load PEM SSL keystore {path}: {error}") from None


def _from_pem(place: str, key: str, chain: str, password: str | None) -> KeyStore:
    from cryptography.hazmat.primitives import serialization

    blocks = _KEY_BLOCK.findall(key)
    if len(blocks) != 1:
        words = "No matching PRIVATE KEY entries in PEM file" if not blocks else None
        raise StoreError(place, words or f"Expected one private key, but found {len(blocks)}")
    try:
        loaded = serialization.load_pem_private_key(
            _tidy(blocks[0]), password.encode() if password is not None else None
        )
    except (TypeError, ValueError) as error:
        raise StoreError(place, f"Invalid PEM keystore configs: the private key: {error}") from None
    return KeyStore(_usable(place, loaded), _in_order(_certificates(place, chain)))


def _tidy(block: str) -> bytes:
    """Returns a PEM block whose lines may be separated by spaces, as in a properties file."""
    parts = _BLOCK.fullmatch(block)
    if parts is None:  # a traditional block whose headers need their lines
        return block.encode()
    return "\n".join((parts[1], *parts[2].split(), parts[3])).encode()


def _certificates(place: str, text: str) -> list[Certificate]:
    from cryptography import x509

    blocks = _CERTIFICATE_BLOCK.findall(text)
    if not blocks:
        raise StoreError(place, "No matching CERTIFICATE entries in PEM file")
    try:
        return [x509.load_pem_x509_certificate(_tidy(one)) for one in blocks]
    except ValueError as error:
        raise StoreError(place, f"Invalid PEM configs: a certificate: {error}") from None


# Java's stores


def _failed(place: str, path: str, kind: str, why: object) -> StoreError:
    return StoreError(place, f"Failed to load SSL keystore {path} of type {kind}: {why}", "KafkaException")


def _store_data(place: str, path: str, kind: str) -> bytes:
    """Returns the bytes of a store. Java reads JKS and PKCS#12 alike, whichever of the two types is configured."""
    if kind.upper() not in (JKS, PKCS12):
        raise _failed(place, path, kind, "ottla reads PEM, PKCS12 and JKS")
    try:
        return _read(path)
    except OSError as error:
        raise _failed(place, path, kind, error.strerror or error) from None


def _from_java(place: str, path: str, kind: str, password: str, key_password: str | None) -> KeyStore:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    data = _store_data(place, path, kind)
    try:
        if data[:4] == jks.MAGIC:
            store = jks.load(data, password)
            if not store.keys:
                raise _failed(place, path, kind, "it has no private key")
            protected, certificates = next(iter(store.keys.values()))
            plain = jks.unprotected(protected, password if key_password is None else key_password)
            key = serialization.load_der_private_key(plain, None)
            return KeyStore(_usable(place, key), [x509.load_der_x509_certificate(one) for one in certificates])
        bag = pkcs12.load_pkcs12(data, password.encode())
    except StoreError:
        raise
    except ValueError as error:
        raise _failed(place, path, kind, error) from None
    if bag.key is None or bag.cert is None:
        raise _failed(place, path, kind, "it has no private key with a certificate")
    return KeyStore(
        _usable(place, bag.key), _in_order([bag.cert.certificate, *(one.certificate for one in bag.additional_certs)])
    )


def _trusted_in_java(place: str, path: str, kind: str, password: str | None) -> list[bytes]:
    from cryptography.hazmat.primitives.serialization import pkcs12

    data = _store_data(place, path, kind)
    try:
        if data[:4] == jks.MAGIC:
            store = jks.load(data, password)
            return [*store.certificates.values(), *(chain[0] for _, chain in store.keys.values() if chain)]
        bag = pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError as error:
        raise _failed(place, path, kind, error) from None
    own = [bag.cert.certificate] if bag.cert is not None else []
    return [_der(one) for one in (*own, *(one.certificate for one in bag.additional_certs))]


def _der(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)


def _usable(place: str, key: object) -> PKCS12PrivateKeyTypes:
    """Returns a private key that TLS can use. Raises StoreError for other kinds."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa

    if not isinstance(
        key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey
    ):
        raise StoreError(place, "Private key could not be loaded: TLS uses keys of RSA and EC")
    return key


def _in_order(certificates: list[Certificate]) -> list[Certificate]:
    """Returns a chain from the own certificate to its last issuer, and leaves out what does not belong to it."""
    chain, left = [certificates[0]], certificates[1:]
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((one for one in left if one.subject == chain[-1].issuer), None)
        if issuer is None:
            break
        left.remove(issuer)
        chain.append(issuer)
    return chain
