"""What several APIs tell of topics: operations that a client may do, as bits."""

from __future__ import annotations

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = range(3, 13)


def bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


def topic_operations() -> int:
    """Everything that may be done with a topic: without an authorizer all of it may."""
    return bits(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
