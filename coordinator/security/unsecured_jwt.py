"""Tokens without a signature, for development (Kafka's OAuthBearerUnsecuredValidatorCallbackHandler)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...protocol.errors import MalformedMessage
from .oauth_token import Claims, InvalidToken, Token, decoded, parse_json

_OPTION = "unsecuredValidator"
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_INT_MAX, _LONG_MAX = 2**31 - 1, 2**63 - 1
_TYPES = {int: "Number", float: "Number", str: "String", list: "List"}


@dataclass(frozen=True, slots=True)
class UnsecuredValidator:
    """The options of the JAAS line. `required_scope`: what a token's scope must contain, in the order given."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    skew_ms: int = 0

    def validate(self, text: str, now_ms: int) -> Token:
        """Returns the token. `now_ms`: wall time. Raises InvalidToken; raises MalformedMessage where Kafka closes the
        connection at once.
        """
        claims = _claims(text)
        scope = self._scope(claims)
        expires = _time(claims, "exp")
        if expires is None:
            raise InvalidToken("No expiration time in JWT")
        principal = claims.get(self.principal_claim)
        if principal is not None and not isinstance(principal, str):
            raise _wrong_type(self.principal_claim, "String", principal)
        if principal is None or not principal.strip():
            raise InvalidToken(f"No principal name in JWT claim: {self.principal_claim}")
        self._check_times(_time(claims, "iat"), expires, now_ms)
        for one in self.required_scope:
            if one not in scope:
                raise InvalidToken(f"the scope {one} is missing", f"[{', '.join(self.required_scope)}]")
        return Token(principal, _milliseconds(expires))

    def _scope(self, claims: Claims) -> list[str]:
        value = claims.get(self.scope_claim)
        if value is not None and not isinstance(value, str | list):
            raise _wrong_type(self.scope_claim, "List", value)
        found = [value] if isinstance(value, str) else value or []
        return [one.strip() for one in found if one.strip()]

    def _check_times(self, issued: float | None, expires: float, now_ms: int) -> None:
        if issued is not None and 1000 * issued > now_ms + self.skew_ms:
            raise InvalidToken(f"it was issued at {issued:f} s, and now it is {now_ms} ms")
        if now_ms - self.skew_ms >= 1000 * expires:
            raise InvalidToken(f"it expired at {expires:f} s, and now it is {now_ms} ms")
        if issued is not None and expires <= issued:
            raise InvalidToken(f"it expires at {expires:f} s, and was issued at {issued:f} s")


def unsecured_validator(options: Mapping[str, str]) -> UnsecuredValidator:
    """Makes a validator from the options of a JAAS line. Raises ValueError."""

    def option(name: str, default: str) -> str:
        return options.get(_OPTION + name, "").strip() or default

    required = tuple(filter(None, option("RequiredScope", "").split(" ")))
    for one in required:
        if not _SCOPE.fullmatch(one):
            raise ValueError(f"Invalid scope value: {one}")
    skew = option("AllowableClockSkewMs", "0")
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", skew) or int(skew) > _INT_MAX:
        raise ValueError(f"{_OPTION}AllowableClockSkewMs must be a number of milliseconds: {skew}")
    if int(skew) < 0:
        raise ValueError(f"Allowable clock skew millis must not be negative: {skew}")
    return UnsecuredValidator(
        option("PrincipalClaimName", "sub"), option("ScopeClaimName", "scope"), required, int(skew)
    )


def _claims(text: str) -> Claims:
    if ".." in text:
        raise InvalidToken("Malformed compact serialization contains '..'")
    parts = text.split(".", 3)
    if len(parts) != 3:
        raise InvalidToken("Unsecured JWS compact serializations must have 3 dot-separated Base64URL-encoded values")
    header, claims = _object(parts[0]), _object(parts[1])
    if "alg" not in header:
        raise MalformedMessage("token", "the header has no algorithm")
    if header["alg"] != "none":
        raise InvalidToken("Unsecured JWS must have 'none' for an algorithm")
    if parts[2]:
        raise InvalidToken("Unsecured JWS must not contain a digital signature")
    return claims


def _object(part: str) -> Claims:
    value = parse_json(decoded(part))
    return {key: _simple(one) for key, one in value.items()} if isinstance(value, dict) else {}


def _simple(value: object) -> object:
    """A value as Kafka compares it: a number, a text, or a list of texts."""
    if isinstance(value, list):
        return [_text(one) for one in value]
    return value if isinstance(value, int | float) and not isinstance(value, bool) else _text(value)


def _text(value: object) -> str:
    """A value as text (Jackson's asText)."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    return str(value) if isinstance(value, str | int | float) else ""


def _time(claims: Claims, name: str) -> float | None:
    value = claims.get(name)
    if value is not None and not isinstance(value, int | float):
        raise _wrong_type(name, "Number", value)
    if value is None:
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _milliseconds(seconds: float) -> int:
    ms = seconds * 1000
    return int(ms + 0.5) if ms < _LONG_MAX else _LONG_MAX


def _wrong_type(name: str, expected: str, value: object) -> InvalidToken:
    return InvalidToken(f"The '{name}' claim was not of type {expected}: {_TYPES.get(type(value), 'other')}")
