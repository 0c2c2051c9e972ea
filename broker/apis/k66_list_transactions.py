"""ListTransactions, versions 0 to 2: transactional ids by state, producer id, age and name (KIP-664).

1 those whose transaction has been open for longer than a time (KIP-994); 2 a pattern of names (KIP-1152), of which Java's syntax is taken
as far as RE2 has it.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.transaction.state import NAMES
from ...protocol import messages
from ...protocol.errors import ApiError
from ..context import Context

DURATION_SINCE = 1
PATTERN_SINCE = 2


def handle(context: Context, request: Any) -> Any:
    r = messages.ListTransactionsResponse
    broker = context.broker
    states = {state for state, name in NAMES.items() if name in request.state_filters}
    response = r(unknown_state_filters=[name for name in dict.fromkeys(request.state_filters) if name not in NAMES.values()])
    producers = frozenset(request.producer_id_filters)
    longer_ms = request.duration_filter if context.version >= DURATION_SINCE else -1
    now = broker.schedule.now_ms()
    try:
        pattern = _pattern(request.transactional_id_pattern if context.version >= PATTERN_SINCE else None)
        shards = broker.transactions.read_all(lambda shard, as_of: shard.transactions.items(as_of))
    except ApiError as error:
        return r(error_code=error.code)
    for transactional_id, found in (pair for items in shards for pair in items):
        if producers and found.producer_id not in producers:
            continue
        if request.state_filters and found.state not in states:
            continue
        if longer_ms >= 0 and now - found.start_ms <= longer_ms:
            continue
        if pattern is not None and not pattern.fullmatch(transactional_id):
            continue
        response.transaction_states.append(
            r.TransactionState(transactional_id=transactional_id, producer_id=found.producer_id, transaction_state=NAMES[found.state])
        )
    return response


def _pattern(text: str | None) -> Any:
    """ApiError(INVALID_REGULAR_EXPRESSION)."""
    if not text:
        return None
    from ...coordinator.group.regex import compiled

    return compiled(text)
