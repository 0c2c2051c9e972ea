"""Contexts of OpenSSL that have the keys, trusted certificates, versions and cipher suites of a configuration."""

from __future__ import annotations

import contextlib
import os
import re
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .stores import KeyStore, StoreError, Values, key_store, trusted

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_OLD_VERSIONS = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")  # Java knows them and has them disabled
_PROTOCOLS = ("TLS", "SSL", *_OLD_VERSIONS, *VERSIONS)
CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
SUITES_OF_TLS_1_3: Final = frozenset(
    ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
)
_TOO_WEAK = ("CA_MD_TOO_WEAK", "EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL")
RSA_BITS_MIN = 1024
_DIGESTS_REFUSED: Final = frozenset(("md2", "md5"))  # jdk.certpath.disabledAlgorithms
_SUITE = re.compile(
    r"TLS_(?P<key>ECDHE_RSA|ECDHE_ECDSA|DHE_RSA|RSA)_WITH_"
    r"(?:AES_(?P<bits>128|256)_(?P<mode>GCM|CBC|CCM|CCM_8)(?:_(?P<hash>SHA\d*))?|(?P<chacha>CHACHA20_POLY1305)_SHA256)"
)


def server_context(values: Values, store: KeyStore | None) -> ssl.SSLContext:
    """Returns a context for the connections of a listener with a key store. Raises StoreError for values that cannot
    be used.
    """
    _refuse_engines(values)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
    context.num_tickets = 1  # as Java's
    _limit_versions(context, values)
    if store is not None:
        _load_key(context, store)
    _load_trust(context, trusted(values))
    context.verify_mode = CLIENT_AUTH[values["ssl.client.auth"]]
    return context


def client_context(values: Values) -> ssl.SSLContext:
    """Returns a context for connections to servers, whose names are checked. Raises StoreError for values that cannot
    be used.
    """
    _refuse_engines(values)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _limit_versions(context, values)
    store = key_store(values)
    if store is not None:
        _load_key(context, store)
    _load_trust(context, trusted(values))
    return context


def _refuse_engines(values: Values) -> None:
    if values["ssl.engine.factory.class"] is not None:
        raise StoreError("ssl.engine.factory.class", "ottla cannot load Java classes; remove the key")


def check_own_trust(context: ssl.SSLContext, values: Values, store: KeyStore | None) -> None:
    """Checks that a listener's trust store accepts its own certificate, as Kafka does where brokers use the listener
    between themselves. Raises StoreError.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    if store is not None:
        _load_key(client, store)
    _load_trust(client, trusted(values))
    ends = [ssl.MemoryBIO(), ssl.MemoryBIO()]
    hands = [
        client.wrap_bio(ends[0], ends[1]),
        context.wrap_bio(ends[1], ends[0], server_side=True),
    ]
    try:
        for _ in range(3):  # the flights of a handshake
            for hand in hands:
                with contextlib.suppress(ssl.SSLWantReadError):
                    hand.do_handshake()
    except ssl.SSLError as error:
        raise StoreError(
            "ssl.truststore.location",
            "A client SSLEngine created with the provided settings can't connect to a server SSLEngine created with "
            f"those settings: {error.reason or error}",
        ) from None


def _limit_versions(context: ssl.SSLContext, values: Values) -> None:
    if values["ssl.protocol"] not in _PROTOCOLS:
        raise StoreError("ssl.protocol", f"{values['ssl.protocol']} SSLContext not available")
    wanted = values["ssl.enabled.protocols"] or list(VERSIONS)
    for version in wanted:
        if version not in (*VERSIONS, *_OLD_VERSIONS):
            raise StoreError("ssl.enabled.protocols", f"Unsupported protocol: {version}")
    enabled = [one for name, one in VERSIONS.items() if name in wanted]
    suites = values["ssl.cipher.suites"] or []
    if suites:
        older = [_suite(one) for one in suites if one not in SUITES_OF_TLS_1_3]
        if len(older) == len(suites):
            enabled = [one for one in enabled if one is not ssl.TLSVersion.TLSv1_3]
        if older:
            try:
                context.set_ciphers(":".join(older))
            except ssl.SSLError:
                raise StoreError("ssl.cipher.suites", f"OpenSSL has none of {', '.join(suites)}") from None
        else:
            enabled = [one for one in enabled if one is ssl.TLSVersion.TLSv1_3]
    if not enabled:
        raise StoreError("ssl.enabled.protocols", "No appropriate protocol (protocol is disabled or cipher suites are "
                         "inappropriate): ottla has TLSv1.2 and TLSv1.3")  # fmt: skip
    context.minimum_version, context.maximum_version = min(enabled), max(enabled)


def _suite(java: str) -> str:
    """Returns OpenSSL's name of a cipher suite of TLS 1.2. Raises StoreError."""
    found = _SUITE.fullmatch(java)
    if found is None:
        raise StoreError("ssl.cipher.suites", f"Unsupported CipherSuite: {java}")
    key = "" if found["key"] == "RSA" else found["key"].replace("_", "-") + "-"
    if found["chacha"]:
        return f"{key}CHACHA20-POLY1305"
    mode = "" if found["mode"] == "CBC" else "-" + found["mode"].replace("_", "")
    return f"{key}AES{found['bits']}{mode}" + (f"-{found['hash']}" if found["hash"] else "")


