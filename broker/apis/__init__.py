"""One file per API key (`kNN_name.py`): the listing is the table of the APIs that the broker supports. Helpers of
several APIs are in `_name.py`.

A file `k03_metadata.py` serves key 3 with a function `handle(context, request)`, in all released versions of the
schemas. `AUTHORIZATION` says what a principal must be allowed, `ERRORS` where errors stand in the reply and which there
can be. The reply to a request that failed as a whole is made from that; if it is another one for some errors, a
function `failed(context, request, error)` makes it. If parts of a request can be refused, a function
`narrowed(context, request)` takes them out of it, and returns a function that puts their errors into the reply, or None
if all parts are allowed; it is called only if there is an authorizer. ApiVersions, the tables in the documentation and
the coverage of tests are computed from `apis`.
"""

from __future__ import annotations

import os
import re
from functools import cache

from ...protocol import headers, schema
from ..net.api import Api
from ..net.limits import elements_max

_FILE = re.compile(r"k(\d\d)_(\w+)")


@cache
def apis(unstable: bool = False) -> dict[int, Api]:
    """Returns every supported API by key; `unstable` adds versions that Kafka does not release yet. Refuses two files
    for one key.
    """
    found: dict[int, Api] = {}
    files = [one for folder in __path__ for one in os.listdir(folder) if one.endswith((".py", ".so"))]
    for name in sorted({one.partition(".")[0] for one in files}):
        if name.startswith("_"):  # a helper of several APIs
            continue
        parts = _FILE.fullmatch(name)
        if parts is None:
            raise ImportError(
                f"broker/apis/{name}.py is neither kNN_name.py (an API) nor _name.py (a helper of several APIs)"
            )
        key = int(parts[1])
        if key in found:
            raise ImportError(f"API key {key} has two files: {found[key].module}, {name}")
        names = schema.index()["apis"][str(key)]
        versions = schema.Versions.parse(names["versions"])
        high = versions.high - 1 if names["unstable"] and not unstable else versions.high
        request, response = names["request"], headers.response_name(key)
        found[key] = Api(key, __name__, name, request, response, versions.low, high, key == 0, elements_max(key))
    return dict(sorted(found.items()))
