"""Helper of Produce: first batches of a transaction in a partition are verified
by the transaction coordinator (KIP-890).
"""

from __future__ import annotations

from ...protocol.errors import ApiError, Errors
from ...protocol.records import BatchHeader
from ...storage.producers import Verification
from ..net.context import Context
from ..replica.partition import Partition
from ..transaction.verification import PRODUCE_ABORTABLE_SINCE, PRODUCE_ADDS_SINCE, Mode, ask_coordinator, mode_of

UNVERIFIABLE = frozenset(
    (
        Errors.NETWORK_EXCEPTION,
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
    )
)


class Verifications:
    """The verifications of one request. `found` has them, or the errors, by `id()` of the partition data."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.found: dict[int, Verification | ApiError] = {}
        self.to_ask: dict[tuple[str, int], list[int]] = {}  # parts of the request by partition

    @property
    def are_needed(self) -> bool:
        """Whether first batches are verified at all: older clients' are not if the configuration says so."""
        return self.context.version >= PRODUCE_ADDS_SINCE or self.context.broker.appender.verifies()

    def begin(self, partition: Partition, part: int, header: BatchHeader) -> None:
        """Notes the batch `part` if it is the first of its transaction in the partition. Raises ApiError, also if the
        partition is not led here: a node that was paused still gets batches that the leader has had since.
        """
        self.context.broker.partitions.check_led(partition)
        raises, now_ms = self.context.version >= PRODUCE_ADDS_SINCE, self.context.broker.schedule.now_ms()
        begun = partition.open_log().producers.begin_verification(
            header.producer_id, header.producer_epoch, header.base_sequence, raises, now_ms
        )
        if begun is not None:
            self.found[part] = begun
            self.to_ask.setdefault((partition.topic, partition.index), []).append(part)

    async def ask(self, transactional_id: str, header: BatchHeader) -> None:
        """Asks the transaction coordinator about the first batches,
        again while it ends the producer's previous transaction.
        """
        from ...coordinator.transaction.shard import Producer

        broker, config = self.context.broker, self.context.broker.config
        mode = mode_of(self.context.version, PRODUCE_ABORTABLE_SINCE, PRODUCE_ADDS_SINCE)
        producer = Producer(header.producer_id, header.producer_epoch)
        backoff_ms: int = config["add.partitions.to.txn.retry.backoff.ms"]
        coordinators = broker.transactions.everywhere
        patience_ms = min(config["add.partitions.to.txn.retry.backoff.max.ms"], config["request.timeout.ms"])
        until_ms = broker.schedule.monotonic_ms() + patience_ms
        while True:
            refused = await ask_coordinator(coordinators, transactional_id, producer, self.to_ask.keys(), mode)
            # the markers of the previous transaction are still being written
            ended = Errors.CONCURRENT_TRANSACTIONS in refused.values()
            if not ended or mode is not Mode.ADDS or broker.schedule.monotonic_ms() >= until_ms:
                break
            if broker.settings.value("ottla.group.settle"):
                await coordinators.next_step(transactional_id, backoff_ms)
            else:
                await broker.turn.pause(backoff_ms)
        for key, code in refused.items():
            for part in self.to_ask[key]:
                self.found[part] = _unverified(code, mode)


def _unverified(code: int, mode: Mode) -> ApiError:
    """Returns the error that a producer gets for a batch that was not verified."""
    if code == Errors.INVALID_TXN_STATE:
        return ApiError(code, "Partition was not added to the transaction")
    if code in UNVERIFIABLE or (code == Errors.CONCURRENT_TRANSACTIONS and mode is not Mode.ADDS):
        text = (
            f"Unable to verify the partition has been added to the transaction. Underlying error: {Errors(code).name}"
        )
        return ApiError(Errors.NOT_ENOUGH_REPLICAS, text)
    return ApiError(code)
