"""The token endpoint: it grants tokens to clients of OAUTHBEARER, if a listener takes the broker's own."""

from __future__ import annotations

import json
from typing import Literal, NotRequired, TypedDict

from ..limits import WRONG_SECRETS
from .encode import JSON
from .http import Request, Response
from .lab import Lab
from .routes import Refused, plain_route

NO_TOKENS = {404: "no listener takes the broker's own tokens"}


class TokenForm(TypedDict):
    """Who wants a token."""

    grant_type: Literal["client_credentials"]
    client_id: NotRequired[str]
    client_secret: NotRequired[str]
    scope: NotRequired[str]


class TokenView(TypedDict):
    """A token, and for how many seconds it is valid."""

    access_token: str
    token_type: str
    expires_in: int
    scope: NotRequired[str]


class KeysView(TypedDict):
    """A JSON Web Key Set."""

    keys: list[dict[str, str]]


@plain_route(
    "POST /oauth/token",
    reply=TokenView,
    form=TokenForm,
    errors={
        **NO_TOKENS,
        400: "the form is not valid",
        401: "name or password are wrong",
        429: "there were too many wrong passwords",
    },
)
def token(lab: Lab, request: Request) -> Response:
    """Grants a signed token for a form (`application/x-www-form-urlencoded`) with `grant_type=client_credentials`. Name
    and password of a user are in the header `Authorization`, or in `client_id` and `client_secret`.
    """
    issuer = lab.broker.token_issuer
    if issuer is None or issuer.jwks is None:
        raise Refused(404, NO_TOKENS[404])
    granted = issuer.grant(request.peer, request.headers.get("authorization", ""), request.body)
    if granted.status == 429:
        lab.broker.limits.reached(WRONG_SECRETS, request.peer)
    return Response(granted.status, JSON, json.dumps(granted.reply).encode())


@plain_route("GET /oauth/jwks", reply=KeysView, errors=NO_TOKENS)
def jwks(lab: Lab, request: Request) -> Response:
    """Returns the public keys of these tokens."""
    issuer = lab.broker.token_issuer
    if issuer is None or issuer.jwks is None:
        raise Refused(404, NO_TOKENS[404])
    return Response(200, JSON, issuer.jwks)
