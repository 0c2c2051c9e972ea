"""The command `ottla`: `serve`, and what needs no running broker. The others are imported when they are used."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Mapping
from typing import ClassVar

import click

from . import __version__, build
from .lazy import LazyGroup
from .protocol.text import printable
from .serving import LAB_WITHOUT_PORT, Options, run

CONTROL = ("topics", "records", "share", "transactions", "hold", "release", "step", "policy")


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


class ServeCommand(click.Command):
    """`--lab` takes a port as `--lab=PORT` or as the number after it; any other argument after it is a setting."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        following = [*args, ""][1:]
        rest = [
            f"{one}={LAB_WITHOUT_PORT}" if one == "--lab" and not after.isdecimal() else one
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
    run(Options(file, verbose, lab_port, seed, nodes, scenario, announce, settings))


@main.command()
@click.option("-b", "--bootstrap-server", default="127.0.0.1:9092", show_default=True)
@click.option("--timeout", default=2.0, show_default=True, help="Seconds to wait for the broker's reply.")
@click.option("--tls", is_flag=True, help="The listener has TLS: a handshake is the answer, whatever its certificate.")
def ready(bootstrap_server: str, timeout: float, tls: bool) -> None:
    """Health check: exit with 0 if a broker answers, with 1 if none does."""
    from .addresses import Address

    try:
        with socket.create_connection(Address.parse(bootstrap_server), timeout) as connection:
            if tls:
                return _shake(connection)
            connection.sendall(bytes.fromhex("0000000e 0012 0000 00000001 0004") + b"ping")
            answer = connection.recv(10)
    except (OSError, ValueError) as error:
        click.echo(f"not ready: {bootstrap_server}: {error}", err=True)
        sys.exit(1)
    if len(answer) != 10 or answer[4:8] != b"\0\0\0\1":
        what = "no reply of a Kafka broker" if answer else "it closed the connection"
        click.echo(f"not ready: {bootstrap_server}: {what}", err=True)
        sys.exit(1)


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
@click.option(
    "--days",
    type=click.IntRange(1, 36_500),
    default=825,
    show_default=True,
    help="How long the certificates are valid.",
)
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
