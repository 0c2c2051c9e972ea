"""ListTransactions, versions 0 to 2: lists transactional ids by state, producer id, age and name (KIP-664).

**Behaviour**
- The pattern of names has Java's syntax, as far as RE2 supports it.

**Versions**
- 1 transactions that are open for longer than a duration (KIP-994)
- 2 a pattern of names (KIP-1152)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.transaction.state import NAMES
from ...protocol import messages
from ...protocol.errors import ApiError
from ..error_places import COORDINATOR, Place, codes
from ..net.answers import Answers
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..steps import Pace
from ._groups import try_expression

if TYPE_CHECKING:
    from ...coordinator.group.regex import Pattern

TRANSACTIONS = Check(
    Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "transaction_states.transactional_id", Refusal.LEFT_OUT
)
AUTHORIZATION = (TRANSACTIONS,)
DURATION_SINCE = 1
PATTERN_SINCE = 2
ERRORS = (Place("the whole", COORDINATOR + codes("INVALID_REGULAR_EXPRESSION")),)


async def handle(context: Context, request: messages.ListTransactionsRequest) -> messages.ListTransactionsResponse:
    r = messages.ListTransactionsResponse
    broker = context.broker
    wanted, known = dict.fromkeys(request.state_filters), frozenset(NAMES.values())
    states = {state for state, name in NAMES.items() if name in wanted}
    response = r(unknown_state_filters=[name for name in wanted if name not in known])
    producers = frozenset(request.producer_id_filters)
    longer_ms = request.duration_filter if context.version >= DURATION_SINCE else -1
    now = broker.schedule.now_ms()
    try:
        text = request.transactional_id_pattern if context.version >= PATTERN_SINCE else None
        if text:
            await try_expression(broker.turn, text)
        pattern = _pattern(text)
        shards = await broker.transactions.read_all(lambda shard, as_of: shard.known(as_of))
    except ApiError as error:
        return r(error_code=error.code)
    answers, pace = Answers(context), Pace(context.turn)
    response.transaction_states = answers.array("transaction_states")
    for transactional_id, found in [pair for items in shards for pair in items]:
        if pace.is_over():
            await pace.rest()
        if producers and found.producer_id not in producers:
            continue
        if request.state_filters and found.state not in states:
            continue
        if longer_ms >= 0 and now - found.start_ms <= longer_ms:
            continue
        if pattern is not None and not pattern.fullmatch(transactional_id):
            continue
        if not TRANSACTIONS.allows(context, transactional_id):
            continue
        state = r.TransactionState(transactional_id=transactional_id, producer_id=found.producer_id)
        state.transaction_state = NAMES[found.state]
        await answers.add("transaction_states", state)
    return response


def _pattern(text: str | None) -> Pattern | None:
    """Compiles a pattern. Raises ApiError(INVALID_REGULAR_EXPRESSION)."""
    if not text:
        return None
    from ...coordinator.group.regex import compiled

    return compiled(text)
