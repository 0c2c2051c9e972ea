"""The command `ottla`."""

from __future__ import annotations

import logging
import os
import sys

import click

from . import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ottla")
def main() -> None:
    """A Kafka-compatible broker that starts in a blink."""


@main.command()
@click.option("-c", "--config", "file", type=click.Path(dir_okay=False), help="A server.properties file.")
@click.option("-v", "--verbose", is_flag=True, help="Log what happens, not only what goes wrong.")
@click.option("--lab", "lab_port", type=int, default=None, help="Open the lab's HTTP port (0: any) on loopback.")
@click.argument("settings", nargs=-1)
def serve(file: str | None, verbose: bool, lab_port: int | None, settings: tuple[str, ...]) -> None:
    """Run the broker. SETTINGS are key=value, by Kafka's names."""
    from .broker import config as configuration
    from .broker.server import EXIT_BAD_CONFIG, install_loop
    from .broker.server import serve as run_server

    logging.basicConfig(stream=sys.stderr, level=logging.DEBUG if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
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
    sys.exit(install_loop()(run_server(config, _announce)))


def _announce(server: object) -> None:
    print("ready", flush=True)
