"""Runs Spark's declarative pipelines over Python data sources. A script that `command` starts as `spark-pipelines`
would, but for one JVM less.

Spark up to 4.3.0 sends its client the accumulators of Python workers among the events of a run; the client does not
know them, and ends with UNKNOWN_RESPONSE and exit code 1 although the run goes well. Here they are passed over, and the
exit code is that of the run.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.pipelines import cli
from pyspark.sql.connect.client.core import SparkConnectClient
from pyspark.sql.connect.observation import Observation
from pyspark.sql.connect.proto import Command


def events(
    client: SparkConnectClient, command: Command, observations: dict[str, Observation] | None = None
) -> Iterator[dict[str, object]]:
    """Yields the events among the responses to a command."""
    request = client._execute_plan_request_with_metadata()
    client._set_command_in_plan(request.plan, command)
    for response in client._execute_and_fetch_as_iterator(request, observations or {}):
        if isinstance(response, dict):
            yield response


if __name__ == "__main__":
    setattr(SparkConnectClient, "execute_command_as_iterator", events)  # noqa: B010  # a method cannot be assigned to
    cli.main()
