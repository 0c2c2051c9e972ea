"""ListOffsets of an emulated release.

Version 0 (`getOffsetsBefore`) answers the first offsets of segments that were last written before a time.

-1 stands for the latest offset, which precedes those of the segments, and -2 for the earliest. Offsets above the high
watermark are left out, in whose place the high watermark stands.

Later versions find messages by their time. Messages of version 0 have none: a topic that gets such messages has
UNSUPPORTED_FOR_MESSAGE_FORMAT, whatever else its log has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.trees import tree
from ...storage.layout import LOG
from ...storage.log import Log
from ..apis.k02_list_offsets import EARLIEST, LATEST
from ..net.api import Api, Handler
from ..net.context import Context
from ..steps import Pace
from .outcomes import outcome_of
from .releases import Release


class Wanted(Protocol):
    """A partition of version 0 of the request."""

    partition_index: int
    timestamp: int
    max_num_offsets: int


SEGMENTS_PER_STEP = 256  # the time of each is asked of the file system


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    async def emulated(context: Context, request: messages.ListOffsetsRequest) -> messages.ListOffsetsResponse:
        if context.version == 0:
            return await _before(context, request)
        response: messages.ListOffsetsResponse = await outcome_of(handle(context, request))
        _refuse_times(context, request, response)
        return response

    return emulated


def _refuse_times(
    context: Context, request: messages.ListOffsetsRequest, response: messages.ListOffsetsResponse
) -> None:
    """Refuses to find messages by their time in topics whose messages have none."""
    of_log = context.broker.settings.of_log
    without = {topic.name: topic for topic in request.topics if of_log(topic.name).message_format == 0}
    for answered in response.topics:
        topic = without.get(answered.name)
        if topic is None:
            continue
        timed = {one.partition_index for one in topic.partitions if one.timestamp not in (LATEST, EARLIEST)}
        for answer in answered.partitions:
            if answer.partition_index in timed and answer.error_code in (Errors.NONE, Errors.UNSUPPORTED_VERSION):
                answer.error_code = int(Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT)
                answer.offset = answer.timestamp = -1


async def _before(context: Context, request: messages.ListOffsetsRequest) -> messages.ListOffsetsResponse:
    r, pace = messages.ListOffsetsResponse, Pace(context.broker.turn, SEGMENTS_PER_STEP)
    partition_class = tree("ListOffsetsResponse", 0).at("topics.partitions").cls
    response = r()
    for topic in request.topics:
        out = r.ListOffsetsTopicResponse(name=topic.name)
        for wanted in cast("list[Wanted]", topic.partitions):
            answer = partition_class(partition_index=wanted.partition_index)
            try:
                partitions = context.broker.partitions
                partition = partitions.get(topic.name, wanted.partition_index)
                partitions.check_read(partition, -1, may_follow=False)
                log = partition.open_log()
                high_watermark = partition.high_watermark
                now = context.broker.schedule.now_ms()
                answer.old_style_offsets = offsets_before(
                    log, wanted.timestamp, wanted.max_num_offsets, high_watermark, now
                )
                steps = len(log.segments)
            except ApiError as error:
                answer.error_code, steps = error.code, 1
            except OSError as failure:
                answer.error_code, steps = context.broker.log_directories.storage_error(failure).code, 1
            out.partitions.append(answer)
            if pace.is_over(steps):
                await pace.rest()
        response.topics.append(out)
    return response


def offsets_before(log: Log, timestamp: int, count_max: int, high_watermark: int, now_ms: int) -> list[int]:
    """Returns at most `count_max` offsets, the latest first."""
    found = [(max(one.base_offset, log.start_offset), one) for one in log.segments]
    offsets = [offset for offset, _ in found]
    if log.active.size:
        offsets.append(log.end_offset)
    if timestamp == LATEST:
        end = len(offsets)
    elif timestamp == EARLIEST:
        end = 1
    else:
        times = [one.files.modified_ms(one.path(LOG)) for _, one in found]
        if log.active.size:
            times.append(now_ms)
        end = next((index + 1 for index in reversed(range(len(times))) if times[index] <= timestamp), 0)
    chosen = sorted(offsets[max(0, end - max(0, count_max)) : end], reverse=True)
    below = [offset for offset in chosen if offset <= high_watermark]
    return chosen if len(below) == len(chosen) else [high_watermark, *below]
