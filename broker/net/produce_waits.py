"""Helper of Produce: a reply to acks=all waits until the high watermarks have reached the appended records."""

from __future__ import annotations

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..clock import Cancellable
from ..later import Later
from ..replica.partition import Partition
from ..replies import Silence
from .context import Context

Answer = messages.ProduceResponse.PartitionProduceResponse
Wait = tuple[Partition, int, Answer]
"""A partition, the offset that its high watermark must reach, and its part of the response."""


def wait(
    context: Context,
    response: messages.ProduceResponse,
    waits: list[Wait],
    timeout_ms: int,
) -> Later[messages.ProduceResponse | Silence]:
    """Returns a result that completes when every high watermark is reached or the timeout has passed; the records stay
    in either case.
    """
    outcome: Later[messages.ProduceResponse | Silence] = Later()
    left = len(waits)
    timer: list[Cancellable] = []

    def reached(later: Later[None], partition: Partition, answer: Answer) -> None:
        nonlocal left
        left -= 1
        if later.error is None and partition.is_under_min_isr:
            answer.error_code = int(Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        if isinstance(later.error, ApiError):
            answer.error_code = later.error.code
            answer.error_message = later.error.own_message
        if left == 0:
            for one in timer:
                one.cancel()
            outcome.finish(response)

    parked: list[tuple[Later[None], Answer]] = []
    for partition, end, answer in waits:
        later = partition.wait_for(end)
        parked.append((later, answer))
        later.when_done(lambda done, at=partition, answer=answer: reached(done, at, answer))  # type: ignore[misc]

    def over() -> None:
        for later, answer in parked:
            if not later.done:
                answer.error_code = int(Errors.REQUEST_TIMED_OUT)
                later.cancel()
        outcome.finish(response)

    if not outcome.done and any(
        p.follower.policy.kind != "immediate" or p.is_behind or p.replica_set is not None or end > p.end_offset
        for p, end, _ in waits
    ):
        timer.append(context.broker.schedule.later(max(0, timeout_ms), lambda: context.broker.turn.event(over)))

    def cancel() -> None:
        for later, _ in parked:
            later.cancel()
        for one in timer:
            one.cancel()

    outcome.on_cancel = cancel
    return outcome
