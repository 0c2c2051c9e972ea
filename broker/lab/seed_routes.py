"""Topics and records, as a seed file names them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, TypedDict

from .. import seed as seeding
from ..config.config import SeedError
from ..later import Later, drive
from .lab import Lab
from .routes import Refused, route
from .shapes import INT64, Invalid, Range, Size

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class SeedRecord:
    """A record. Keys, values and headers are written as texts; null stays null."""

    value: Scalar = None
    key: Scalar = None
    partition: Annotated[int, Range(0)] = 0
    timestamp: Annotated[int, "Milliseconds since 1970.", Range(0, INT64)] = 0
    headers: dict[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True)
class SeedTopic:
    """A topic with its records."""

    name: str
    partitions: Annotated[int, Range(1, 1000)] = 1
    configs: dict[str, object] = field(default_factory=dict)
    records: Annotated[list[SeedRecord], Size(high=10_000)] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number, record in enumerate(self.records):
            if record.partition >= self.partitions:
                raise Invalid(f"records[{number}].partition", f"the topic has {self.partitions} partitions")


@dataclass(frozen=True)
class Seeds:
    """Topics to create."""

    topics: Annotated[list[SeedTopic], Size(1, 1000)]


class SeededView(TypedDict):
    """The topics that were created; those that existed stay as they are."""

    created: list[str]


@route(
    "POST /v1/seed",
    example=Seeds([SeedTopic("seeded", records=[SeedRecord("first", key="a")])]),
    errors={409: "a topic cannot be created or a record cannot be written"},
)
def seed(lab: Lab, asked: Seeds) -> Later[SeededView]:
    """Creates topics with records. A topic that exists is left as it is."""
    return drive(_plant(lab, asked))


async def _plant(lab: Lab, asked: Seeds) -> SeededView:
    new = [one for one in asked.topics if one.name not in lab.broker.image.topics]
    try:
        await seeding.plant(lab.broker, [_as_seeded(one) for one in new])
    except SeedError as error:
        raise Refused(409, str(error)) from None
    return {"created": [one.name for one in new]}


def _as_seeded(topic: SeedTopic) -> seeding.SeedTopic:
    records: list[seeding.SeedRecord] = [
        {
            "key": one.key,
            "value": one.value,
            "partition": one.partition,
            "timestamp": one.timestamp,
            "headers": {str(name): value for name, value in one.headers.items()},
        }
        for one in topic.records
    ]
    return {"name": topic.name, "partitions": topic.partitions, "configs": topic.configs, "records": records}
