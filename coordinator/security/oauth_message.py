"""The first message of a client of OAUTHBEARER (RFC 7628, Kafka's OAuthBearerClientInitialResponse).

    n,a=PRINCIPAL,^Aauth=Bearer TOKEN^ANAME=VALUE^A^A

The name after `a=` may be left out. NAME=VALUE are extensions (KIP-342); the validators accept all of them, as Kafka's.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...protocol.errors import MalformedMessage
from .sasl import SaslFailed

_INVALID = "Invalid OAUTHBEARER client first message"
_MESSAGE = re.compile(
    r"n,(?:a=(?P<name>(?:[\x01-+\--<>-\x7f]|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_AUTHORIZATION = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)


class FirstMessage(NamedTuple):
    """`name`: the principal that the client wants to be, empty if it does not say."""

    token: str
    name: str
    extensions: dict[str, str]


def parse_first_message(data: bytes) -> FirstMessage:
    """Parses the message. Raises SaslFailed; raises MalformedMessage where Kafka closes the connection at once."""
    found = _MESSAGE.fullmatch(data.decode("utf-8", "replace"))
    if found is None:
        raise SaslFailed(reason=_INVALID)
    extensions = {}
    for pair in found["pairs"].split("\x01")[:-1]:
        key, _, value = pair.partition("=")
        extensions[key] = value  # of a key that is repeated, the last counts
    auth = extensions.pop("auth", None)
    if auth is None:
        raise SaslFailed(reason=f"{_INVALID}: 'auth' not specified")
    authorization = _AUTHORIZATION.fullmatch(auth)
    if authorization is None:
        raise SaslFailed(reason=f"{_INVALID}: invalid 'auth' format")
    if authorization["scheme"].lower() != "bearer":
        raise MalformedMessage("auth", "the scheme is not Bearer")
    return FirstMessage(authorization["token"], found["name"] or "", extensions)
