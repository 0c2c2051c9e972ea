"""What the broker does from time to time, done now."""

from __future__ import annotations

from typing import TypedDict

from .lab import Lab
from .routes import Nothing, route
from .watermark_routes import ABSENT, Place


class DoneView(TypedDict):
    done: bool


class BegunView(TypedDict):
    """Whether there was something to compact."""

    begun: bool


class ReloadedView(TypedDict):
    """The partitions or share-partitions that were loaded again."""

    reloaded: list[str]


@route("POST /v1/retention", example=Nothing())
def retention(lab: Lab, asked: Nothing) -> DoneView:
    """Runs the next round of retention now."""
    lab.broker.turn.event(lab.broker.replicas.apply_retention)
    return {"done": True}


@route("POST /v1/compact", example=Nothing())
def compact(lab: Lab, asked: Nothing) -> BegunView:
    """Compacts the log that is next, now."""
    return {"begun": lab.broker.replicas.cleaner.clean_one()}


@route("POST /v1/reload", example=Place("__consumer_offsets"), errors=ABSENT)
def reload(lab: Lab, asked: Place) -> ReloadedView:
    """Unloads and loads the coordinators of an internal topic, as when they move to another broker; of another topic,
    its share-partitions.
    """
    found, broker = asked.partitions(lab), lab.broker
    family = broker.coordinators.get(str(asked.topic))
    if family is None:
        names: list[str] = []
        broker.turn.event(lambda: names.extend(n for p in found for n in broker.share_partitions.reload(p)))
        return {"reloaded": names}
    for partition in found:
        broker.turn.event(lambda partition=partition: family.reload(partition))  # type: ignore[misc]
    return {"reloaded": [p.name for p in found]}


@route("POST /v1/reset", example=Nothing())
def reset(lab: Lab, asked: Nothing) -> DoneView:
    """Ends what the lab has changed: policies are those of the configuration, and faults, holds and the rest are gone.
    Topics and records stay.
    """
    broker = lab.broker
    lab.reset()
    broker.policies.clear()
    broker.policies.configure(broker.config["ottla.high.watermark"], broker.config["ottla.isr.size"])
    broker.turn.event(broker.replicas.configure)
    return {"done": True}


@route("POST /v1/expire", example=Nothing())
def expire(lab: Lab, asked: Nothing) -> DoneView:
    """Expires committed offsets and groups now."""
    lab.broker.turn.event(lab.broker.groups.expire)
    return {"done": True}
