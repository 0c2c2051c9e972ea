"""ottla: a Kafka-compatible broker that starts in a blink."""

import os

__version__ = "0.1.0"

_root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.exists(f"{_root}/pyproject.toml"):  # a checkout: its folders are our subpackages
    __path__.append(_root)
