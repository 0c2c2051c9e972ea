"""The lab: one loopback HTTP port with metrics, health, and documented JSON under `/v1` to see and control the simulation.

    GET  /metrics                     Prometheus text
    GET  /live, /ready                200, or 503 while partitions are being opened
    GET  /v1/state                    cluster, connections, coordinators
    GET  /v1/topics                   topics and their partitions
    GET  /v1/topics/{topic}           one topic
    POST /v1/hold                     {"topic": t, "partition": p?}: its high watermark stands still
    POST /v1/release                  {"topic": t, "partition": p?}: it moves again, at once
    POST /v1/policy                   {"topic": t?, "partition": p?, "policy": "lag=50ms±10ms"}
    POST /v1/step                     {"topic": t, "partition": p?, "batches": 1}: takes it on by whole batches
    POST /v1/retention, /v1/compact   what would happen in the next round happens now

Errors are {"error": text} with 400 or 404. Peers that are not loopback are refused unless `ottla.lab.open=true`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from .partition import Partition
from .replication import IMMEDIATE, parse_policy

if TYPE_CHECKING:
    from .server import Server


class Lab:
    """The HTTP side of a server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.broker = server.broker
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application(middlewares=[self._guard])
        app.router.add_get("/metrics", self.metrics)
        app.router.add_get("/live", self.live)
        app.router.add_get("/ready", self.ready)
        app.router.add_get("/v1/state", self.state)
        app.router.add_get("/v1/topics", self.topics)
        app.router.add_get("/v1/topics/{topic}", self.topic)
        for verb in ("hold", "release", "policy", "step", "retention", "compact"):
            app.router.add_post(f"/v1/{verb}", getattr(self, verb))
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        host = "0.0.0.0" if self.server.config["ottla.lab.open"] else "127.0.0.1"
        site = web.TCPSite(self._runner, host, self.server.config["ottla.lab.port"])
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.StreamResponse:
        if not self.server.config["ottla.lab.open"] and not ipaddress.ip_address(request.remote or "0.0.0.0").is_loopback:
            return web.json_response({"error": "the lab answers loopback peers only"}, status=403)
        try:
            return await handler(request)
        except LookupError as error:
            return web.json_response({"error": str(error.args[0])}, status=404)
        except (ValueError, TypeError) as error:
            return web.json_response({"error": str(error)}, status=400)

    # health and metrics

    async def live(self, request: web.Request) -> web.Response:
        return web.json_response({"live": True})

    async def ready(self, request: web.Request) -> web.Response:
        ready = self.broker.partitions.ready
        return web.json_response({"ready": ready}, status=200 if ready else 503)

    async def metrics(self, request: web.Request) -> web.Response:
        from .exposition import render

        return web.Response(body=render(self.server), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    # state

    async def state(self, request: web.Request) -> web.Response:
        broker, now = self.broker, self.broker.schedule.monotonic_ms()
        return web.json_response(
            {
                "cluster_id": broker.cluster_id,
                "node_id": broker.config.node_id,
                "ready": broker.partitions.ready,
                "connections": len(self.server.connections),
                "buffered_bytes": sum(c.buffered_bytes() for c in self.server.connections),
                "loop_lag_ms_max": round(broker.metrics.loop_lag_ms_max, 3),
                "features": dict(broker.image.features.items()),
                "coordinators": {"__cluster_metadata-0": broker.metadata.runtime.describe(now)},
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

    async def topics(self, request: web.Request) -> web.Response:
        names = sorted({topic for topic, _ in self.broker.partitions.by_name})
        return web.json_response({"topics": [self._describe_topic(name) for name in names]})

    async def topic(self, request: web.Request) -> web.Response:
        return web.json_response(self._describe_topic(request.match_info["topic"]))

    # control

    async def _target(self, request: web.Request) -> tuple[dict[str, Any], list[Partition]]:
        body = await request.json() if request.can_read_body else {}
        if not isinstance(body, dict):
            raise ValueError("the body must be a JSON object")
        topic, index = body.get("topic"), body.get("partition")
        found = [
            p
            for p in self.broker.partitions.by_name.values()
            if (topic is None and not self.broker.is_internal(p.topic)) or (p.topic == topic and index in (None, p.index))
        ]
        if topic is not None and not found:
            raise LookupError(f"there is no partition {topic}" + (f"-{index}" if index is not None else ""))
        return body, found

    async def hold(self, request: web.Request) -> web.Response:
        body, found = await self._target(request)
        return self._set(body, found, "held")

    async def release(self, request: web.Request) -> web.Response:
        body, found = await self._target(request)
        return self._set(body, found, str(IMMEDIATE))

    async def policy(self, request: web.Request) -> web.Response:
        body, found = await self._target(request)
        return self._set(body, found, str(body.get("policy", "")))

    def _set(self, body: dict[str, Any], found: list[Partition], text: str) -> web.Response:
        self.broker.policies.set(body.get("topic"), body.get("partition"), parse_policy(text))
        self.broker.event(self.broker.partitions.configure)
        return web.json_response({"partitions": [{"topic": p.topic, **self._describe(p)} for p in found]})

    async def step(self, request: web.Request) -> web.Response:
        body, found = await self._target(request)
        batches = int(body.get("batches", 1))
        for _ in range(batches):
            for partition in found:
                end = partition.next_batch_end()
                if end is not None:
                    partition.follower.replicated = max(partition.follower.replicated, end)
                    self.broker.event(lambda partition=partition: self.broker.moved(partition))  # type: ignore[misc]
        return web.json_response({"partitions": [{"topic": p.topic, **self._describe(p)} for p in found]})

    async def retention(self, request: web.Request) -> web.Response:
        self.broker.event(self.broker.partitions.apply_retention)
        return web.json_response({"done": True})

    async def compact(self, request: web.Request) -> web.Response:
        return web.json_response({"begun": self.broker.partitions.cleaner.clean_one()})
