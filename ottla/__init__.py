"""ottla: a Kafka-compatible broker that starts in a blink."""

from pathlib import Path

__version__ = "0.1.0"

_root = Path(__file__).resolve().parent.parent
if (_root / "pyproject.toml").exists():  # a checkout: its folders are our subpackages
    __path__.append(str(_root))
