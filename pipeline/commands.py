"""The commands of `ottla pipeline`."""

from __future__ import annotations

from .command import pipeline
from .serve_command import serve
from .verdict_command import verdict

pipeline.add_command(serve)
pipeline.add_command(verdict)