def _load_key(context: ssl.SSLContext, store: KeyStore) -> None:
    """Gives a context its key. OpenSSL takes it from a file only, so the file has it encrypted, and exists shortly."""
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

    password = os.urandom(32).hex().encode()
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password))
    chain = b"".join(one.public_bytes(Encoding.PEM) for one in store.chain)
    with tempfile.TemporaryDirectory(prefix="ottla-") as folder:
        path = Path(folder) / "key.pem"
        path.touch(0o600)
        path.write_bytes(key + chain)
        try:
            _load_chain(context, path, password, store)
        except ssl.SSLError as error:
            raise StoreError(
                "ssl.keystore.location", f"The key store cannot be used: {error.reason or error}"
            ) from None


def _load_chain(context: ssl.SSLContext, path: Path, password: bytes, store: KeyStore) -> None:
    """Loads a key and its certificates, also those that only Java takes still: signed with SHA-1, or with a key of RSA
    from 1,024 bits on. Raises SSLError, and StoreError for those that Java refuses.

    Which of them OpenSSL refuses here, and which in handshakes only, depends on its version.
    """
    digests = {_digest(one) for one in store.chain}
    if not _DIGESTS_REFUSED.isdisjoint(digests):
        raise StoreError("ssl.keystore.location", "The key store cannot be used: a certificate is signed with MD5")
    try:
        context.load_cert_chain(path, password=password)
    except ssl.SSLError as error:
        if error.reason not in _TOO_WEAK or any(map(_has_short_key, store.chain)):
            raise
        _take_weak(context)
        context.load_cert_chain(path, password=password)
    else:
        if "sha1" in digests:
            _take_weak(context)


def _take_weak(context: ssl.SSLContext) -> None:
    older = [one["name"] for one in context.get_ciphers() if one["name"] not in SUITES_OF_TLS_1_3]
    context.set_ciphers(":".join((*older, "@SECLEVEL=0")))


def _digest(certificate: Certificate) -> str | None:
    """What a certificate is signed with; None for a root, whose signature is not looked at."""
    algorithm = certificate.signature_hash_algorithm
    return None if algorithm is None or certificate.issuer == certificate.subject else algorithm.name


def _has_short_key(certificate: Certificate) -> bool:
    """Whether Java's `jdk.certpath.disabledAlgorithms` has the key of a certificate."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    key = certificate.public_key()
    return isinstance(key, RSAPublicKey) and key.key_size < RSA_BITS_MIN


def _load_trust(context: ssl.SSLContext, certificates: list[bytes] | None) -> None:
    """Gives a context the certificates that it trusts: without a trust store, those of the system, as in Java."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # any certificate of the store is trusted, not roots only
    if certificates is None:
        context.set_default_verify_paths()
    elif certificates:
        try:
            context.load_verify_locations(cadata=b"".join(dict.fromkeys(certificates)))
        except ssl.SSLError as error:
            raise StoreError("ssl.truststore.location", f"The trust store cannot be used: {error}") from None
