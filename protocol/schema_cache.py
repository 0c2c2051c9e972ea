"""A cache of what the codec derives from the schemas, in files beside Python's compiled modules: a start need not
derive it again.

A value has a file in `__pycache__` (or under PYTHONPYCACHEPREFIX), for one version of Python. It is written as Python
writes a compiled module: not with PYTHONDONTWRITEBYTECODE, and in one step, so that several processes may write it at
once. The file begins with two hashes. One is of all that the value is derived from: the schema, and the modules that
decide what is made of it. Times and sizes of files would not do, because installers may give a new release the times of
the old one, and `__pycache__` outlives it. The other one is of the value, because unmarshalling damaged bytes may end
the process. Where a file or its sources cannot be read or written, the codec works as it does without a cache.
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
    *("buffers", "cached_functions", "codec", "emit", "encoded", "errors", "message", "messages", "outlines"),
    *("schema", "schema_cache", "schema_files", "streams", "structs", "text", "trees", "varints", "wire"),
)
"""The modules that take part in what is made of a schema."""
SCHEMA_FOLDERS: Final = ("messages", "records", "old")
_FOLDER: Final = os.path.dirname(os.path.realpath(__file__))
_FILES: Final = SourceFileLoader(__name__, __file__)
_VALUE_AT: Final = 16  # after the two hashes


def load(schema: str, name: str) -> object | None:
    """Returns the value of a schema that was saved as `name`; None if there is none, or if it may be different now."""
    try:
        sources = _hash_of_sources(schema)
        data = memoryview(_FILES.get_data(_path(schema, name)))
    except OSError:
        return None
    value = data[_VALUE_AT:]
    if data[:_VALUE_AT] != sources + source_hash(value):
        return None
    loaded: object = marshal.loads(value)
    return loaded


def save(schema: str, name: str, value: Value) -> None:
    """Saves a value of numbers, strings, tuples and code, where Python would save a compiled module."""
    if sys.dont_write_bytecode:
        return
    try:
        path, sources = _path(schema, name), _hash_of_sources(schema)
    except OSError:
        return
    data = marshal.dumps(value)
    _FILES.set_data(path, sources + source_hash(data) + data)  # raises nothing where it cannot write


def _path(schema: str, name: str) -> str:
    """Returns the path of a value's file. Raises FileNotFoundError where Python has no files of compiled modules."""
    try:
        return cache_from_source(f"{_FOLDER}/{schema}.{name}.py")
    except NotImplementedError as error:  # without `sys.implementation.cache_tag`
        raise FileNotFoundError(str(error)) from None


@cache  # of the first use, which is before anything is made of the schema
def _hash_of_sources(schema: str) -> bytes:
    """Returns the hash of what all values of a schema are derived from. Raises OSError if it cannot be read."""
    parts = [MAGIC_NUMBER, *_makers()]
    for folder in SCHEMA_FOLDERS:
        try:
            parts.append(_FILES.get_data(f"{DIRECTORY}/{folder}/{schema}.json"))
        except FileNotFoundError:
            parts.append(b"")
    return source_hash(b"\0".join(parts))


@cache
def _makers() -> list[bytes]:
    return [source_hash(_FILES.get_data(f"{_FOLDER}/{name}.py")) for name in MAKERS]
