"""The trace that the configuration asks for, from the start."""

from __future__ import annotations

from ...config.config import ConfigError
from ..lab import Lab
from .traces import PREFIX, Traces


def start(lab: Lab) -> None:
    """Starts the trace. Raises ConfigError."""
    config = lab.server.config
    try:
        lab.part(Traces).start_configured()
    except OSError as error:
        where = config.where.get(PREFIX, PREFIX)
        raise ConfigError(where, f"{PREFIX}: cannot write the file {config[PREFIX]}: {error.strerror}") from None
    except ValueError as error:
        key = f"{PREFIX}.apis"
        raise ConfigError(config.where.get(key, key), f"{key}: {error}") from None
