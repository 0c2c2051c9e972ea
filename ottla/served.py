"""The APIs that a configuration serves, and what dispatches them: those of an emulated release, or today's."""

from __future__ import annotations

from .broker.apis import apis
from .broker.config.config import Config
from .broker.net.api import Api
from .broker.net.dispatch import Dispatcher


def served_by(config: Config) -> tuple[dict[int, Api], type[Dispatcher]]:
    """Returns the APIs by key, and the class of their dispatcher. Imports what emulates a release only if one is."""
    present = apis(config["unstable.api.versions.enable"])
    if config.emulates is None:
        return present, Dispatcher
    from .broker.emulation.apis import emulated
    from .broker.emulation.dispatching import EmulatingDispatcher
    from .broker.emulation.releases import release_of

    return emulated(release_of(config), present), EmulatingDispatcher
