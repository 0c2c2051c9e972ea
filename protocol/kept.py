"""What the codec makes of the schemas, kept beside Python's compiled modules: a start need not make it again.

A value is kept as Python keeps a module: in `__pycache__` (or under PYTHONPYCACHEPREFIX), for one version of Python,
and not with PYTHONDONTWRITEBYTECODE. It counts as long as its schema and the modules that make it have the size and the
time of change that they had; where they cannot be read, or nothing can be written, values are made as if none was kept.
"""

from __future__ import annotations

import marshal
import os
import sys
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from typing import TYPE_CHECKING, Final, TypeAlias

from .schema_files import DIRECTORY

if TYPE_CHECKING:
    from types import CodeType

    Value: TypeAlias = CodeType | str | bytes | int | float | tuple["Value", ...] | None

MAKERS: Final = (
    *("codec", "emit", "encoded", "functions", "kept", "message", "messages", "outlines", "schema", "structs"),
    *("trees", "wire"),
)
"""The modules that decide what is kept."""
_FOLDER: Final = os.path.dirname(os.path.realpath(__file__))
_FILES: Final = SourceFileLoader(__name__, __file__)
_STAMP_BYTES: Final = 8
_BEGIN: Final = len(MAGIC_NUMBER) + _STAMP_BYTES


def load(schema: str, what: str) -> object | None:
    """Returns what was kept of a schema under the name `what`; None if nothing is, or if it may be different now."""
    try:
        data = _FILES.get_data(_path(schema, what))
        if data[:_BEGIN] != _head(schema):
            return None
        value: object = marshal.loads(memoryview(data)[_BEGIN:])
    except (OSError, EOFError, ValueError, TypeError):
        return None
    return value


def save(schema: str, what: str, value: Value) -> None:
    """Keeps a value of numbers, strings, tuples and code."""
    if sys.dont_write_bytecode:
        return
    try:
        head = _head(schema)
    except OSError:
        return
    _FILES.set_data(_path(schema, what), head + marshal.dumps(value))  # one that cannot be written is no error


def _path(schema: str, what: str) -> str:
    return cache_from_source(f"{_FOLDER}/{schema}.{what}.py")


def _head(schema: str) -> bytes:
    """Returns how a file begins that may be used. Raises OSError if a source cannot be read."""
    for folder in ("messages", "records"):
        try:
            return MAGIC_NUMBER + source_hash(repr((_state(f"{DIRECTORY}/{folder}/{schema}.json"), _makers())).encode())
        except FileNotFoundError:
            continue
    raise FileNotFoundError(schema)


@cache
def _makers() -> tuple[tuple[int, int], ...]:
    return tuple(_state(f"{_FOLDER}/{name}.py") for name in MAKERS)


def _state(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return int(found.st_mtime), found.st_size  # whole seconds, as Python's: archives and images keep no more
