"""What the configuration says of delegation tokens."""

from __future__ import annotations

from ...coordinator.security.tokens import TokenRoom
from .config import Config


def token_room(config: Config) -> TokenRoom | None:
    """Returns how many delegation tokens there may be; None if the configuration has no secret key for them."""
    if not config["delegation.token.secret.key"]:
        return None
    return TokenRoom(
        config["ottla.delegation.tokens.max"],
        config["ottla.delegation.tokens.per.owner.max"],
        config["ottla.delegation.token.renewers.max"],
    )
