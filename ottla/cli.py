"""The command `ottla`: `serve`, and what needs no running broker. The others are imported when they are used."""

from __future__ import annotations

import gc
import json
import logging
import os
import socket
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import click

from . import __version__, build
from .lazy import LazyGroup
from .protocol.text import printable

if TYPE_CHECKING:
    from .broker.net.server import Server

CONTROL = ("topics", "records", "share", "transactions", "hold", "release", "step", "policy")
LAB_PORT = 9644
LAB_PORT_ANY = "any"  # --lab without a port


class Commands(LazyGroup):
    """What `ottla serve` does not need is imported when it is used."""

    lazy: ClassVar[Mapping[str, str]] = {
        "pipeline": "pipeline.commands:pipeline",
        "lab": "lab_group:lab",
        "replay": "replay_command:replay",
        "trace": "trace_commands:trace",
        "clients": "client_commands:clients",
        "clock": "clock_commands:clock",
        "group": "group_commands:group",
        "groups": "group_commands:groups",
        "reset-offsets": "group_commands:reset_offsets",
        "delete-offsets": "group_commands:delete_offsets",
        "compare": "compare_command:compare",
        "adopt": "adopt_command:adopt",
        "offsets": "offset_commands:offsets",
        "handover": "handover_commands:handover",
        "takeover": "handover_commands:takeover",
        "node": "node_commands:node",
        "partition": "partition_commands:partition",
        "cluster": "partition_commands:cluster",
        "ui": "ui_command:ui",
        "verdict": "verdict_command:verdict",
        **{name: f"lab_commands:{name}" for name in CONTROL},
    }


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ottla", message=f"%(prog)s, version %(version)s ({build.kind()})")
def main() -> None:
    """A Kafka-compatible broker that starts at once and shows the state that a real broker hides."""


class LogLines(logging.Formatter):
    """Escapes log lines: a name that a peer chose can neither control a terminal nor
    look like a log line of its own.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # logging's name
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: logging._SysExcInfoType) -> str:  # logging's name
        return printable(super().formatException(ei), keep="\n\t")


class ServeCommand(click.Command):
    """`--lab` takes a port as `--lab=PORT` or as the number after it; any other argument after it is a setting."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        following = [*args[1:], ""]
        rest = [
            f"{one}={LAB_PORT_ANY}" if one == "--lab" and not after.isdecimal() else one
            for one, after in zip(args, following, strict=True)
        ]
        return super().parse_args(ctx, rest)


@main.command(cls=ServeCommand)
@click.option("-c", "--config", "file", type=click.Path(), help="A server.properties file.")
@click.option("-v", "--verbose", is_flag=True, help="Log debug messages too; otherwise only warnings and errors.")
@click.option(
    "--lab",
    "lab_port",
    default=None,
    metavar="[=PORT]",
    help="Open the lab's HTTP port [default: ottla.lab.port, else 9644; 0 for any free port].",
)
@click.option(
    "--seed",
    type=int,
    default=None,
    help="Let everything that is chosen by chance follow from this number, with a clock that stands still: two runs "
    "with the same input write the same bytes (ottla.lab.seed, ottla.lab.clock).",
)
@click.option(
    "--nodes",
    type=click.IntRange(1, 100),
    default=None,
    help="Run this many nodes in one process, with consecutive ids and ports (ottla.nodes).",
)
@click.option("--scenario", type=click.Path(), help="A scenario file to run at start (ottla.lab.scenario).")
@click.option(
    "--announce",
    is_flag=True,
    help="Print one line when the broker is ready, for programs: its address and the lab's URL.",
)
@click.argument("settings", nargs=-1)
def serve(
    file: str | None,
    verbose: bool,
    lab_port: str | None,
    seed: int | None,
    nodes: int | None,
    scenario: str | None,
    announce: bool,
    settings: tuple[str, ...],
) -> None:
    """Run the broker. SETTINGS are key=value pairs with Kafka's configuration keys.

    Exit codes: 0 clean shutdown, 2 invalid configuration, 3 port in use, 4 data directory in use, 5 data directory
    unusable, 6 every log directory failed while the broker ran, or a log could not be closed cleanly, 7 ZooKeeper
    cannot be reached or has another broker of this id.
    """
    os.umask(0o077)  # what the broker writes is for its user only
    gc.disable()  # until the broker serves: imports create many objects and free few
    from .broker.config import sources
    from .broker.config.config import ConfigError
    from .broker.net.server import EXIT_BAD_CONFIG, install_loop
    from .broker.net.server import serve as run_server
    from .served import served_by

    level = logging.DEBUG if verbose else logging.WARNING
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=level)
    try:
        given = [sources.from_environment(os.environ)]
        if file is not None:
            given.append(sources.from_file(file))
        given.append(sources.from_arguments(settings))
        if lab_port not in (None, LAB_PORT_ANY):
            given.append([("ottla.lab.port", lab_port, "--lab")])
        if seed is not None:
            given.append([("ottla.lab.seed", str(seed), "--seed")])
        if nodes is not None:
            given.append([("ottla.nodes", str(nodes), "--nodes")])
        if scenario is not None:
            given.append([("ottla.lab.scenario", scenario, "--scenario")])
        config = sources.build(*given)
    except ConfigError as error:
        click.echo(printable(f"ottla: {error}"), err=True)
        sys.exit(EXIT_BAD_CONFIG)
    if lab_port == LAB_PORT_ANY and config["ottla.lab.port"] < 0:
        config.values["ottla.lab.port"] = LAB_PORT
    _hide_secrets(settings)
    for warning in config.warnings:
        click.echo(printable(f"ottla: warning: {warning}"), err=True)
    if any(one.host in ("0.0.0.0", "", "::") and not config.authenticates(one.name) for one in config.listeners):
        click.echo(
            "ottla: warning: a listener is open to the network without authentication: any host can read and write",
            err=True,
        )
    served, make_dispatcher = served_by(config)
    announced = _announce_line if announce else _announce_screen
    sys.exit(install_loop()(run_server(config, served, announced, make_dispatcher)))


