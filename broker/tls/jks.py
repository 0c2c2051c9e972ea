"""Java's key stores of type JKS: reads and writes them.

No maintained library reads JKS (pyjks has had no release since 2020 and needs twofish and javaobj for other types). The
format does not change any more. Its protection of keys is weak: SHA-1 of the password as a key stream.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from . import der

MAGIC: Final = b"\xfe\xed\xfe\xed"
_HEAD = struct.Struct(">4sII")
_KEY, _CERTIFICATE = 1, 2
_MIXED_IN = b"Mighty Aphrodite"
_PROTECTION = bytes.fromhex("060a2b060104012a02110101")  # 1.3.6.1.4.1.42.2.17.1.1
_DIGEST = 20


class JksError(ValueError):
    """A file that is not a JKS key store, or a wrong password."""


@dataclass(slots=True)
class Jks:
    """The content of a store. `keys`: protected key and certificates in DER, by alias; `certificates`: those that are
    trusted, by alias.
    """

    keys: dict[str, tuple[bytes, list[bytes]]] = field(default_factory=dict)
    certificates: dict[str, bytes] = field(default_factory=dict)


def load(data: bytes, password: str | None) -> Jks:
    """Reads a store. Without a password its integrity is not checked. Raises JksError."""
    if len(data) < _HEAD.size + _DIGEST or data[:4] != MAGIC:
        raise JksError("Invalid keystore format")
    if password is not None and _digest(data[:-_DIGEST], password) != data[-_DIGEST:]:
        raise JksError("Keystore was tampered with, or password was incorrect")
    try:
        return _parse(data)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise JksError(f"Invalid keystore format: {error}") from None


def _parse(data: bytes) -> Jks:
    _, version, count = _HEAD.unpack_from(data)
    if version not in (1, 2):
        raise JksError(f"Invalid keystore format: version {version}")
    found = Jks()
    reader = _Reader(data, _HEAD.size)
    for _ in range(count):
        tag, alias = reader.number(4), reader.part(2).decode()
        reader.at += 8  # when it was made
        if tag == _KEY:
            key = reader.part(4)
            found.keys[alias] = key, [reader.certificate(version) for _ in range(reader.number(4))]
        elif tag == _CERTIFICATE:
            found.certificates[alias] = reader.certificate(version)
        else:
            raise JksError(f"Invalid keystore format: an entry of type {tag}")
    return found


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at

    def number(self, size: int) -> int:
        if self.at + size > len(self.data) - _DIGEST:
            raise JksError("Invalid keystore format: it ends too early")
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "big")

    def part(self, size_of_length: int) -> bytes:
        length = self.number(size_of_length)
        if self.at + length > len(self.data) - _DIGEST:
            raise JksError("Invalid keystore format: it ends too early")
        self.at += length
        return self.data[self.at - length : self.at]

    def certificate(self, version: int) -> bytes:
        if version == 2:
            self.part(2)  # the type of the certificate
        return self.part(4)


def unprotected(key: bytes, password: str) -> bytes:
    """Returns a private key as PKCS#8 in DER. Raises JksError for a wrong password."""
    try:
        start, end = der.content(key, 0, der.SEQUENCE)
        _, _, after = der.read(key, start)
        start, end = der.content(key, after, der.OCTET_STRING)
    except der.DerError as error:
        raise JksError(f"the protected key is malformed: {error}") from None
    salt, hidden, check = key[start : start + _DIGEST], key[start + _DIGEST : end - _DIGEST], key[end - _DIGEST : end]
    plain = _hidden(hidden, salt, password)
    if hashlib.sha1(password.encode("utf-16-be") + plain).digest() != check:
        raise JksError("Cannot recover key")
    return plain


def dump(
    password: str,
    keys: dict[str, tuple[bytes, Iterable[bytes]]] | None = None,
    certificates: dict[str, bytes] | None = None,
    time_ms: int = 0,
) -> bytes:
    """Returns a store with private keys (PKCS#8 in DER, and their certificates) and trusted certificates, by alias."""
    keys, certificates = keys or {}, certificates or {}
    out = [_HEAD.pack(MAGIC, 2, len(keys) + len(certificates))]
    for alias, (key, chain) in keys.items():
        certs = [_certificate(one) for one in chain]
        protected = _protected(key, password)
        out += [_entry(_KEY, alias, time_ms), struct.pack(">I", len(protected)), protected]
        out += [struct.pack(">I", len(certs)), *certs]
    for alias, certificate in certificates.items():
        out += [_entry(_CERTIFICATE, alias, time_ms), _certificate(certificate)]
    body = b"".join(out)
    return body + _digest(body, password)


def _entry(tag: int, alias: str, time_ms: int) -> bytes:
    name = alias.lower().encode()
    return struct.pack(">IH", tag, len(name)) + name + struct.pack(">Q", time_ms)


def _certificate(data: bytes) -> bytes:
    return b"\0\5X.509" + struct.pack(">I", len(data)) + data


def _protected(key: bytes, password: str) -> bytes:
    salt = os.urandom(_DIGEST)
    check = hashlib.sha1(password.encode("utf-16-be") + key).digest()
    algorithm = der.encoded(der.SEQUENCE, _PROTECTION, der.encoded(der.NULL))
    return der.encoded(
        der.SEQUENCE, algorithm, der.encoded(der.OCTET_STRING, salt, _hidden(key, salt, password), check)
    )


def _hidden(key: bytes, salt: bytes, password: str) -> bytes:
    """Returns a key combined with the key stream of a password: hides it, or shows it again."""
    secret, digest = password.encode("utf-16-be"), salt
    stream = bytearray()
    while len(stream) < len(key):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    return bytes(a ^ b for a, b in zip(key, stream, strict=False))


def _digest(body: bytes, password: str) -> bytes:
    return hashlib.sha1(password.encode("utf-16-be") + _MIXED_IN + body).digest()
