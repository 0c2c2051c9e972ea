"""`ottla serve`: from its options to the end of the broker.

Arguments that need no interpretation are read here (`plain_options`), because click and what it imports take a tenth of
the time of a start. Click reads all others, and explains what is wrong with them.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from . import __version__
from .protocol.text import printable

if TYPE_CHECKING:
    from .broker.config.config import Config
    from .broker.net.server import Server

LAB_PORT_DEFAULT = 9644
LAB_WITHOUT_PORT = "any"  # the value of `--lab` without a port


class Options(NamedTuple):
    """The options of `ottla serve`, as its help explains them."""

    file: str | None = None
    verbose: bool = False
    lab_port: str | None = None
    seed: int | None = None
    nodes: int | None = None
    scenario: str | None = None
    announce: bool = False
    settings: tuple[str, ...] = ()


def plain_options(arguments: Sequence[str]) -> Options | None:
    """Returns what click would read from the arguments after `serve`, if they are only settings, `--announce`, `-v` and
    `-c FILE`; None if there is any other.
    """
    options, settings, following = Options(), [], iter(arguments)
    for argument in following:
        if not argument.startswith("-"):
            settings.append(argument)
        elif argument == "--announce":
            options = options._replace(announce=True)
        elif argument in ("-v", "--verbose"):
            options = options._replace(verbose=True)
        elif argument in ("-c", "--config"):
            file = next(following, "-")
            if file.startswith("-"):
                return None
            options = options._replace(file=file)
        else:
            return None
    return options._replace(settings=tuple(settings))


class LogLines(logging.Formatter):
    """Escapes log lines: a name that a peer chose can neither control a terminal nor
    look like a log line of its own.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # logging's name
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: logging._SysExcInfoType) -> str:  # logging's name
        return printable(super().formatException(ei), keep="\n\t")


def run(options: Options) -> None:
    """Runs the broker, and ends the process with one of the exit codes of `ottla serve`."""
    os.umask(0o077)  # what the broker writes is for its user only
    gc.disable()  # until the broker serves: imports create many objects and free few
    from .broker.config.config import ConfigError
    from .broker.net.server import EXIT_BAD_CONFIG, install_loop
    from .broker.net.server import serve as run_server
    from .served import served_by

    level = logging.DEBUG if options.verbose else logging.WARNING
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=level)
    try:
        config = _configuration(options)
    except ConfigError as error:
        _say(printable(f"ottla: {error}"))
        sys.exit(EXIT_BAD_CONFIG)
    _hide_secrets(options.settings)
    for warning in config.warnings:
        _say(printable(f"ottla: warning: {warning}"))
    if any(one.host in ("0.0.0.0", "", "::") and not config.authenticates(one.name) for one in config.listeners):
        _say("ottla: warning: a listener is open to the network without authentication: any host can read and write")
    served, make_dispatcher = served_by(config)
    announced = _announce_line if options.announce else _announce_screen
    sys.exit(install_loop()(run_server(config, served, announced, make_dispatcher)))


def _configuration(options: Options) -> Config:
    """Returns the configuration: variables, then the file, then settings, then the other options. Raises
    ConfigError.
    """
    from .broker.config import sources

    given = [sources.from_environment(os.environ)]
    if options.file is not None:
        given.append(sources.from_file(options.file))
    given.append(sources.from_arguments(options.settings))
    lab_port = None if options.lab_port == LAB_WITHOUT_PORT else options.lab_port
    for key, value, option in (
        ("ottla.lab.port", lab_port, "--lab"),
        ("ottla.lab.seed", options.seed, "--seed"),
        ("ottla.nodes", options.nodes, "--nodes"),
        ("ottla.lab.scenario", options.scenario, "--scenario"),
    ):
        if value is not None:
            given.append([(key, str(value), option)])
    config = sources.build(*given)
    if options.lab_port == LAB_WITHOUT_PORT and config["ottla.lab.port"] < 0:
        config.values["ottla.lab.port"] = LAB_PORT_DEFAULT
    return config


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _hide_secrets(settings: tuple[str, ...]) -> None:
    """Removes secrets of the command line from the list of processes; warns, because they could be read until now."""
    from .broker.config.secrets import is_secret

    secret = [one for one in settings if is_secret(one.partition("=")[0].strip())]
    if secret:
        from . import process_list

        hidden = "until the broker started" if process_list.hide(secret) else "as long as the broker runs"
        names = ", ".join(one.partition("=")[0].strip() for one in secret)
        _say(
            printable(
                f"ottla: warning: other users of this machine could read {names} in the list of processes {hidden}; "
                "write secrets into a file (-c) or a variable"
            )
        )


def _announce_line(server: Server) -> None:
    lab = f" {server.lab.url}" if server.lab is not None else ""
    print(f"{_addresses(server)}{lab}", flush=True)


def _addresses(server: Server) -> str:
    """Returns where the clients of the first listener find the nodes."""
    first = [next(iter(node.config.advertised.values())) for node in server.broker.nodes]
    return ",".join(one.address for one in first)


def _announce_screen(server: Server) -> None:
    config = server.config
    first = next(iter(config.advertised.values()))
    print(f"ottla {__version__} is ready and serves Kafka clients like Apache Kafka {config.emulates or '4.4.0'}")
    for node in server.broker.nodes:
        of_node = f"  (node {node.id})" if len(server.broker.nodes) > 1 else ""
        for listener in node.config.listeners:
            at = node.config.advertised[listener.name]
            is_same = (at.host, at.port) == (listener.host, listener.port)
            print(f"  listener   {listener}{'' if is_same else f', advertised as {at.address}'}{of_node}")
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