def _hide_secrets(settings: tuple[str, ...]) -> None:
    """Removes secrets of the command line from the list of processes; warns, because they could be read until now."""
    from .broker.config.secrets import is_secret

    secret = [one for one in settings if is_secret(one.partition("=")[0].strip())]
    if secret:
        from . import process_list

        hidden = "until the broker started" if process_list.hide(secret) else "as long as the broker runs"
        names = ", ".join(one.partition("=")[0].strip() for one in secret)
        click.echo(
            printable(
                f"ottla: warning: other users of this machine could read {names} in the list of processes {hidden}; "
                "write secrets into a file (-c) or a variable"
            ),
            err=True,
        )


def _announce_line(server: Server) -> None:
    lab = f" {server.lab.url}" if server.lab is not None else ""
    print(f"{_addresses(server)}{lab}", flush=True)


def _addresses(server: Server) -> str:
    """Returns where the clients of the first listener find the nodes."""
    first = [next(iter(node.config.advertised.values())) for node in server.broker.nodes]
    return ",".join(f"{one.host}:{one.port}" for one in first)


def _announce_screen(server: Server) -> None:
    config = server.config
    first = next(iter(config.advertised.values()))
    print(f"ottla {__version__} is ready and serves Kafka clients like Apache Kafka {config.emulates or '4.4.0'}")
    for node in server.broker.nodes:
        of_node = f"  (node {node.id})" if len(server.broker.nodes) > 1 else ""
        for listener in node.config.listeners:
            at = node.config.advertised[listener.name]
            is_same = (at.host, at.port) == (listener.host, listener.port)
            print(f"  listener   {listener}{'' if is_same else f', advertised as {at.host}:{at.port}'}{of_node}")
    for directory in server.broker.log_directories.all:
        print(
            f"  data       {os.path.abspath(directory.path)}  (cluster {server.broker.cluster_id}, node "
            f"{config.node_id})"
        )
    if server.lab is not None:
        print(f"  lab        {server.lab.url}/v1/topics, /metrics")
    protocol = config.security_protocol(first.name).name
    secured = "" if protocol == "PLAINTEXT" else f", security.protocol={protocol}"
    print(f"  connect    bootstrap.servers={_addresses(server)}{secured}")
    print("  stop       Ctrl-C", flush=True)


@main.command()
@click.option("-b", "--bootstrap-server", default="127.0.0.1:9092", show_default=True)
@click.option("--timeout", default=2.0, show_default=True, help="Seconds to wait for the broker's reply.")
@click.option("--tls", is_flag=True, help="The listener has TLS: a handshake is the answer, whatever its certificate.")
def ready(bootstrap_server: str, timeout: float, tls: bool) -> None:
    """Health check: exit with 0 if a broker answers, with 1 if none does."""
    host, _, port = bootstrap_server.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout) as connection:
            if tls:
                return _shake(connection)
            connection.sendall(bytes.fromhex("0000000e 0012 0000 00000001 0004") + b"ping")
            answer = connection.recv(10)
    except (OSError, ValueError) as error:
        click.echo(f"not ready: {bootstrap_server}: {error}", err=True)
        sys.exit(1)
    sys.exit(0 if len(answer) == 10 and answer[4:8] == b"\0\0\0\1" else 1)


def _shake(connection: socket.socket) -> None:
    """Makes a TLS handshake. Raises OSError if the peer does not."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.wrap_socket(connection).close()


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option(
    "--records/--no-records", "with_records", default=True, help="Print the records of each batch, or only batches."
)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
def dump(files: tuple[str, ...], as_json: bool, with_records: bool) -> None:
    """Print the content of segments, indexes, snapshots and checkpoints."""
    from .dump import dump_file, text_of

    for file in files:
        for entry in dump_file(file, with_records):
            click.echo(json.dumps(entry) if as_json else printable(text_of(entry)))


@main.command()
@click.option("--host", "hosts", multiple=True, help="A name or address of the server; may be given several times.")
@click.option("--client", "clients", multiple=True, help="The name of a client; may be given several times.")
@click.option("--password", default="changeit", show_default=True, help="The password of the PKCS#12 and JKS stores.")
@click.option("--days", default=825, show_default=True, help="How long the certificates are valid.")
@click.argument("directory", type=click.Path(file_okay=False))
def certs(hosts: tuple[str, ...], clients: tuple[str, ...], password: str, days: int, directory: str) -> None:
    """Make certificates for development in DIRECTORY: a certificate authority, one of a server and one for each client,
    as PEM, PKCS#12 and JKS. Prints what the broker and clients write to use them.

    An authority that is in the directory is used again.
    """
    from pathlib import Path

    from . import certs as made

    folder, names = Path(directory), clients or ("client",)
    try:
        made.make(folder, hosts or made.HOSTS, names, password, days)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"cannot make certificates in {folder}: {error}") from None
    click.echo(made.described(folder, names[0], password))
