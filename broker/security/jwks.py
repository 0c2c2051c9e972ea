"""Keys of an authorization server (JWKS, RFC 7517), and the signatures that they verify (RFC 7515).

The algorithm is one of `ALGORITHMS` for the type of the key: a token can ask neither for none nor for a secret's
algorithm with a public key. Keys are chosen as jose4j does, which Kafka uses. The payload of a token may be a token, of
which both signatures count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from ...coordinator.security.oauth_token import Claims, InvalidToken, decoded, parse_json

if TYPE_CHECKING:
    from jwt.algorithms import AllowedPublicKeys

SECRET_BYTES_MIN = {256: 32, 384: 48, 512: 64}
ALGORITHMS: Mapping[str, tuple[str, str | None]] = {
    **{f"{family}{bits}": ("RSA", None) for family in ("RS", "PS") for bits in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
    **{f"HS{bits}": ("oct", None) for bits in SECRET_BYTES_MIN},
}
"""The type of key of an algorithm, and its curve."""
KEYS_MAX = 1000
RSA_BITS_MIN, RSA_BITS_MAX = 2048, 16384
TOKEN_TYPES = ("jwt", "application/jwt")
THUMBS = ("x5t", "x5t#S256")
_PRIVATE = ("d", "p", "q", "dp", "dq", "qi", "oth")


class Key(NamedTuple):
    """A key, by the members of its JWK. `value`: an object of cryptography, or the bytes of a secret. `thumbs`: the
    thumbprints of its certificate.
    """

    kid: object
    kty: str
    crv: object
    alg: object
    value: AllowedPublicKeys | bytes
    thumbs: tuple[object, ...]


class KeyMissing(InvalidToken):
    """No key fits the token. `kid`: the identifier that it names, if any."""

    def __init__(self, kid: str | None) -> None:
        super().__init__("there is no key that fits the header")
        self.kid = kid


class KeySet:
    """The keys that can verify signatures; others in the set are left out."""

    def __init__(self, data: bytes) -> None:
        """Parses a JWKS. Raises ValueError."""
        try:
            value = parse_json(data)
        except InvalidToken as error:
            raise ValueError(f"the JWKS is {error}") from None
        keys = value.get("keys") if isinstance(value, dict) else None
        if not isinstance(keys, list):
            raise ValueError("the JWKS has no 'keys'")
        found = (_key(one) for one in keys[:KEYS_MAX] if isinstance(one, dict))
        self.keys = [one for one in found if one is not None]

    def verified(self, text: str) -> Claims:
        """Returns the claims of a token whose signature is valid. Raises InvalidToken or KeyMissing."""
        is_token, payload = True, text.encode()
        while is_token:
            is_token, payload = self._opened(payload.decode("utf-8", "replace"))
        claims = parse_json(payload)
        if not isinstance(claims, dict):
            raise InvalidToken("the claims are no JSON object")
        return claims

    def _opened(self, text: str) -> tuple[bool, bytes]:
        """Returns the payload of a token, and whether it is a token. Raises InvalidToken or KeyMissing."""
        import jwt

        header = parse_json(decoded(text.partition(".")[0]))
        algorithm = header.get("alg") if isinstance(header, dict) else None
        if not isinstance(header, dict) or not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise InvalidToken("the algorithm is not allowed")
        if "crit" in header or header.get("b64") is False:
            raise InvalidToken("the header asks for what is not supported")
        key = self._fitting(header, algorithm)
        if isinstance(key.value, bytes) and len(key.value) < SECRET_BYTES_MIN[int(algorithm[2:])]:
            raise InvalidToken(f"the secret is too short for {algorithm}")
        try:
            found = jwt.PyJWS(algorithms=[algorithm]).decode_complete(text, key.value, algorithms=[algorithm])
        except jwt.PyJWTError as error:
            raise InvalidToken(f"{error}") from None
        payload: bytes = found["payload"]
        return str(header.get("cty")).lower() in TOKEN_TYPES, payload

    def _fitting(self, header: Claims, algorithm: str) -> Key:
        kid = header.get("kid")
        kty, crv = ALGORITHMS[algorithm]
        fitting = [one for one in self.keys if one.kty == kty and (crv is None or one.crv == crv)]
        fitting = [one for one in fitting if kid is None or one.kid == kid]
        for index, name in enumerate(THUMBS):
            thumb = header.get(name)
            fitting = [one for one in fitting if thumb is None or one.thumbs[index] in (None, thumb)]
        if len(fitting) > 1:
            fitting = [one for one in fitting if one.alg in (None, algorithm)]
        if not fitting:
            raise KeyMissing(kid if isinstance(kid, str) else None)
        return fitting[0]


def _key(jwk: dict[str, object]) -> Key | None:
    """The key, if it can verify signatures."""
    import jwt

    kty, crv = jwk.get("kty"), jwk.get("crv")
    algorithm = next((name for name, wanted in ALGORITHMS.items() if wanted in ((kty, crv), (kty, None))), None)
    operations = jwk.get("key_ops", ["verify"])
    is_for_signatures = jwk.get("use", "sig") == "sig" and isinstance(operations, list) and "verify" in operations
    if algorithm is None or not is_for_signatures:
        return None
    try:
        made = jwt.PyJWK({k: v for k, v in jwk.items() if k not in _PRIVATE}, algorithm=algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    value = cast("AllowedPublicKeys | bytes", made)  # no private member is left
    if isinstance(value, RSAPublicKey) and not RSA_BITS_MIN <= value.key_size <= RSA_BITS_MAX:
        return None
    return Key(jwk.get("kid"), str(kty), crv, jwk.get("alg"), value, tuple(jwk.get(name) for name in THUMBS))
