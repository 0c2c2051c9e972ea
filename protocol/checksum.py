"""CRC-32C, by the C extension of the package crc32c.

When that package is imported, it reads its own version out of the metadata of what is installed, for which Python
imports forty modules: a sixteenth of a start. So the extension is loaded without the package around it.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crc32c import crc32c


def _extension() -> ModuleType:
    """Returns the module `_crc32c` of the package. Raises ImportError."""
    package = find_spec("crc32c")
    spec = PathFinder.find_spec("_crc32c", package.submodule_search_locations if package is not None else [])
    if spec is None or spec.loader is None:
        raise ImportError("the package crc32c has no extension _crc32c")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if not TYPE_CHECKING:
    crc32c = _extension().crc32c

__all__ = ["crc32c"]
