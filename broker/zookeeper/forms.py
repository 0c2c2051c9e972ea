"""The forms of entities' nodes: configurations, and what has no node when there is nothing: rights and tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...protocol import zookeeper_paths as paths
from ...protocol import zookeeper_values as values
from . import rights, tokens
from .found import Entity, Values


@dataclass(frozen=True, slots=True)
class Form:
    """`values_of`: reads the value of a node, raises Malformed; `value_of`: makes one; `change_of`: makes the path
    without its number, and the value, of what says that an entity has changed.
    """

    values_of: Callable[[bytes], Values]
    value_of: Callable[[Values, paths.Number], bytes]
    change_of: Callable[[Entity, paths.Number], tuple[str, bytes]]
    goes_when_empty: bool = True


def _config_change_of(entity: Entity, release: paths.Number) -> tuple[str, bytes]:
    return f"{paths.CONFIG_CHANGES}/{paths.CONFIG_CHANGE_PREFIX}", values.config_change(*entity, release)


_CONFIG = Form(values.config_of, lambda found, _: values.config(found), _config_change_of, goes_when_empty=False)
_FORMS = dict.fromkeys(rights.KINDS, Form(rights.values_of, rights.value_of, rights.change_of))
_FORMS[paths.TOKENS] = Form(tokens.values_of, tokens.value_of, tokens.change_of)


def form_of(entity: Entity) -> Form:
    return _FORMS.get(entity[0], _CONFIG)
