"""Which APIs each client asks for and meets errors of. `python -m tests.clients.error_matrix` writes the table of
`docs/reference/errors.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.broker.apis import apis

from ..support.sources import ROOT
from . import error_logins, error_transactions
from .error_aiokafka import OF_AIOKAFKA_ADMIN, OF_AIOKAFKA_CONSUMER
from .error_clients import CLIENTS, IN_GROUPS, operations_of_go, operations_of_java, operations_of_node
from .error_kafka_python import names_of_kafka_python
from .error_librdkafka import names_of_librdkafka

PAGE: Final = ROOT / "docs" / "reference" / "errors.md"
BEGIN, END = "<!-- computed: clients -->\n", "<!-- end of clients -->\n"
MET, TELEMETRY, UNASKED = "✓", "t", ""
_OF_AIOKAFKA: Final = (*CLIENTS, *OF_AIOKAFKA_CONSUMER, *OF_AIOKAFKA_ADMIN, *IN_GROUPS, *error_transactions.APIS)
OPERATIONS: Final[dict[str, list[str]]] = {
    "java": operations_of_java(),
    "librdkafka": names_of_librdkafka(),
    "kafka-python": names_of_kafka_python(),
    "aiokafka": [*_OF_AIOKAFKA, *error_logins.APIS],
    "franz-go": operations_of_go("franz"),
    "sarama": operations_of_go("sarama"),
    "kafkajs": operations_of_node(),
}
"""By client, the APIs whose errors it meets in `test_error_codes.py`."""
PUSHES: Final = ("java", "librdkafka", "franz-go")
"""The clients that meet errors of telemetry in `test_telemetry_errors.py`."""
OF_TELEMETRY: Final = ("GetTelemetrySubscriptions", "PushTelemetry")


def of_brokers() -> list[str]:
    """The APIs that only brokers ask for."""
    return [api.name for api in apis().values() if api.name.endswith(("ShareGroupState", "ShareGroupStateSummary"))]


def cell(client: str, api: str) -> str:
    if api in OPERATIONS[client]:
        return MET
    return TELEMETRY if api in OF_TELEMETRY and client in PUSHES else UNASKED


def rows() -> Iterator[str]:
    yield f"| API | {' | '.join(OPERATIONS)} |"
    yield f"|---|{':---:|' * len(OPERATIONS)}"
    for api in apis().values():
        if api.errors and api.name not in of_brokers():
            yield f"| {api.name} | {' | '.join(cell(client, api.name) for client in OPERATIONS)} |"


def table() -> str:
    return "\n".join(rows()) + "\n"


def main() -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
