"""The files of `schemas`: Kafka's schemas of messages, and tables of what else is to know of Kafka."""

from __future__ import annotations

import os
from typing import Final

DIRECTORY: Final = f"{os.path.dirname(os.path.dirname(os.path.realpath(__file__)))}/schemas"


def read(name: str, directory: str = DIRECTORY) -> str:
    """Returns the text of a file. Raises FileNotFoundError."""
    with open(f"{directory}/{name}", encoding="utf-8") as file:
        return file.read()
