"""Seeding: topics, records and users that a YAML file names are there when the broker is.

    users:
      - {name: alice, password: alice-secret, mechanisms: [SCRAM-SHA-256]}
    topics:
      - name: orders
        partitions: 3
        configs: {cleanup.policy: compact}
        records:
          - {key: a, value: "1", partition: 0, headers: {source: seed}}

A topic that exists is left as it is, records and all. The SCRAM credentials of a user stay in the metadata as long as
its password is the same; those of users that are no longer named stay too.
"""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path
from typing import NamedTuple, NotRequired, TypedDict, TypeVar, cast

from ..coordinator.metadata import credentials, topics
from ..coordinator.security.scram import ITERATIONS_MIN, MECHANISMS, ScramMechanism, credential_of, salted_password
from ..protocol import messages, records
from ..protocol.errors import ApiError
from ..protocol.records import Record
from .broker import Broker
from .config.config import SeedError
from .config.users import PASSWORD_MECHANISMS, User, check_names, checked_user
from .later import Later
from .steps import off_loop

logger = logging.getLogger("ottla.seed")
SALT_BYTES = 16
PLACE = re.compile(r"(?:topics|users)(?:\[\d+\]|\.\w+)*")
STEP = re.compile(r"\[(\d+)\]|(\w+)")
T = TypeVar("T")


class SeedRecord(TypedDict, total=False):
    """A record of a seed file."""

    key: object
    value: object
    partition: int
    timestamp: int
    headers: dict[object, object] | None


class SeedTopic(TypedDict):
    """A topic of a seed file."""

    name: str
    partitions: NotRequired[int]
    configs: NotRequired[dict[str, object] | None]
    records: NotRequired[list[SeedRecord] | None]


class Seed(NamedTuple):
    """What a seed file names."""

    topics: list[SeedTopic]
    users: list[User]


async def settled(later: Later[T]) -> T:
    """Waits for a result in a task of asyncio."""
    done = asyncio.Event()
    later.when_done(lambda _: done.set())
    await done.wait()
    return later.get()


def load(path: str) -> Seed:
    """Returns what a seed file names. Raises SeedError if the file cannot be read or is invalid."""
    import yaml

    try:
        text = Path(path).read_text(encoding="utf-8")
        found = yaml.safe_load(text) or {}
    except OSError as error:
        raise SeedError(f"{path}: {error.strerror or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise SeedError(f"{path}: the file is not valid YAML: {_what(error)}") from None
    try:
        topics_found = list(_typed(found, "the file", dict).get("topics") or [])
        for index, topic in enumerate(topics_found):
            _check_topic(cast(SeedTopic, _typed(topic, f"topics[{index}]", dict)), f"topics[{index}]")
        users = [_user(one, f"users[{index}]") for index, one in enumerate(found.get("users") or [])]
        check_names(users)
    except (TypeError, ValueError) as error:
        raise SeedError(f"{path}:{_line(text, str(error))}: not a valid seed file: {error}") from None
    return Seed(topics_found, users)


def _line(text: str, message: str) -> int:
    """The line of the value with whose place a message begins, or of the nearest one around it that is there."""
    import yaml

    node, line = yaml.compose(text, Loader=yaml.SafeLoader), 1
    place = PLACE.match(message)
    for number, name in STEP.findall(place[0] if place else ""):
        if isinstance(node, yaml.SequenceNode) and number and int(number) < len(node.value):
            node = node.value[int(number)]
            line = node.start_mark.line + 1
        elif isinstance(node, yaml.MappingNode) and (values := [one for one in node.value if one[0].value == name]):
            line, node = values[-1][0].start_mark.line + 1, values[-1][1]
        else:
            break
    return line


def _what(error: Exception) -> str:
    """What is wrong and where, without the text, which may contain passwords."""
    import yaml

    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    mark = error.problem_mark
    return f"{error.problem}" + (f" in line {mark.line + 1}, column {mark.column + 1}" if mark else "")


def _user(value: object, what: str) -> User:
    """Raises TypeError or ValueError, whose message contains no password."""
    if not isinstance(value, dict):
        raise TypeError(f"{what} must be a mapping")
    mechanisms = value.get("mechanisms") or list(PASSWORD_MECHANISMS)
    if not isinstance(value.get("name"), str) or not isinstance(value.get("password"), str | int):
        raise ValueError(f"{what} needs a name and a password")
    if not isinstance(mechanisms, list):
        raise TypeError(f"{what}.mechanisms must be a list")
    named = tuple(str(one).upper() for one in mechanisms)
    return checked_user(what, value["name"], str(value["password"]), named)


def _typed(value: object, what: str, kind: type[T]) -> T:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        names: dict[type, str] = {dict: "a mapping", list: "a list", str: "a text", int: "a number"}
        raise TypeError(f"{what} must be {names[kind]}, found {value!r}"[:200])
    return value


def _check_topic(topic: SeedTopic, what: str) -> None:
    """Raises TypeError or ValueError if a topic of a seed file is invalid."""
    _typed(topic.get("name"), f"{what}.name", str)
    partitions = _typed(topic.get("partitions", 1), f"{what}.partitions", int)
    _typed(topic.get("configs") or {}, f"{what}.configs", dict)
    for number, record in enumerate(_typed(topic.get("records") or [], f"{what}.records", list)):
        place = f"{what}.records[{number}]"
        index = _typed(_typed(record, place, dict).get("partition", 0), f"{place}.partition", int)
        if index < 0 or ("partitions" in topic and index >= partitions):
            raise ValueError(f"{place}.partition is {index}, but the topic has {partitions} partitions")
        if not 0 <= _typed(record.get("timestamp", 0), f"{place}.timestamp", int) < 1 << 63:
            raise ValueError(f"{place}.timestamp must be a time in milliseconds since 1970")
        _typed(record.get("headers") or {}, f"{place}.headers", dict)


async def plant(broker: Broker, wanted: list[SeedTopic]) -> None:
    """Creates the topics of a seed file that do not exist, and writes their records. Raises SeedError."""
    for topic in wanted:
        if topic["name"] in broker.image.topics:
            continue
        await _create(broker, topic)
        await broker.turn.next()  # what follows is an event of its own
        for index, batch in _batches(topic).items():
            data = records.encode(batch)
            try:
                partition = broker.partitions.get(topic["name"], index)
                partition.append(data, list(records.batches(data)), broker.schedule.now_ms())
            except (ApiError, OSError) as error:
                raise SeedError(f"topic {topic['name']}, partition {index}: {error}") from None
            broker.turn.event(lambda partition=partition: broker.high_watermarks.appended(partition))  # type: ignore[misc]


async def plant_users(broker: Broker) -> None:
    """Gives the users of the configuration SCRAM credentials,
    unless they have some with the same password. Raises SeedError.
    """
    for user in broker.config.users.values():
        for mechanism in (MECHANISMS[name] for name in user.mechanisms if name in MECHANISMS):
            if await _has_password(broker, user, mechanism):
                continue
            salt = broker.chance.randbytes(SALT_BYTES)
            upsertion = messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                name=user.name,
                mechanism=mechanism.number,
                iterations=ITERATIONS_MIN,
                salt=salt,
                salted_password=await _salted(broker, user, mechanism, salt, ITERATIONS_MIN),
            )
            await _alter(broker, messages.AlterUserScramCredentialsRequest(upsertions=[upsertion]))


