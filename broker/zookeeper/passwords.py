"""Passwords as Kafka 1.1 to 3.9 keep them in ZooKeeper: encrypted with a secret of the configuration (PasswordEncoder).

A value names all that is needed to read it, but for the secret: `encryptedPassword:…,salt:…,iterations:4096,…`. The key
of the cipher is derived from the secret, which takes milliseconds and as long as a tool wants: values are opened in the
session's thread (`learn`), and the loop finds them in a table.
"""

from __future__ import annotations

import hashlib
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ...protocol.java import java_length

SALT_BYTES: Final = 256
CBC, GCM = "AES/CBC/PKCS5PADDING", "AES/GCM/NOPADDING"
CIPHERS: Final = (CBC, GCM)
NONCE_BYTES: Final = 12
TAG_BITS: Final = 128
KEY_BITS: Final = (128, 192, 256)
DERIVATION: Final = "PBKDF2WithHmacSHA512"
_HASHES: Final = {f"PBKDF2WITHHMACSHA{bits}": f"sha{bits}" for bits in (1, 224, 256, 384, 512)}
ITERATIONS_MAX: Final = 10_000_000  # some ten seconds; more would keep the session's thread
OPENED_MAX: Final = 10_000


class Sealed(ValueError):
    """A value that cannot be opened: it is none of Kafka's, or was made with another secret."""


@dataclass(frozen=True, slots=True)
class Sealing:
    """How passwords are encrypted: `password.encoder.*`."""

    cipher: str
    key_bits: int
    derivation: str
    iterations: int

    @property
    def fault(self) -> str | None:
        """Why this broker cannot encrypt so; None if it can."""
        if self.cipher.upper() not in CIPHERS:
            return f"cipher {self.cipher!r} is none of AES/CBC/PKCS5Padding and AES/GCM/NoPadding"
        if self.derivation.upper() not in _HASHES:
            return f"key factory {self.derivation!r} is none of PBKDF2WithHmacSHA1 to PBKDF2WithHmacSHA512"
        if self.key_bits not in KEY_BITS:
            return f"a key of AES has 128, 192 or 256 bits, not {self.key_bits}"
        if self.iterations > ITERATIONS_MAX:
            return f"{self.iterations} iterations are more than {ITERATIONS_MAX}"
        return None

    def key(self, secret: str, salt: bytes) -> bytes:
        return hashlib.pbkdf2_hmac(
            _HASHES[self.derivation.upper()], secret.encode(), salt, self.iterations, self.key_bits // 8
        )


class Passwords:
    """`old_secret`: opens what an earlier secret has sealed."""

    def __init__(self, sealing: Sealing, secret: str, old_secret: str | None = None) -> None:
        self._sealing = sealing
        self._secrets = [one for one in (secret, old_secret) if one is not None]
        self._opened: dict[str, tuple[str, bool]] = {}  # and whether the secret of today has sealed it

    def learn(self, values: Iterable[str]) -> None:
        """Opens values, in the session's thread."""
        for value in values:
            if value not in self._opened and (found := opened_by_one(value, self._secrets)) is not None:
                if len(self._opened) >= OPENED_MAX:
                    self._opened.clear()
                password, number = found
                self._opened[value] = password, number == 0

    def opened(self, value: str) -> str | None:
        """Returns the password that a value has; None if it cannot be opened, or was not learned."""
        found = self._opened.get(value)
        return None if found is None else found[0]

    def is_current(self, value: str) -> bool:
        """Whether the secret of today has sealed a value."""
        return self._opened.get(value, ("", False))[1]

    def sealed(self, password: str) -> str:
        made = sealed(password, self._secrets[0], self._sealing)
        self._opened[made] = password, True
        return made


def sealed(password: str, secret: str, how: Sealing) -> str:
    """Returns a password as ZooKeeper has it."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.padding import PKCS7

    salt, data = secrets.token_bytes(SALT_BYTES), password.encode("utf-8", "surrogatepass")
    key = how.key(secret, salt)
    parts: dict[str, object] = {}
    if how.cipher.upper() == GCM:
        vector = secrets.token_bytes(NONCE_BYTES)
        encrypted = AESGCM(key).encrypt(vector, data, None)
        parts["authenticationTagLength"] = TAG_BITS
    else:
        vector, padder = secrets.token_bytes(16), PKCS7(128).padder()
        encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
        encrypted = encryptor.update(padder.update(data) + padder.finalize()) + encryptor.finalize()
    parts |= {
        "encryptedPassword": b64encode(encrypted).decode(),
        "keyLength": how.key_bits,
        "cipherAlgorithm": how.cipher,
        "initializationVector": b64encode(vector).decode(),
        "keyFactoryAlgorithm": how.derivation,
        "passwordLength": java_length(password),
        "salt": b64encode(salt).decode(),
        "iterations": how.iterations,
    }
    return ",".join(f"{name}:{value}" for name, value in parts.items())


def opened(value: str, secret: str) -> str:
    """Returns the password of a value. Raises Sealed."""
    from cryptography.exceptions import InvalidTag

    parts = {name.strip(): part.strip() for name, _, part in (one.rpartition(":") for one in value.split(","))}
    try:
        how = Sealing(
            parts["cipherAlgorithm"],
            int(parts["keyLength"]),
            parts["keyFactoryAlgorithm"],
            int(parts["iterations"]),
        )
        if how.fault is not None or how.iterations < 1:
            raise Sealed(how.fault)
        salt, vector, encrypted = (
            b64decode(parts[name], validate=True) for name in ("salt", "initializationVector", "encryptedPassword")
        )
        data = _decrypted(how, how.key(secret, salt), vector, encrypted)
        password = data.decode("utf-8", "surrogatepass")
        if java_length(password) != int(parts["passwordLength"]):
            raise Sealed("the length is another one")
    except (KeyError, ValueError, InvalidTag):
        raise Sealed("the password cannot be opened") from None
    return password


def opened_by_one(value: str, of: Sequence[str]) -> tuple[str, int] | None:
    """Returns the password of a value, and the number of the secret that opens it first; None if none does."""
    for number, secret in enumerate(of):
        try:
            return opened(value, secret), number
        except Sealed:
            continue
    return None


def _decrypted(how: Sealing, key: bytes, vector: bytes, encrypted: bytes) -> bytes:
    """Raises InvalidTag, ValueError."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.padding import PKCS7

    if how.cipher.upper() == GCM:
        return AESGCM(key).decrypt(vector, encrypted, None)
    decryptor, unpadder = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor(), PKCS7(128).unpadder()
    padded = decryptor.update(encrypted) + decryptor.finalize()
    return unpadder.update(padded) + unpadder.finalize()
