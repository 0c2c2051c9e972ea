"""Directories of a stopped cluster become directories of another: of Apache Kafka's nodes, or of ottla.

`source` reads what there is, `replicas` chooses which replica of a partition counts, `layout` who the new nodes are and
which replicas they get, `metadata` makes their metadata, `logs` copies, and `properties` writes what Kafka is started
with. Nothing in the source changes.
"""

from __future__ import annotations


class HandoverRefused(Exception):
    """Nothing is made. `exit_code`: of the command."""

    def __init__(self, words: str, exit_code: int) -> None:
        super().__init__(words)
        self.exit_code = exit_code


EXIT_INCOMPLETE, EXIT_USAGE, EXIT_IN_USE, EXIT_UNUSABLE = 1, 2, 4, 5
