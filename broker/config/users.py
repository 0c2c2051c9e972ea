"""Users that the configuration names, with their passwords (`ottla.users`, and `users` in the seed file).

    ottla.users=alice:alice-secret; bob:bob-secret:SCRAM-SHA-512

Entries are separated by semicolons. An entry is a name, a password, and optionally the SASL mechanisms with which the
user can log in, separated by commas; without them it is all mechanisms that take passwords.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class User(NamedTuple):
    """A user. The password is not shown."""

    name: str
    password: str
    mechanisms: tuple[str, ...] = PASSWORD_MECHANISMS

    def __repr__(self) -> str:
        return f"User(name={self.name!r}, mechanisms={self.mechanisms!r})"


def parse_users(text: str) -> list[User]:
    """Parses `ottla.users`. Raises ValueError, whose message contains no password."""
    entries = (one.strip() for one in text.replace("\n", ";").split(";"))
    users = [_user(number, entry) for number, entry in enumerate(filter(None, entries), 1)]
    check_names(users)
    return users


def _user(number: int, entry: str) -> User:
    name, _, rest = (part.strip() for part in entry.partition(":"))
    password, _, last = rest.rpartition(":")
    named = tuple(one.strip().upper() for one in last.split(","))
    if password and all(one in PASSWORD_MECHANISMS for one in named):
        return checked_user(f"entry {number}", name, password.strip(), named)
    return checked_user(f"entry {number}", name, rest)


def checked_user(place: str, name: str, password: str, mechanisms: tuple[str, ...] = PASSWORD_MECHANISMS) -> User:
    """Returns a user. Raises ValueError if the name or the password is missing, or a mechanism takes no password."""
    if not name or not password:
        raise ValueError(f"{place} must be NAME:PASSWORD or NAME:PASSWORD:MECHANISM,MECHANISM")
    for one in mechanisms:
        if one not in PASSWORD_MECHANISMS:
            raise ValueError(f"{place}: {one} takes no password; write one of {', '.join(PASSWORD_MECHANISMS)}")
    return User(name, password, mechanisms)


def check_names(users: Iterable[User]) -> None:
    """Raises ValueError if a name occurs twice."""
    seen: dict[str, None] = {}
    for user in users:
        if user.name in seen:
            raise ValueError(f"the user {user.name!r} is named twice")
        seen[user.name] = None
