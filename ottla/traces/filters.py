"""Which events of a trace are shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ..verdict.trace_lines import Event, number
from .reading import text
from .walking import Topics, errors, groups, leaves, names_ids


@dataclass(frozen=True)
class Chosen:
    """What is asked for; what is not given matches all. Texts are patterns (`orders-*`); times are milliseconds."""

    apis: frozenset[str] = field(default_factory=frozenset)
    client_id: str | None = None
    connection: int | None = None
    node: int | None = None
    topic: str | None = None
    group: str | None = None
    correlation_id: int | None = None
    errors_only: bool = False
    since_ms: int | None = None
    until_ms: int | None = None


class Filter:
    """Takes the events of a trace one after the other. A reply is shown if its request was, or if it names a topic or
    group itself.
    """

    def __init__(self, chosen: Chosen, topics: Topics) -> None:
        self._chosen = chosen
        self._topics = topics
        self._first_node: object = None  # that of connections without one: the trace is of one node
        self._asked: set[tuple[int, int]] = set()  # requests that were shown and not answered yet

    def takes(self, event: Event) -> bool:
        """Whether an event is shown."""
        kind, chosen = event["event"], self._chosen
        if kind == "reply" and names_ids(number(event, "key")):  # also of replies that are not shown
            self._topics.learn(list(leaves(event)))
        if kind == "trace":
            self._first_node = event.get("node_id")
        if kind in ("trace", "dropped", "damaged"):
            return not chosen.errors_only or kind != "trace"
        if not self._takes_time(event):
            return False
        if chosen.connection is not None and chosen.connection != number(event, "connection"):
            return False
        if chosen.node is not None and chosen.node != event.get("node", self._first_node):
            return False
        if kind in ("request", "reply"):
            return self._takes_exchange(event)
        if chosen.apis or chosen.client_id or chosen.topic or chosen.group:
            return False
        if kind == "refused":
            return self._takes_id(event)
        return not chosen.errors_only and chosen.correlation_id is None

    def _takes_time(self, event: Event) -> bool:
        at_ms, chosen = number(event, "at_ms"), self._chosen
        return (chosen.since_ms is None or at_ms >= chosen.since_ms) and (
            chosen.until_ms is None or at_ms <= chosen.until_ms
        )

    def _takes_id(self, event: Event) -> bool:
        return self._chosen.correlation_id in (None, event.get("correlation_id"))

    def _takes_exchange(self, event: Event) -> bool:
        chosen = self._chosen
        if chosen.apis and text(event, "api") not in chosen.apis:
            return False
        if chosen.client_id is not None and not fnmatchcase(text(event, "client_id"), chosen.client_id):
            return False
        if not self._takes_id(event):
            return False
        if (chosen.topic is not None or chosen.group is not None) and not self._takes_message(event):
            return False
        return not chosen.errors_only or bool(errors(event))

    def _takes_message(self, event: Event) -> bool:
        """Whether a message names the topic and the group, or answers one that does."""
        found, chosen = list(leaves(event)), self._chosen
        exchange = number(event, "connection"), number(event, "exchange")
        is_asked = exchange in self._asked
        self._asked.discard(exchange)
        takes = all(
            wanted is None or any(fnmatchcase(name, wanted) for name in named)
            for wanted, named in ((chosen.topic, self._topics.of(found)), (chosen.group, groups(found)))
        )
        if takes and event["event"] == "request":
            self._asked.add(exchange)
        return takes or is_asked
