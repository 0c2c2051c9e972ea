"""The lab: one loopback HTTP port with metrics, health, and documented JSON under `/v1` to see and control the simulation.

    GET  /metrics                     Prometheus text
    GET  /live, /ready                200, or 503 while partitions are being opened
    GET  /v1/state                    cluster, connections, coordinators
    GET  /v1/topics                   topics and their partitions
    GET  /v1/topics/{topic}           one topic
    GET  /v1/share                    share groups with share-partitions in memory
    GET  /v1/share/{group}            their share-partitions: offsets, lag, records in flight with their holders and locks, what happened last;
                                      /v1/share/{group}/{topic}/{partition} one of them
    GET  /v1/transactions             transactions that are open, and the partitions whose last stable offset is held back, with by whom;
                                      /v1/transactions/all: every transactional id
    POST /v1/hold                     {"topic": t, "partition": p?}: its high watermark stands still
    POST /v1/release                  {"topic": t, "partition": p?}: it moves again, at once
    POST /v1/policy                   {"topic": t?, "partition": p?, "policy": "lag=50ms±10ms"}
    POST /v1/step                     {"topic": t, "partition": p?, "batches": 1}: takes it on by whole batches
    POST /v1/retention, /v1/compact   what would happen in the next round happens now
    POST /v1/reload                   {"topic": t, "partition": p?}: coordinators on __consumer_offsets, __transaction_state or
                                      __share_group_state unload and load again, as when they move; of another topic, its share-partitions
    POST /v1/expire                   offsets and groups that have had their time go now

Errors are {"error": text} with 400 or 404. Peers that are not loopback are refused unless `ottla.lab.open=true`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from . import share_views, transaction_views
from .http import HttpConnection, Request, Response
from .partition import Partition
from .replication import IMMEDIATE, parse_policy

if TYPE_CHECKING:
    from .server import Server


logger = logging.getLogger("ottla")


def as_json(value: Any, status: int = 200) -> Response:
    return Response(status, "application/json", json.dumps(value).encode() + b"\n")


class Lab:
    """The HTTP side of a server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.broker = server.broker
        self.port = 0
        self._http: asyncio.Server | None = None
        self._gets: dict[str, Callable[[], Response]] = {
            "/metrics": self.metrics,
            "/live": self.live,
            "/ready": self.ready,
            "/v1/state": self.state,
            "/v1/topics": self.topics,
            "/v1/share": lambda: as_json(share_views.groups(self.broker)),
            "/v1/transactions": lambda: as_json(transaction_views.transactions(self.broker)),
            "/v1/transactions/all": lambda: as_json(transaction_views.transactions(self.broker, everything=True)),
        }
        verbs = (self.hold, self.release, self.policy, self.step, self.retention, self.compact, self.reload, self.expire)
        self._posts: dict[str, Callable[[dict[str, Any]], Response]] = {f"/v1/{verb.__name__}": verb for verb in verbs}

    async def start(self) -> None:
        host = "0.0.0.0" if self.server.config["ottla.lab.open"] else "127.0.0.1"
        loop = asyncio.get_running_loop()
        self._http = await loop.create_server(lambda: HttpConnection(self.answer), host, self.server.config["ottla.lab.port"])
        self.port = self._http.sockets[0].getsockname()[1]

    def stop(self) -> None:
        if self._http is not None:
            self._http.close()

    def answer(self, request: Request) -> Response:
        """Finds who answers, and turns what they raise into an error reply."""
        if not self.server.config["ottla.lab.open"] and not ipaddress.ip_address(request.peer).is_loopback:
            return as_json({"error": "the lab answers loopback peers only"}, 403)
        try:
            return self._route(request)
        except LookupError as error:
            return as_json({"error": str(error.args[0])}, 404)
        except (ValueError, TypeError) as error:
            return as_json({"error": str(error)}, 400)
        except Exception:
            logger.exception("%s %s failed", request.method, request.path)
            return as_json({"error": "a bug; the broker's log says more"}, 500)

    def _route(self, request: Request) -> Response:
        if request.method == "GET":
            if request.path.startswith("/v1/topics/"):
                return as_json(self._describe_topic(request.path.removeprefix("/v1/topics/")))
            if request.path.startswith("/v1/share/"):
                return self._share(request.path.removeprefix("/v1/share/"))
            if request.path in self._gets:
                return self._gets[request.path]()
        elif request.method == "POST" and request.path in self._posts:
            body = json.loads(request.body) if request.body else {}
            if not isinstance(body, dict):
                raise ValueError("the body must be a JSON object")
            return self._posts[request.path](body)
        raise LookupError(f"nothing answers {request.method} {request.path}")

    # health and metrics

    def live(self) -> Response:
        return as_json({"live": True})

    def ready(self) -> Response:
        ready = self.broker.partitions.ready
        return as_json({"ready": ready}, 200 if ready else 503)

    def metrics(self) -> Response:
        from .exposition import render

        return Response(200, "text/plain; version=0.0.4; charset=utf-8", render(self.server))

    # state

    def state(self) -> Response:
        broker, now = self.broker, self.broker.schedule.monotonic_ms()
        return as_json(
            {
                "cluster_id": broker.cluster_id,
                "node_id": broker.config.node_id,
                "ready": broker.partitions.ready,
                "connections": len(self.server.connections),
                "buffered_bytes": sum(c.buffered_bytes() for c in self.server.connections),
                "loop_lag_ms_max": round(broker.metrics.loop_lag_ms_max, 3),
                "features": dict(broker.image.features.items()),
                "coordinators": {"__cluster_metadata-0": broker.metadata.runtime.describe(now)}
                | {host.partition.name: host.runtime.describe(now) for host in broker.hosts()},
            }
        )

    def _describe(self, partition: Partition) -> dict[str, Any]:
        return {
            "partition": partition.index,
            "leader_epoch": partition.leader_epoch,
            "log_start_offset": partition.start_offset,
            "high_watermark": partition.high_watermark,
            "last_stable_offset": partition.last_stable_offset,
            "log_end_offset": partition.end_offset,
            "policy": str(partition.follower.policy),
            "parked_produces": len(partition.parked),
            "waiting_fetches": len(partition.waiters),
            "size_bytes": partition.log.size if partition.log else 0,
            "state": "offline" if partition.offline else "opening" if partition.log is None else "online",
        }

    def _describe_topic(self, name: str) -> dict[str, Any]:
        found = [p for (topic, _), p in sorted(self.broker.partitions.by_name.items()) if topic == name]
        if not found:
            raise LookupError(f"there is no topic {name}")
        return {"topic": name, "topic_id": found[0].topic_id.hex(), "partitions": [self._describe(p) for p in found]}

    def topics(self) -> Response:
        names = sorted({topic for topic, _ in self.broker.partitions.by_name})
        return as_json({"topics": [self._describe_topic(name) for name in names]})

    def _share(self, path: str) -> Response:
        """`GROUP`, or `GROUP/TOPIC` or `GROUP/TOPIC/PARTITION`, each escaped as URLs are."""
        group, *rest = (unquote(part) for part in path.split("/"))
        if len(rest) > 2:
            raise LookupError(f"nothing answers /v1/share/{path}")
        partition = int(rest[1]) if len(rest) > 1 else None
        return as_json(share_views.group(self.broker, group, rest[0] if rest else None, partition))

    # control

    def _target(self, body: dict[str, Any]) -> list[Partition]:
        topic, index = body.get("topic"), body.get("partition")
        found = [
            p
            for p in self.broker.partitions.by_name.values()
            if (topic is None and not self.broker.is_internal(p.topic)) or (p.topic == topic and index in (None, p.index))
        ]
        if topic is not None and not found:
            raise LookupError(f"there is no partition {topic}" + (f"-{index}" if index is not None else ""))
        return found

    def hold(self, body: dict[str, Any]) -> Response:
        return self._set(body, self._target(body), "held")

    def release(self, body: dict[str, Any]) -> Response:
        return self._set(body, self._target(body), str(IMMEDIATE))

    def policy(self, body: dict[str, Any]) -> Response:
        return self._set(body, self._target(body), str(body.get("policy", "")))

    def _set(self, body: dict[str, Any], found: list[Partition], text: str) -> Response:
        self.broker.policies.set(body.get("topic"), body.get("partition"), parse_policy(text))
        self.broker.event(self.broker.partitions.configure)
        return as_json({"partitions": [{"topic": p.topic, **self._describe(p)} for p in found]})

    def step(self, body: dict[str, Any]) -> Response:
        found = self._target(body)
        batches = int(body.get("batches", 1))
        for _ in range(batches):
            for partition in found:
                end = partition.next_batch_end()
                if end is not None:
                    partition.follower.replicated = max(partition.follower.replicated, end)
                    self.broker.event(lambda partition=partition: self.broker.moved(partition))  # type: ignore[misc]
        return as_json({"partitions": [{"topic": p.topic, **self._describe(p)} for p in found]})

    def retention(self, body: dict[str, Any]) -> Response:
        self.broker.event(self.broker.partitions.apply_retention)
        return as_json({"done": True})

    def compact(self, body: dict[str, Any]) -> Response:
        return as_json({"begun": self.broker.partitions.cleaner.clean_one()})

    def reload(self, body: dict[str, Any]) -> Response:
        found = self._target(body)
        family = self.broker.coordinators.get(str(body.get("topic")))
        if family is None:
            names: list[str] = []
            self.broker.event(lambda: names.extend(n for p in found for n in self.broker.sharing.reload(p)))
            return as_json({"reloaded": names})
        for partition in found:
            self.broker.event(lambda partition=partition: family.reload(partition))  # type: ignore[misc]
        return as_json({"reloaded": [p.name for p in found]})

    def expire(self, body: dict[str, Any]) -> Response:
        self.broker.event(self.broker.groups.expire)
        return as_json({"done": True})
