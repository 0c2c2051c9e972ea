"""The client of a broker's HTTP API, which the commands, `ottla.testing` and scenarios use."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

if TYPE_CHECKING:
    import http.client

    from .broker.lab.group_views import GroupStateView
    from .broker.lab.scenario.runner import Report
    from .broker.lab.state_routes import TopicView
    from .broker.lab.watermark_routes import PartitionsView
    from .lab_faults import FaultRule, RequestHold
    from .lab_verdict import RunningVerdict
    from .traces.running import RunningTrace

TIMEOUT_S = 60.0
PAGE = 1000
Reply = Any
"""A reply: JSON, or a text if the reply is one."""


class LabRefused(RuntimeError):
    """The broker refused a request. `status`: of HTTP. `key`: the path of the value that is wrong, or empty."""

    def __init__(self, status: int, problem: str, key: str = "") -> None:
        super().__init__(problem)
        self.status = status
        self.key = key


class LabUnreachable(OSError):
    """No broker answers at the URL."""


class ScenarioFailed(AssertionError):
    """A step of a scenario failed; the message has its file, line and reason."""


class Lab:
    """The HTTP API of a broker at `url`.

    `token`: the broker's `ottla.lab.token`; by default that of the variable OTTLA_LAB_TOKEN. For URLs with https
    (`ottla.lab.tls`), `ca_file` has the certificates that are trusted, by default those of OTTLA_LAB_CA or of the
    system.

    Paths are `hold` or `/v1/hold`. Every method raises LabRefused or LabUnreachable.
    """

    def __init__(
        self, url: str, token: str | None = None, *, ca_file: str | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        self.url = url.rstrip("/")
        self._token = token if token is not None else os.environ.get("OTTLA_LAB_TOKEN")
        self._ca_file = ca_file or os.environ.get("OTTLA_LAB_CA")
        self._timeout_s = timeout_s

    @property
    def has_token(self) -> bool:
        return bool(self._token)

    def with_timeout(self, timeout_s: float) -> Lab:
        """The same API, with another time that a request may take."""
        return Lab(self.url, self._token, ca_file=self._ca_file, timeout_s=timeout_s)

    def get(self, path: str, /, **query: object) -> Reply:
        """Returns the reply of a GET: `lab.get("topics/orders")`. `query`: its parameters."""
        return self.call("GET", path, None, query)

    def post(self, path: str, body: Mapping[str, object] | None = None, /, **more: object) -> Reply:
        """Returns the reply of a POST: `lab.post("hold", topic="orders")`. `more`: keys of the body too."""
        return self.call("POST", path, {**(body or {}), **more})

    def put(self, path: str, body: Mapping[str, object] | None = None, /, **more: object) -> Reply:
        """Returns the reply of a PUT. `more`: keys of the body too."""
        return self.call("PUT", path, {**(body or {}), **more})

    def delete(self, path: str, /, **query: object) -> Reply:
        """Returns the reply of a DELETE. `query`: its parameters."""
        return self.call("DELETE", path, None, query)

    def every(self, path: str, name: str, /, **query: object) -> Iterator[Reply]:
        """Yields the elements of a list that comes in pages. `name`: the key of the list in the reply."""
        after: str | None = None
        while True:
            page = self.get(path, limit=PAGE, **({"after": after} if after is not None else {}), **query)
            yield from page[name]
            after = page["next"]
            if after is None:
                return

    # what tests do most

    def topic(self, name: str) -> TopicView:
        """A topic with its partitions: offsets, policies, requests that wait."""
        found: TopicView = self.get(f"topics/{segment(name)}")
        return found

    def group(self, name: str) -> GroupStateView:
        """A group: its members, what its rebalance waits for and how long, its offsets with their lag."""
        found: GroupStateView = self.get(f"groups/{segment(name)}")
        return found

    def hold(self, topic: str, partition: int | None = None) -> PartitionsView:
        """Freezes the high watermark of a topic, or of one partition."""
        return self._move("hold", topic, partition)

    def release(self, topic: str, partition: int | None = None) -> PartitionsView:
        """Lets the high watermark follow the log again."""
        return self._move("release", topic, partition)

    def step(self, topic: str, partition: int | None = None, *, batches: int = 1) -> PartitionsView:
        """Moves the high watermark forward by whole batches."""
        return self._move("step", topic, partition, batches=batches)

    def policy(self, policy: str, topic: str | None = None, partition: int | None = None) -> PartitionsView:
        """Sets how high watermarks follow the log, such as `lag=50ms`."""
        return self._move("policy", topic, partition, policy=policy)

    def _move(self, verb: str, topic: str | None, partition: int | None, **more: object) -> PartitionsView:
        found: PartitionsView = self.post(verb, topic=topic, partition=partition, **more)
        return found

    def fault(self, kind: str, **values: object) -> FaultRule:
        """Adds a rule of faults, such as `fault("error", error="NOT_LEADER_OR_FOLLOWER", api="Produce", times=1)`:
        which requests, how often, and what happens. In a `with` statement it is removed at the end.
        """
        from .lab_faults import FaultRule, fault_body

        return FaultRule(self, self.post("faults", fault_body(kind, values)))

    def hold_requests(self, **values: object) -> RequestHold:
        """Holds requests, or with `at="reply"` replies, until they are released. In a `with` statement the hold ends at
        the end.
        """
        from .lab_faults import RequestHold

        return RequestHold(self, self.post("requests/holds", values)["number"])

    def trace(self, **values: object) -> RunningTrace:
        """Traces requests and replies from now on: `lab.trace(client_id="shop").lines()`. In a `with` statement it ends
        at the end.
        """
        from .traces.running import RunningTrace

        return RunningTrace(self, self.post("traces", values)["number"])

    def verdict(self, examination: str | None = None, *, provokes: bool = False, seed: int = 0) -> RunningVerdict:
        """Examines the clients from now on: `lab.verdict("idempotence", provokes=True).check()`. In a `with` statement
        it ends at the end.
        """
        from .lab_verdict import RunningVerdict

        self.post("verdict", examination=examination, provokes=provokes, seed=seed)
        return RunningVerdict(self)

    def clients(self) -> list[Reply]:
        """Returns the clients that are connected, and those whose pushed metrics are still there."""
        return list(self.every("clients", "clients"))

    def seed(self, *topics: Mapping[str, object]) -> list[str]:
        """Creates topics with records, written as in a seed file; returns the names of the new ones."""
        created: list[str] = self.post("seed", topics=list(topics))["created"]
        return created

    def reset(self) -> None:
        """Ends what the lab changed: policies, faults, holds, the clock. Topics and records stay."""
        self.post("reset")

    def run(self, file: str | os.PathLike[str]) -> Report:
        """Runs a scenario file. Raises ScenarioFailed, or ScenarioError for an invalid file."""
        from . import scenarios
        from .broker.lab.scenario.file import read

        report = scenarios.run(self, read(os.fspath(file)))
        if not report["passed"]:
            raise ScenarioFailed(str(report["steps"][-1]["problem"]))
        return report

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        query: Mapping[str, object] | None = None,
    ) -> Reply:
        given = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        target = (path if path.startswith("/") else f"/v1/{path}") + (f"?{urlencode(given, True)}" if given else "")
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        status, kind, data = self._exchange(
            method, target, None if body is None else json.dumps(body).encode(), headers
        )
        found: Reply = json.loads(data) if kind == "application/json" else data.decode(errors="replace")
        if status >= 400:
            words = found if isinstance(found, dict) else {"error": str(found)}
            raise LabRefused(status, str(words.get("error", words)), str(words.get("key", "")))
        return found

    def _exchange(
        self, method: str, target: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[int, str, bytes]:
        """Returns status, content type and body. Goes through no proxy and follows no redirection."""
        import http.client

        try:
            connection = self._connection()
            try:
                connection.request(method, target, data, headers)
                answer = connection.getresponse()
                return answer.status, answer.headers.get_content_type(), answer.read()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise LabUnreachable(f"cannot reach the lab at {self.url} ({error}); start the broker with --lab") from None

    def _connection(self) -> http.client.HTTPConnection:
        import http.client

        found = urlsplit(self.url if "://" in self.url else f"http://{self.url}")
        if found.scheme == "https":
            import ssl

            context = ssl.create_default_context(cafile=self._ca_file)
            return http.client.HTTPSConnection(found.netloc, timeout=self._timeout_s, context=context)
        return http.client.HTTPConnection(found.netloc, timeout=self._timeout_s)


def segment(value: object) -> str:
    """A value as a part of a path."""
    return quote(str(value), safe="")


def _text(value: object) -> object:
    """A value as a query has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return [_text(one) for one in value] if isinstance(value, list | tuple) else value
