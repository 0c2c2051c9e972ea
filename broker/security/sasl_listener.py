"""The SASL configuration of one listener: the mechanisms that it offers, and its limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...coordinator.hashing import java_order
from ...protocol.config_def import ConfigInvalid
from ..config.config import LOGIN_CONFIG, Config, ConfigError
from ..config.jaas import JaasEntry, parse_jaas
from ..config.jaas_file import Sections, entry_of
from ..config.listener_values import ListenerValues
from ..config.users import PASSWORD_MECHANISMS
from .mechanisms import MECHANISMS
from .sasl import Mechanism, MechanismSetup, SaslServices

ENABLED = "sasl.enabled.mechanisms"
JAAS = "sasl.jaas.config"
SECTION = "KafkaServer"
CALLBACK_HANDLER = "sasl.server.callback.handler.class"


@dataclass(frozen=True, slots=True)
class SaslListener:
    """`mechanisms`: by name, in Kafka's order; `session_ms_max`: by mechanism, after how many milliseconds a client
    must authenticate again, 0 for never (KIP-368); `receive_bytes_max`: of a frame before the client has authenticated;
    `failure_delay_ms`: how long the answer to a failed authentication waits.
    """

    mechanisms: Mapping[str, Mechanism]
    session_ms_max: Mapping[str, int]
    receive_bytes_max: int
    failure_delay_ms: int


def sasl_listener(config: Config, name: str, services: SaslServices) -> SaslListener:
    """Makes what the listener offers. Raises ConfigError."""
    values = config.of_listener(name)
    enabled = _enabled(config, values, bool(services.users))
    made = {one: _made(config, values, one, services) for one in java_order(dict.fromkeys(enabled))}
    return SaslListener(
        made,
        {one: values.of_mechanism(one, "connections.max.reauth.ms") for one in made},
        values["sasl.server.max.receive.size"],
        config["connection.failed.authentication.delay.ms"],
    )


def _enabled(config: Config, values: ListenerValues, has_users: bool) -> list[str]:
    """The mechanisms that are configured; if none are, but users are, those that take passwords."""
    if has_users and ENABLED not in config.given and values.own(ENABLED) is None:
        return list(PASSWORD_MECHANISMS)
    enabled: list[str] = values[ENABLED]
    for one in enabled:
        if one not in MECHANISMS:
            raise ConfigError(
                _where(config, values.prefix + ENABLED, ENABLED),
                f"{ENABLED}: ottla has no SASL mechanism {one!r} (found for the listener {values.listener}); "
                f"it has {', '.join(MECHANISMS)}",
            )
    if not enabled:
        raise ConfigError(_where(config, values.prefix + ENABLED, ENABLED), "No SASL mechanisms are enabled")
    return enabled


def _made(config: Config, values: ListenerValues, mechanism: str, services: SaslServices) -> Mechanism:
    known, jaas = MECHANISMS[mechanism], None
    prefix = f"{values.prefix}{mechanism.lower()}."
    handler = values.own(CALLBACK_HANDLER, mechanism)
    if handler is not None and handler not in known.callback_handlers:
        raise ConfigError(
            _where(config, prefix + CALLBACK_HANDLER),
            f"Invalid value {handler} for configuration {prefix}{CALLBACK_HANDLER}: ottla cannot load Java classes; "
            f"it has Kafka's {', '.join(known.callback_handlers)}",
        )
    try:
        jaas = _jaas(values, mechanism, services.sections)
    except ValueError as error:
        raise ConfigError(_where(config, prefix + JAAS, LOGIN_CONFIG), f"{prefix}{JAAS}: {error}") from None
    try:
        return known.make(MechanismSetup(mechanism, values, jaas, services))
    except ConfigInvalid as error:
        raise ConfigError(_where(config, prefix + error.name, error.name), str(error)) from None
    except ValueError as error:
        where = _where(config, prefix + JAAS, LOGIN_CONFIG, "listeners")
        raise ConfigError(where, f"{mechanism} on the listener {values.listener}: {error}") from None


def _jaas(values: ListenerValues, mechanism: str, file: Callable[[], Sections | None]) -> JaasEntry | None:
    """Returns the options of the mechanism's login module: in the JAAS line of the listener and mechanism, else in the
    section of the JAAS file for the listener, else in the one for all listeners (Kafka's JaasContext). Raises
    ValueError.
    """
    text = values.own(JAAS, mechanism)
    expected = MECHANISMS[mechanism].login_module
    if text is not None:
        entry = parse_jaas(text)
        if entry.module != expected:
            raise ValueError(f"No LoginModule found for {entry.module}; that of {mechanism} is {expected}")
        return entry
    sections = file()
    if sections is None:
        return None
    own = f"{values.listener.lower()}.{SECTION}"
    entries = sections.get(own, sections.get(SECTION))
    if entries is None:
        raise ValueError(
            f"Could not find a '{SECTION}' or '{own}' entry in the JAAS configuration. System property "
            f"'{LOGIN_CONFIG}' is {values.general(LOGIN_CONFIG)}"
        )
    return entry_of(entries, expected)


def _where(config: Config, *names: str) -> str:
    return next((config.where[name] for name in names if name in config.where), names[0])
