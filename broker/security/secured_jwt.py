"""Tokens with a signature (Kafka's BrokerJwtValidator, KIP-768), and the configuration of their validation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import unquote, urlsplit

from ...coordinator.security.oauth_token import Claims, InvalidToken, Token
from ...protocol.config_def import ConfigInvalid
from ..config.config import ALLOWED_URLS
from .jwks import KeyMissing, KeySet
from .jwks_endpoint import JwksEndpoint, JwksFile, tls_context
from .sasl import MechanismSetup

logger = logging.getLogger("ottla.org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator")
_KEY = "sasl.oauthbearer."
_URL = "sasl.oauthbearer.jwks.endpoint.url"
_TIMES = (
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
)
_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
_VALIDATORS = (f"{_PACKAGE}.DefaultJwtValidator", f"{_PACKAGE}.BrokerJwtValidator")


@dataclass(frozen=True, slots=True)
class SecuredValidator:
    """`keys`: returns those that are known now; `missing`: called with the identifier of a key that is not."""

    keys: Callable[[], KeySet]
    audiences: tuple[str, ...] = ()
    issuer: str | None = None
    skew_s: int = 0
    scope_claim: str = "scope"
    sub_claim: str = "sub"
    missing: Callable[[str], object] = field(default=lambda _: None)

    def validate(self, text: str, now_ms: int) -> Token:
        """Returns the token. `now_ms`: wall time. Raises InvalidToken."""
        if text.count(".") != 2 or not all(text.split(".")):
            raise InvalidToken("Malformed JWT provided; expected three sections (header, payload, and signature)")
        try:
            claims = self.keys().verified(text)
        except KeyMissing as error:
            if error.kid is not None:
                self.missing(error.kid)
            raise
        expires = self._check_times(claims, now_ms // 1000)
        self._check_origin(claims)
        self._check_scope(claims.get(self.scope_claim))
        principal = claims.get(self.sub_claim)
        if not isinstance(principal, str) or not principal.strip():
            raise InvalidToken(f"{self.sub_claim} value must be a text that is not empty")
        return Token(principal.strip(), min(expires * 1000, 2**63 - 1))

    def _check_times(self, claims: Claims, now: int) -> int:
        """Returns when the token expires, in seconds."""
        expires, issued, begins = (_seconds(claims, name) for name in ("exp", "iat", "nbf"))
        if expires is None or issued is None:
            raise InvalidToken("the token has no exp or no iat")
        if now - self.skew_s >= expires:
            raise InvalidToken(f"it expired at {expires} s, and now it is {now} s")
        if expires < issued or (begins is not None and expires < begins):
            raise InvalidToken("it expires before it begins")
        if begins is not None and now + self.skew_s < begins:
            raise InvalidToken(f"it begins at {begins} s, and now it is {now} s")
        return expires

    def _check_origin(self, claims: Claims) -> None:
        for name in ("iss", "jti", "sub"):
            if claims.get(name) is not None and not isinstance(claims[name], str):
                raise InvalidToken(f"{name} is no text")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise InvalidToken("the issuer is not the expected one")
        if self.audiences:
            given = claims.get("aud")
            audiences = [given] if isinstance(given, str) else given
            if not isinstance(audiences, list) or not all(isinstance(one, str) for one in audiences):
                raise InvalidToken("aud is missing, or is neither a text nor a list of texts")
            if not any(one in self.audiences for one in audiences):
                raise InvalidToken("the audience is not the expected one")

    def _check_scope(self, scope: object) -> None:
        given = [scope] if isinstance(scope, str) else scope if isinstance(scope, list) else []
        if not all(isinstance(one, str) and one.strip() for one in given):
            raise InvalidToken(f"{self.scope_claim} value must be non-empty")
        if len({one.strip() for one in given}) < len(given):
            raise InvalidToken(f"{self.scope_claim} value must not contain duplicates")


def _seconds(claims: Claims, name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        raise InvalidToken(f"{name} is not a time in seconds")
    return int(value)


def secured_validator(setup: MechanismSetup) -> SecuredValidator:
    """Makes a validator from the configuration, and reads the keys. Without a URL of keys they are those of the
    broker's own token endpoint. Raises ValueError.
    """

    def value(name: str) -> object:
        return setup.values.of_mechanism(setup.name, name)

    validator = value("sasl.oauthbearer.jwt.validator.class")
    if validator not in _VALIDATORS:
        raise ValueError(f"ottla cannot load Java classes; it has Kafka's {', '.join(_VALIDATORS)}")
    audiences = tuple(_texts(value("sasl.oauthbearer.expected.audience")))
    issuer = _text(value("sasl.oauthbearer.expected.issuer"))
    skew = value("sasl.oauthbearer.clock.skew.seconds")
    scope_claim = _required(value("sasl.oauthbearer.scope.claim.name"), "scope.claim.name")
    sub_claim = _required(value("sasl.oauthbearer.sub.claim.name"), "sub.claim.name")
    url = _text(value(_URL))
    assert isinstance(skew, int)
    made = partial(
        SecuredValidator,
        audiences=audiences,
        issuer=issuer,
        skew_s=skew,
        scope_claim=scope_claim,
        sub_claim=sub_claim,
    )
    if url is None:
        own = setup.services.issuer.opened(issuer, audiences)
        return made(lambda: own)
    _check_verified("audience", "aud", bool(audiences), value("sasl.oauthbearer.allow.unverified.audience"))
    _check_verified("issuer", "iss", issuer is not None, value("sasl.oauthbearer.allow.unverified.issuer"))
    scheme = _checked_scheme(url, str(setup.values.general(ALLOWED_URLS)))
    if scheme == "file":
        return made(JwksFile(unquote(urlsplit(url).path)).keys)
    options = setup.jaas.options if setup.jaas is not None else {}
    endpoint = JwksEndpoint(
        url,
        tls_context(options) if scheme == "https" else None,
        setup.services.turn,
        *(_milliseconds(value(name), name) for name in _TIMES),
    )
    return made(lambda: endpoint.keys, missing=endpoint.refresh_for)


def _checked_scheme(url: str, allowed: str) -> str:
    """Returns the scheme of a URL that may be read. `allowed`: URLs, separated by commas. Raises ConfigInvalid."""
    scheme = urlsplit(url).scheme.lower()
    if scheme not in ("http", "https", "file"):
        problem = (
            f'contains an invalid protocol ({scheme}); only "http", "https", and "file" protocol are supported'
            if scheme
            else f"is malformed: no protocol: {url}"
        )
        words = f"The OAuth configuration option {_URL} contains a URL ({url}) that {problem}"
        raise ConfigInvalid(_URL, url, None, words)
    if url not in (one.strip() for one in allowed.split(",")):
        restricted = (
            f"The URL cannot be accessed due to restrictions. Update the system property '{ALLOWED_URLS}' to allow the "
            "URL to be accessed."
        )
        raise ConfigInvalid(_URL, url, restricted)
    return scheme


def _check_verified(what: str, claim: str, is_given: bool, is_allowed: object) -> None:
    if is_given:
        return
    if not is_allowed:
        raise ValueError(
            f'The OAuth validator for the broker requires "{_KEY}expected.{what}" to be configured so that the '
            f'token\'s {what} ("{claim}") claim can be verified, but it was not set. Or set '
            f'"{_KEY}allow.unverified.{what}" to true to accept tokens regardless of their {what}.'
        )
    logger.warning("tokens are accepted regardless of their %s (%sallow.unverified.%s)", what, _KEY, what)


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else []


def _text(value: object) -> str | None:
    return str(value).strip() or None if value is not None else None


def _required(value: object, name: str) -> str:
    text = _text(value)
    if text is None:
        raise ValueError(f"The OAuth configuration option {_KEY}{name} value is required")
    return text


def _milliseconds(value: object, name: str) -> int:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"{name} must be positive")
    return value
