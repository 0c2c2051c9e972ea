"""Security contexts of the library gssapi, which is an extra: only a listener with GSSAPI imports this module."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import gssapi
from gssapi.exceptions import GSSError

from ...coordinator.security.sasl import SaslFailed

T = TypeVar("T")


def credentials(principal: str, keytab: str) -> gssapi.Credentials:
    """Returns the credentials to accept tickets for a principal. Raises ValueError if the keytab does not have it."""
    try:
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        return gssapi.Credentials(name=name, usage="accept", store={"keytab": keytab})
    except (GSSError, ValueError) as error:
        raise ValueError(f"the keytab {keytab} has no keys for {principal}: {error}") from None


def default_realm() -> str:
    """Returns the realm of names without one; an empty text if Kerberos is not configured."""
    try:
        name = gssapi.Name("any", gssapi.NameType.user).canonicalize(gssapi.MechType.kerberos)
    except GSSError:
        return ""
    return str(name).partition("@")[2]


class LibraryContext:
    """A `GssContext` of the library."""

    def __init__(self, credentials: gssapi.Credentials) -> None:
        self._context = gssapi.SecurityContext(creds=credentials, usage="accept")
        self._context.__DEFER_STEP_ERRORS__ = False  # an error is raised at once, instead of the token that says so

    def accept(self, token: bytes) -> bytes | None:
        answer: bytes | None = _called(lambda: self._context.step(token))
        return answer or None

    @property
    def peer(self) -> str | None:
        return str(self._context.initiator_name) if self._context.complete else None

    def wrap(self, message: bytes) -> bytes:
        return bytes(_called(lambda: self._context.wrap(message, False)).message)

    def unwrap(self, token: bytes) -> bytes:
        return bytes(_called(lambda: self._context.unwrap(token)).message)


def _called(call: Callable[[], T]) -> T:
    """Returns what the library returns, its failure being that of the exchange."""
    try:
        return call()
    except GSSError as error:
        raise SaslFailed(reason=f"{error}") from None
