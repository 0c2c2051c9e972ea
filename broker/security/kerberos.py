"""GSSAPI: the client has a ticket of Kerberos for this broker, whose key is in a keytab (RFC 4752).

The exchange is that of Java's GssKrb5Server without a security layer, and Kafka's rules map the client's principal to a
user. `GssContext` is what it needs of a security context; `broker.security.gss` has the one of the library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from ...coordinator.security.kerberos import KerberosError, KerberosName, KerberosShortNamer
from ...coordinator.security.sasl import SaslFailed
from ...protocol.errors import MalformedMessage
from ..config.jaas import JaasEntry
from ..config.listener_values import ListenerValues
from ..later import Later
from ..turn import Turn
from .sasl import MechanismSetup

LOGIN_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE_NAME = "sasl.kerberos.service.name"
RULES = "sasl.kerberos.principal.to.local.rules"
_NO_LAYER = 1
_OFFER = b"\x01\x01\x00\x00"  # no security layer; Java says that it takes 64 KiB all the same


class GssContext(Protocol):
    """The acceptor's end of a security context. Its calls may block, and run in a thread."""

    def accept(self, token: bytes) -> bytes | None:
        """Takes the client's next token; returns the one to send, None if there is none. Raises SaslFailed."""

    @property
    def peer(self) -> str | None:
        """The client's principal once the context is established, None before."""

    def wrap(self, message: bytes) -> bytes:
        """Returns a message with its checksum. Raises SaslFailed."""

    def unwrap(self, token: bytes) -> bytes:
        """Checks what the client has wrapped, and returns it. Raises SaslFailed."""


class Gssapi:
    """The mechanism of one listener. `accept`: makes the context of an exchange; `users`: maps principals."""

    def __init__(self, turn: Turn, users: KerberosShortNamer, accept: Callable[[], GssContext]) -> None:
        self._turn = turn
        self._users = users
        self._accept = accept

    def begin(self) -> GssapiServer:
        return GssapiServer(self._turn, GssExchange(self._accept, self._users))


class GssapiServer:
    """One exchange, whose steps run in a thread."""

    def __init__(self, turn: Turn, exchange: GssExchange) -> None:
        self.authorization_id: str | None = None
        self.expires_at_ms: int | None = None
        self.token_authenticated = False
        self._turn = turn
        self._exchange = exchange

    def evaluate(self, token: bytes) -> Later[bytes | None]:
        """Answers a token. Fails with SaslFailed or MalformedMessage."""
        later: Later[bytes | None] = Later()

        def done(answer: bytes | None, error: BaseException | None) -> None:
            self.authorization_id = self._exchange.user
            later.settle(answer, error)

        self._turn.in_thread(partial(self._exchange.step, token), done)
        return later


class GssExchange:
    """The steps of one exchange: the context, the offer of security layers, the client's choice. `user`: of the client
    once the exchange is complete.
    """

    def __init__(self, accept: Callable[[], GssContext], users: KerberosShortNamer) -> None:
        self.user: str | None = None
        self._accept = accept
        self._users = users
        self._context: GssContext | None = None
        self._next: Callable[[bytes], bytes | None] = self._establish

    def step(self, token: bytes) -> bytes | None:
        """Answers a token, the last one with None. Raises SaslFailed or MalformedMessage."""
        return self._next(token)

    def _establish(self, token: bytes) -> bytes:
        if not token:
            raise SaslFailed(reason="the client has sent no token")
        if self._context is None:
            self._context = self._accept()
        answer = self._context.accept(token)
        if self._context.peer is None:
            return answer or b""
        self._next = self._offer
        return self._offer(b"") if answer is None else answer

    def _offer(self, token: bytes) -> bytes:
        if token:
            raise SaslFailed(reason="Handshake expecting no response data from server")
        assert self._context is not None
        self._next = self._choose
        return self._context.wrap(_OFFER)

    def _choose(self, token: bytes) -> None:
        """Takes the client's choice: a layer, the bytes that it takes, and the name that it wants, which Kafka does not
        regard.
        """
        assert self._context is not None
        chosen = self._context.unwrap(token)
        if chosen and not chosen[0] & _NO_LAYER:
            raise SaslFailed(reason=f"Client selected unsupported protection: {chosen[0]}")
        if len(chosen) < len(_OFFER):
            raise MalformedMessage("", "the client's choice of a security layer is too short")
        peer = self._context.peer
        assert peer is not None
        try:
            self.user = self._users.short_name(KerberosName.parse(peer))
        except KerberosError as error:
            raise MalformedMessage("", f"no user for the principal {peer}: {error}") from None


def make(setup: MechanismSetup) -> Gssapi:
    """Makes the mechanism of a listener. Raises ValueError if a setting or the keytab is wrong, or without the library
    for it.
    """
    if setup.jaas is None:
        raise ValueError(
            f"GSSAPI needs a keytab: {LOGIN_MODULE} required useKeyTab=true storeKey=true "
            'keyTab="FILE" principal="kafka/HOST@REALM"; (without sasl.enabled.mechanisms, GSSAPI is the default; '
            "ottla.users=NAME:PASSWORD enables the mechanisms that take passwords)"
        )
    principal, keytab = _of_keytab(setup.jaas)
    _check_service_name(setup.values, setup.jaas)
    try:
        from . import gss
    except ImportError as error:
        raise ValueError(f"GSSAPI needs the extra ottla[gssapi]: pip install 'ottla[gssapi]' ({error})") from None
    credentials = gss.credentials(principal, keytab)
    users = KerberosShortNamer(gss.default_realm(), setup.values[RULES])
    return Gssapi(setup.services.turn, users, partial(gss.LibraryContext, credentials))


def _of_keytab(jaas: JaasEntry) -> tuple[str, str]:
    """The principal and the file of a JAAS line. Raises ValueError if it is not one for a keytab."""
    options = jaas.options
    for name in ("useKeyTab", "storeKey"):
        if options.get(name, "false").lower() != "true":
            raise ValueError(f"the broker's keys come from a keytab: {name}=true is missing")
    for name in ("principal", "keyTab"):
        if not options.get(name):
            raise ValueError(f"{name} is missing")
    return options["principal"], options["keyTab"]


def _check_service_name(values: ListenerValues, jaas: JaasEntry) -> None:
    """Kafka wants the name of the service in one place, although clients alone use it. Raises ValueError."""
    of_jaas, of_config = jaas.options.get("serviceName"), values[SERVICE_NAME]
    if of_jaas is not None and of_config is not None and of_jaas != of_config:
        raise ValueError(
            f"Conflicting serviceName values found in JAAS and Kafka configs value in JAAS file {of_jaas}, "
            f"value in Kafka config {of_config}"
        )
    if of_jaas is None and of_config is None:
        raise ValueError(f"No serviceName defined in either JAAS or Kafka config: set {SERVICE_NAME}=kafka")
