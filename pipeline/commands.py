"""The commands of `ottla pipeline`."""

from __future__ import annotations

from .command import pipeline
from .verdict_command import verdict

pipeline.add_command(verdict)
