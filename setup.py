"""Derives `protocol/messages.pyi` from the schemas before a wheel or an sdist is built, and puts the bill of materials
into wheels; with OTTLA_COMPILED=1 the modules that `compiled.py` names are compiled, which needs mypy and a C compiler.
Everything else is in pyproject.toml.
"""

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).resolve().parent))

from ottla.protocol import stubs

import compiled
import sbom


class Wheel(bdist_wheel):
    """Adds `.dist-info/sboms` (PEP 770)."""

    def egg2dist(self, egginfo_path: str, distinfo_path: str) -> None:
        super().egg2dist(egginfo_path, distinfo_path)
        sbom.write(Path(__file__).resolve().parent, self.distribution.get_version(), Path(distinfo_path))


class Compile(build_ext):
    """Translates the modules when they are built, and not for each command that asks for metadata."""

    def run(self) -> None:
        self.distribution.ext_modules = compiled.extensions()
        self.swig_opts = None  # as before the options were finalized, which is done again for these extensions
        self.finalized = 0
        self.ensure_finalized()
        super().run()


stubs.write()
setup(
    cmdclass={"bdist_wheel": Wheel, "build_ext": Compile},
    ext_modules=[Extension("ottla__mypyc", [])] if compiled.is_wanted() else [],
)
