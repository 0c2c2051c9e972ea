"""Names of APIs on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import click

from .protocol import schema


def known(names: Iterable[str]) -> frozenset[str]:
    """Returns APIs by their names, which are in any case. Raises BadParameter for one that does not exist."""
    by_name = {
        one["request"].removesuffix("Request").lower(): one["request"].removesuffix("Request")
        for one in schema.index()["apis"].values()
    }
    for name in names:
        if name.lower() not in by_name:
            close = get_close_matches(name.lower(), by_name, 1)
            raise click.BadParameter(f"no API {name!r}{f' (did you mean {by_name[close[0]]}?)' if close else ''}")
    return frozenset(by_name[name.lower()] for name in names)
