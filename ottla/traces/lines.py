"""Events of a trace for people: a line each, or all fields."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from ..protocol.errors import Errors
from ..protocol.text import printable
from ..verdict.trace_lines import Event, number
from .reading import filters, text
from .walking import Topics, errors, groups, leaves, transactional_ids

NAMES_MAX = 4
UNITS = ((1 << 20, "MB"), (1 << 10, "KB"))


def at(event: Event) -> str:
    """The time of an event, in the zone of this machine, with the microseconds of its monotonic time."""
    at_ms = number(event, "at_ms")
    shown = datetime.fromtimestamp(at_ms / 1000)
    return f"{shown:%H:%M:%S}.{at_ms % 1000:03}"


def size_of(count: int) -> str:
    for unit, name in UNITS:
        if count >= unit:
            return f"{count / unit:.1f}{name}"
    return f"{count}B"


def error_name(code: int) -> str:
    try:
        return Errors(code).name
    except ValueError:
        return str(code)


def line(event: Event, topics: Topics) -> str:
    """One event, in one line."""
    kind = event["event"]
    if kind == "trace":
        broker, cluster, first = (event.get(name) for name in ("broker", "cluster_id", "node_id"))
        only = filters(event)
        return printable(f"trace of {broker}, cluster {cluster}, node {first}{f', only {only}' if only else ''}")
    if kind == "damaged":
        return printable(f"{event.get('where')}: a damaged line is left out")
    if kind == "dropped":
        return f"... {event.get('count')} events are missing"
    node = f" node {event['node']}" if "node" in event else ""
    start = f"{at(event)} #{event.get('connection')} {event.get('peer')}{node}"
    if kind in ("opened", "closed"):
        listener = f" on {event['listener']}" if "listener" in event else ""
        return printable(f"{start} {kind}{listener}{_end(event)}")
    if kind == "refused":
        where = f"key {event.get('key')} v{event.get('version')} id={event.get('correlation_id')}"
        return printable(f"{start} > {where} {size_of(number(event, 'size'))} refused: {event.get('reason')}")
    return printable(f"{start} {'>' if kind == 'request' else '<'} {' '.join(_exchange(event, topics))}")


def _end(event: Event) -> str:
    """Who closed a connection, and why, where a trace says so."""
    reason = f" ({event['reason']})" if "reason" in event else ""
    return f" by the {event['by']}{reason}" if "by" in event else ""


def _exchange(event: Event, topics: Topics) -> Iterator[str]:
    yield f"{event.get('api')} v{event.get('version')} id={event.get('correlation_id')}"
    found = list(leaves(event))
    topics.learn(found)
    if event["event"] == "request":
        yield f"client={text(event, 'client_id') or '-'}"
    else:
        yield f"{number(event, 'latency_us') / 1000:.1f}ms"
        waiting = event.get("waiting")
        if isinstance(waiting, list):
            yield f"waiting={len(waiting)}"
    yield size_of(number(event, "size"))
    for noun, names in (
        ("topic", topics.of(found)),
        ("group", groups(found)),
        ("transaction", transactional_ids(found)),
    ):
        if names:
            more = f"+{len(names) - NAMES_MAX}" if len(names) > NAMES_MAX else ""
            yield f"{noun}={','.join(names[:NAMES_MAX])}{more}"
    if event["event"] == "reply":
        if event.get("message") is None:
            yield "no reply" if not event.get("size") else "cannot be decoded"
        counted = Counter(error_name(code) for _, code in errors(event))
        yield from (f"{name}x{count}" if count > 1 else name for name, count in counted.items())


def detailed(event: Event, topics: Topics) -> Iterator[str]:
    """One event, with all fields of its message."""
    yield line(event, topics)
    if event["event"] in ("request", "reply"):
        who = ("principal", "listener", "software", "software_version", "exchange")
        yield printable("    " + "  ".join(f"{name}={event.get(name)}" for name in who))
        yield from ("    " + printable(one) for one in json.dumps(event.get("message"), indent=2).splitlines())
