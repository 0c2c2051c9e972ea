"""The trace that the configuration asks for, from the start."""

from __future__ import annotations

from ...config.config import ConfigError
from ..lab import Lab
from ..shapes import Invalid
from .traces import PREFIX, Traces

KEYS = {"api": "apis", "client_id": "client.id"}  # of the configuration, for keys that have another name there


def start(lab: Lab) -> None:
    """Starts the trace. Raises ConfigError."""
    config = lab.server.config
    try:
        lab.part(Traces).start_configured()
    except OSError as error:
        where = config.where.get(PREFIX, PREFIX)
        raise ConfigError(where, f"{PREFIX}: cannot write the file {config[PREFIX]}: {error.strerror}") from None
    except Invalid as error:
        key = f"{PREFIX}.{KEYS.get(error.place, error.place)}"
        raise ConfigError(config.where.get(key, key), f"{key}: {error.problem}") from None
