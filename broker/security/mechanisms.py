"""The SASL mechanisms by name."""

from __future__ import annotations

from typing import NamedTuple

from . import kerberos, oauthbearer, plain, scram
from .sasl import MakeMechanism

_KAFKA = "org.apache.kafka.common.security"


class Known(NamedTuple):
    """A mechanism that can be enabled: what makes it, the login module of its JAAS line, and the class of Kafka's
    callback handler, which may be named because the mechanism does what that class does.
    """

    make: MakeMechanism
    login_module: str
    callback_handlers: tuple[str, ...]


_SCRAM = Known(scram.make, scram.LOGIN_MODULE, (f"{_KAFKA}.scram.internals.ScramServerCallbackHandler",))
MECHANISMS: dict[str, Known] = {
    "OAUTHBEARER": Known(oauthbearer.make, oauthbearer.LOGIN_MODULE, oauthbearer.HANDLERS),
    "PLAIN": Known(plain.make, plain.LOGIN_MODULE, (f"{_KAFKA}.plain.internals.PlainServerCallbackHandler",)),
    "SCRAM-SHA-256": _SCRAM,
    "SCRAM-SHA-512": _SCRAM,
    "GSSAPI": Known(kerberos.make, kerberos.LOGIN_MODULE, (f"{_KAFKA}.authenticator.SaslServerCallbackHandler",)),
}
