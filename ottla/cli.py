"""The command `ottla`. What controls a running broker goes through its lab port and nothing else."""

from __future__ import annotations

import gc
import json
import logging
import os
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from . import __version__

if TYPE_CHECKING:
    from .broker.server import Server

LAB = click.option("--lab", "lab", default="http://127.0.0.1:9644", envvar="OTTLA_LAB", show_default=True, help="The broker's lab port.")


class Commands(click.Group):
    """`pipeline` is imported when it is asked for: a broker starts without it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), "pipeline"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "pipeline":
            from .pipeline.command import pipeline

            return pipeline
        return super().get_command(ctx, cmd_name)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ottla")
def main() -> None:
    """A Kafka-compatible broker that starts in a blink and shows what a real broker hides."""


@main.command()
@click.option("-c", "--config", "file", type=click.Path(dir_okay=False), help="A server.properties file.")
@click.option("-v", "--verbose", is_flag=True, help="Log what happens, not only what goes wrong.")
@click.option("--lab", "lab_port", type=int, default=None, is_flag=False, flag_value=9644, help="Open the lab's HTTP port [9644; 0: any].")
@click.option("--announce", is_flag=True, help="Print one line when ready, for programs: address, and the lab's URL.")
@click.argument("settings", nargs=-1)
def serve(file: str | None, verbose: bool, lab_port: int | None, announce: bool, settings: tuple[str, ...]) -> None:
    """Run the broker. SETTINGS are key=value, by Kafka's names.

    Exit codes: 0 stopped in order, 2 bad configuration, 3 port taken, 4 data directory in use, 5 data directory unusable,
    6 every log directory failed while running.
    """
    gc.disable()  # until the broker serves: imports make much and drop little
    from .broker import config as configuration
    from .broker.server import EXIT_BAD_CONFIG, install_loop
    from .broker.server import serve as run_server

    level = logging.DEBUG if verbose else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format="%(asctime)s %(levelname)s %(message)s")
    try:
        sources = [configuration.from_environment(os.environ)]
        if file is not None:
            sources.append(configuration.from_file(file))
        sources.append(configuration.from_arguments(settings))
        if lab_port is not None:
            sources.append([("ottla.lab.port", str(lab_port), "command line")])
        config = configuration.build(*sources)
    except configuration.ConfigError as error:
        click.echo(f"ottla: {error}", err=True)
        sys.exit(EXIT_BAD_CONFIG)
    for warning in config.warnings:
        click.echo(f"ottla: warning: {warning}", err=True)
    if any(one.host in ("0.0.0.0", "", "::") for one in config.listeners):
        click.echo("ottla: warning: everyone who reaches this machine can read and write, as there is no authentication", err=True)
    sys.exit(install_loop()(run_server(config, _announce_line if announce else _announce_screen)))


def _announce_line(server: Server) -> None:
    first = next(iter(server.config.advertised.values()))
    lab = f" http://127.0.0.1:{server.lab.port}" if server.lab is not None else ""
    print(f"{first.host}:{first.port}{lab}", flush=True)


def _announce_screen(server: Server) -> None:
    config = server.config
    first = next(iter(config.advertised.values()))
    print(f"ottla {__version__} serves Kafka clients, as Apache Kafka 4.4.0 would")
    for listener in config.listeners:
        told = config.advertised[listener.name]
        also = f", clients are told {told.host}:{told.port}" if (told.host, told.port) != (listener.host, listener.port) else ""
        print(f"  listener   {listener}{also}")
    for directory in server.broker.directories:
        print(f"  data       {os.path.abspath(directory.path)}  (cluster {server.broker.cluster_id}, node {config.node_id})")
    if server.lab is not None:
        print(f"  lab        http://127.0.0.1:{server.lab.port}/v1/topics, /metrics")
    print(f"  connect    bootstrap.servers={first.host}:{first.port}")
    print("  stop       Ctrl-C", flush=True)


@main.command()
@click.option("-b", "--bootstrap-server", default="127.0.0.1:9092", show_default=True)
@click.option("--timeout", default=2.0, show_default=True, help="Seconds to wait for the answer.")
def ready(bootstrap_server: str, timeout: float) -> None:
    """Exit with 0 when a broker answers, with 1 when none does: for health checks."""
    host, _, port = bootstrap_server.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout) as connection:
            connection.sendall(bytes.fromhex("0000000e 0012 0000 00000001 0004") + b"ping")
            answer = connection.recv(10)
    except (OSError, ValueError) as error:
        click.echo(f"not ready: {error}", err=True)
        sys.exit(1)
    sys.exit(0 if len(answer) == 10 and answer[4:8] == b"\0\0\0\1" else 1)


def _ask(lab: str, path: str, body: dict[str, Any] | None = None) -> Any:
    import urllib.error
    import urllib.request

    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{lab}/v1/{path}", data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        click.echo(f"ottla: {json.load(error)['error']}", err=True)
    except OSError as error:
        click.echo(f"ottla: no lab at {lab} ({error}); start the broker with --lab", err=True)
    sys.exit(1)


def _table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], indent: str = "") -> None:
    lines = [tuple(columns), *(tuple("-" if row[c] is None else str(row[c]) for c in columns) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        click.echo(indent + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _show(partitions: list[dict[str, Any]]) -> None:
    _table(("topic", "partition", "log_start_offset", "high_watermark", "last_stable_offset", "log_end_offset", "policy", "state"), partitions)


@main.command()
@LAB
@click.option("--json", "as_json", is_flag=True, help="Print what the lab said.")
@click.argument("names", nargs=-1)
def topics(lab: str, as_json: bool, names: tuple[str, ...]) -> None:
    """Show topics and partitions, with their high watermarks."""
    found = _ask(lab, "topics")["topics"]
    chosen = [t for t in found if not names or t["topic"] in names]
    if as_json:
        click.echo(json.dumps(chosen, indent=2))
        return
    _show([{"topic": t["topic"], **p} for t in chosen for p in t["partitions"]])


@main.command()
@LAB
@click.option("--json", "as_json", is_flag=True, help="Print what the lab said.")
@click.option("-w", "--watch", is_flag=True, help="Show it again every second, until Ctrl-C.")
@click.argument("group", required=False)
@click.argument("share_partition", required=False, metavar="[TOPIC[:PARTITION]]")
def share(lab: str, as_json: bool, watch: bool, group: str | None, share_partition: str | None) -> None:
    """Show what GROUP holds of its partitions: records in flight, who has them, and for how long. Without GROUP: which groups there are."""
    import time
    from urllib.parse import quote

    topic, _, index = (share_partition or "").rpartition(":") if ":" in (share_partition or "") else (share_partition, "", "")
    path = "/".join(["share", *(quote(part, safe="") for part in (group, topic, index) if part)])
    while True:
        found = _ask(lab, path)
        if watch:
            click.clear()
        if as_json:
            click.echo(json.dumps(found, indent=2))
        elif group is None:
            _table(("group", "share_partitions"), found["groups"])
        else:
            for one in found["share_partitions"]:
                _show_share_partition(one)
        if not watch:
            return
        time.sleep(1)


def _show_share_partition(one: dict[str, Any]) -> None:
    offsets = "start_offset", "end_offset", "high_watermark", "lag", "in_flight", "complete", "lock_timeouts", "waiting_fetches"
    click.echo(f"{one['topic']}:{one['partition']}  {one['state']}  " + "  ".join(f"{name}={one[name]}" for name in offsets))
    _table(("first", "last", "state", "delivery_count", "member", "lock_remaining_ms", "being_written"), one["records"], "  ")
    if one["runs_left_out"]:
        click.echo(f"  ... and more: ottla share GROUP {one['topic']}:{one['partition']}")
    click.echo("  what happened last:")
    now = max((step["at_ms"] for step in one["history"]), default=0)
    steps = [{**step, "ms": step["at_ms"] - now, "member": step["member_id"] or None} for step in one["history"][-10:]]
    _table(("ms", "what", "first", "last", "member"), steps, "  ")


@main.command()
@LAB
@click.option("--json", "as_json", is_flag=True, help="Print what the lab said.")
@click.option("-w", "--watch", is_flag=True, help="Show it again every second, until Ctrl-C.")
@click.option("-a", "--all", "everything", is_flag=True, help="Show transactional ids without a transaction too.")
def transactions(lab: str, as_json: bool, watch: bool, everything: bool) -> None:
    """Show who has a transaction open, since when and on which partitions, and what blocks a last stable offset."""
    import time

    while True:
        found = _ask(lab, "transactions/all" if everything else "transactions")
        if watch:
            click.clear()
        if as_json:
            click.echo(json.dumps(found, indent=2))
        else:
            _show_transactions(found)
        if not watch:
            return
        time.sleep(1)


def _show_transactions(found: dict[str, Any]) -> None:
    columns = "transactional_id", "producer_id", "producer_epoch", "state", "open_ms", "aborts_in_ms", "partitions"
    places = "{topic}:{partition}@{first_offset}"
    rows = [{**one, "partitions": " ".join(places.format(**p) for p in one["partitions"]) or None} for one in found["transactions"]]
    _table(columns, rows)
    for one in found["transactions"]:
        if one["given_up"]:
            click.echo(f"{one['transactional_id']}: its markers cannot be written: {one['given_up']}")
    if found["held_back"]:
        click.echo("last stable offsets held back:")
        held = "topic", "partition", "last_stable_offset", "high_watermark", "records_behind", "transactional_id", "producer_id", "idle_ms", "why"
        _table(held, found["held_back"], "  ")


def _control(lab: str, verb: str, topic: str | None, partition: int | None, **more: Any) -> None:
    body = {key: value for key, value in {"topic": topic, "partition": partition, **more}.items() if value is not None}
    _show(_ask(lab, verb, body)["partitions"])


PARTITION = click.option("-p", "--partition", type=int, default=None, help="One partition; otherwise all of the topic.")


@main.command()
@LAB
@PARTITION
@click.argument("topic")
def hold(lab: str, topic: str, partition: int | None) -> None:
    """Make the high watermark of TOPIC stand still."""
    _control(lab, "hold", topic, partition)


@main.command()
@LAB
@PARTITION
@click.argument("topic")
def release(lab: str, topic: str, partition: int | None) -> None:
    """Let the high watermark of TOPIC follow the log again."""
    _control(lab, "release", topic, partition)


@main.command()
@LAB
@PARTITION
@click.option("-n", "--batches", default=1, show_default=True)
@click.argument("topic")
def step(lab: str, topic: str, partition: int | None, batches: int) -> None:
    """Take the high watermark of TOPIC on by whole batches."""
    _control(lab, "step", topic, partition, batches=batches)


@main.command()
@LAB
@PARTITION
@click.option("-t", "--topic", default=None, help="One topic; otherwise all user topics.")
@click.argument("policy")
def policy(lab: str, topic: str | None, partition: int | None, policy: str) -> None:
    """Set how high watermarks move: immediate, held, lag=20ms, lag=20ms±5ms, bytes=4096."""
    _control(lab, "policy", topic, partition, policy=policy)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--records/--no-records", "with_records", default=True, help="Open the batches.")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
def dump(files: tuple[str, ...], as_json: bool, with_records: bool) -> None:
    """Show what segments, indexes, snapshots and checkpoints hold."""
    from .dump import dump_file, text_of

    for file in files:
        for entry in dump_file(file, with_records):
            click.echo(json.dumps(entry) if as_json else text_of(entry))