async def _has_password(broker: Broker, user: User, mechanism: ScramMechanism) -> bool:
    record = broker.image.credentials.get((user.name, mechanism.number))
    if record is None:
        return False
    salted = await _salted(broker, user, mechanism, record.salt, record.iterations)
    expected = credential_of(mechanism.digest, salted, record.salt, record.iterations)
    return expected.stored_key == record.stored_key


async def _salted(broker: Broker, user: User, mechanism: ScramMechanism, salt: bytes, iterations: int) -> bytes:
    """Takes milliseconds, which it spends in a thread."""
    work = off_loop(broker.turn, lambda: salted_password(mechanism.digest, user.password, salt, iterations))
    salted: bytes = await work
    return salted


async def _alter(broker: Broker, request: messages.AlterUserScramCredentialsRequest) -> None:
    later = broker.metadata.submit(lambda: credentials.alter(broker.metadata.controller, request))
    broker.turn.settle()
    for name, error in await later:
        if error is not None:
            raise SeedError(f"user {name}: {error}")


async def _create(broker: Broker, topic: SeedTopic) -> None:
    r = messages.CreateTopicsRequest
    wanted = r.CreatableTopic(name=topic["name"], num_partitions=topic.get("partitions", -1), replication_factor=-1)
    wanted.configs = [r.CreatableTopicConfig(name=k, value=str(v)) for k, v in (topic.get("configs") or {}).items()]
    later = broker.metadata.submit(lambda: topics.create_topics(broker.metadata.controller, [wanted]))
    broker.turn.settle()
    for _, error, *_ in await later:
        if error is not None:
            raise SeedError(f"topic {topic['name']}: {error}")


def _batches(topic: SeedTopic) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {}
    for one in topic.get("records") or ():
        record = Record(_bytes(one.get("key")), _bytes(one.get("value")), one.get("timestamp", 0))
        record.headers = [(str(name), _bytes(value)) for name, value in (one.get("headers") or {}).items()]
        found.setdefault(one.get("partition", 0), []).append(record)
    return found


def _bytes(value: object) -> bytes | None:
    return None if value is None else str(value).encode()
