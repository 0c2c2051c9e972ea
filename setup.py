"""Derives `protocol/messages.pyi` from the schemas before a wheel or an sdist is built, and puts the bill of materials
into wheels; everything else is in pyproject.toml.
"""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel

sys.path.insert(0, str(Path(__file__).resolve().parent))

from ottla.protocol import stubs

import sbom


class Wheel(bdist_wheel):
    """Adds `.dist-info/sboms` (PEP 770)."""

    def egg2dist(self, egginfo_path: str, distinfo_path: str) -> None:
        super().egg2dist(egginfo_path, distinfo_path)
        sbom.write(Path(__file__).resolve().parent, self.distribution.get_version(), Path(distinfo_path))


stubs.write()
setup(cmdclass={"bdist_wheel": Wheel})
