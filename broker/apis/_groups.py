"""Helpers of the group APIs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from ...coordinator.group.environment import Client
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol.errors import Errors
from ..error_places import COORDINATOR, ITSELF, Place, array, codes
from ..limits import GROUP_SIZE
from ..net.answers import Answers
from ..net.context import Context
from ..security.authorization import Check, Refusal, authorized_operations
from ..steps import Pace, off_loop
from ..turn import Turn


class Described(Protocol):
    """A group as the three APIs describe it."""

    error_code: int
    authorized_operations: int
    members: Any


G = TypeVar("G", bound=Described)
MATCHES = Check(Operation.DESCRIBE, ResourceType.TOPIC, "topics that a regular expression matches", Refusal.LEFT_OUT)
STEP_GROUPS = 96  # and members of groups: many times the work of other elements
HIDDEN = "The group has described topic(s) that the client is not authorized to describe."
# what says that the coordinator is another one, or not ready: most of Kafka's replies have no words for these
OF_COORDINATOR = frozenset(
    (Errors.NOT_COORDINATOR, Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.COORDINATOR_NOT_AVAILABLE)
)
WITHOUT_WORDS = OF_COORDINATOR | {Errors.UNKNOWN_SERVER_ERROR}
OF_EACH_GROUP = (
    Place(
        "each group",
        COORDINATOR
        + codes(
            "INVALID_GROUP_ID TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED UNSUPPORTED_VERSION "
            "INVALID_REQUEST GROUP_ID_NOT_FOUND"
        ),
        (array("groups", "group_ids", group=("group_id", ITSELF)),),
    ),
)


def client_of(context: Context) -> Client:
    """Returns the client of a request, as groups store it."""
    may_describe = None if context.authorizer is None else partial(MATCHES.allows, context)
    return Client(context.client_id or "", context.peer.host, context.version, may_describe)


async def by_partition(context: Context, group_ids: Iterable[str]) -> list[tuple[int, list[str]]]:
    """Returns groups with the partitions of their shards, in the order in which Kafka answers for several; in steps if
    they are many.
    """
    groups = context.broker.groups
    found: dict[int, list[str]] = {}
    indexes: list[int] = []  # of each group: one of a partition that is there already can let Kafka's table grow, too
    pace = Pace(context.turn)
    for group_id in group_ids:
        index = groups.partition_for(group_id)
        indexes.append(index)
        found.setdefault(index, []).append(group_id)
        if pace.is_over():
            await pace.rest()
    return [(index, found[index]) for index in groups.in_order_of_some(indexes)]


class Asked(NamedTuple):
    """Groups of a request, in the order in which Kafka describes them. `refused`: those that the principal may not
    see.
    """

    group_ids: list[str]
    refused: frozenset[str] = frozenset()


async def asked_groups(context: Context, check: Check, group_ids: Iterable[str], nameless_first: bool = True) -> Asked:
    """Returns the groups of a request: first those that the principal may not see, then those without a name
    (`nameless_first`), and the others by their shards.
    """
    allowed, refused = await check.parted(context, group_ids, str)
    first = [group_id for group_id in allowed if not group_id] if nameless_first else []
    shards = await by_partition(context, filter(None, allowed) if nameless_first else allowed)
    return Asked([*refused, *first, *(one for _, ids in shards for one in ids)], frozenset(refused))


async def describe_each(
    context: Context,
    group_ids: Iterable[str],
    with_operations: bool,
    describe: Callable[[str], tuple[G, Iterator[object]]],
) -> list[G]:
    """Returns the `groups` of the reply: the description of each group with its members, and with the operations that
    the client may do if they are asked for.
    """
    answers = Answers(context, STEP_GROUPS)
    groups: list[G] = answers.array("groups")
    for group_id in group_ids:
        out, members = describe(group_id)
        if with_operations and out.error_code == 0:
            out.authorized_operations = authorized_operations(context, ResourceType.GROUP, group_id)
        out.members = answers.array("groups.members")
        for member in members:
            await answers.add("groups.members", member)
        await answers.add("groups", out)
    return groups


def note_full(context: Context, group_id: str, code: int) -> None:
    """Counts that a group has reached its own size."""
    if code == Errors.GROUP_MAX_SIZE_REACHED:
        context.broker.limits.reached(GROUP_SIZE, f"group {group_id}")


async def try_expression(turn: Turn, expression: str) -> None:
    """Compiles a slow regular expression in a thread, for whoever needs it afterwards."""
    from ...coordinator.group.regex import is_slow, tried

    if is_slow(expression):
        await off_loop(turn, partial(tried, expression))


def may_describe_all(context: Context, check: Check, topics: Iterable[str]) -> bool:
    """Whether the client may describe all topics of a described group."""
    return context.authorizer is None or all(check.allows(context, topic) for topic in dict.fromkeys(topics))


def supports_consumer_groups(context: Context) -> bool:
    """Whether the finalized `group.version` supports KIP-848
    and `group.coordinator.rebalance.protocols` contains `consumer`.
    """
    broker = context.broker
    return (
        "consumer" in broker.config["group.coordinator.rebalance.protocols"]
        and int(broker.image.features.get("group.version", 0)) >= 1
    )
