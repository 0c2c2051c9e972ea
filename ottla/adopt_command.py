"""`ottla adopt`: directories of a Kafka with ZooKeeper become directories of ottla."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from uuid import uuid4

import click

from .adoption.catalog import Catalog, CatalogInvalid, from_described
from .adoption.plan import Given
from .adoption.report import Report, report
from .adoption.work import Adoption, Order, continued, prepared
from .broker.config.config import ConfigError
from .broker.zookeeper.broker_configs import OLD_SECRET, SECRET
from .command_logs import logged_from
from .handover import EXIT_USAGE, HandoverRefused
from .handover_commands import keys_of_file, refusals
from .protocol.text import printable
from .storage.checkpoints import uuid_to_text
from .zookeeper_options import SSL, zookeeper_config, zookeeper_keys_option


@click.command()
@click.argument("directories", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False))
@click.option("--to", "target", type=click.Path(), help="A directory that is empty, or not there: DIRECTORIES stay.")
@click.option("--in-place", is_flag=True, help="Change DIRECTORIES, which are all of one broker.")
@click.option("--dry-run", is_flag=True, help="Show the plan, and do nothing.")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; needs --yes or --dry-run.")
@click.option(
    "--configs",
    "file",
    type=click.Path(exists=True, dir_okay=False),
    help="What the old cluster's kafka-topics --describe printed.",
)
@click.option(
    "--zookeeper",
    "connect",
    metavar="HOST:PORT[/CHROOT]",
    help="The old cluster's ZooKeeper, which is only read: topics, configurations, quotas, rights (ottla[zookeeper]).",
)
@click.option(
    "-c",
    "--config",
    "properties",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    help="The old broker's server.properties: its password.encoder.secret opens the passwords that ZooKeeper has, and "
    "zookeeper.ssl.* says how ZooKeeper is reached.",
)
@zookeeper_keys_option
@click.option("--let-expire", is_flag=True, help="Leave retention as it was, also where it deletes all that is old.")
@click.option("--link", "links", is_flag=True, help="With --to: link closed segments instead of copying them.")
def adopt(
    directories: tuple[str, ...],
    target: str | None,
    in_place: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    file: str | None,
    connect: str | None,
    properties: tuple[str, ...],
    zookeeper_keys: tuple[str, ...],
    let_expire: bool,
    links: bool,
) -> None:
    """Let ottla go on with what a Kafka with ZooKeeper had, from 0.8.2 to 3.9.

    DIRECTORIES are the log.dirs of a broker that was stopped, or those of several brokers of one cluster. Says what
    they hold and what it will do with it, and asks before it writes. Without --to and --in-place it only says.

    Exit codes: 0 done, 1 something is lost, 2 wrong usage or not agreed to, 4 a directory is in use, 5 a directory
    cannot be used.
    """
    writes = not dry_run and (in_place or target is not None)
    # indexes of old formats are made again, and cuts are reported
    with refusals(), logged_from(logging.ERROR, "ottla"):
        for is_wrong, words in (
            (target is not None and in_place, "--to and --in-place exclude each other"),
            (file is not None and connect is not None, "--configs and --zookeeper exclude each other"),
            (links and target is None, "--link needs --to"),
            (bool(properties) and connect is None, "-c needs --zookeeper, which has the passwords that it opens"),
            (bool(zookeeper_keys) and connect is None, "-o needs --zookeeper"),
            (as_json and writes and not yes, "--json needs --yes or --dry-run"),
        ):
            if is_wrong:
                raise HandoverRefused(words, EXIT_USAGE)
        if writes and (done := continued(directories, target)):
            words = printable(f"finished what was begun in {', '.join(done)}: it had only to be put in place")
            click.echo(json.dumps({"made": True, "finished": done}) if as_json else words)
            return
        secrets = _secrets(properties)
        known = _read_zookeeper(connect, properties, zookeeper_keys) if connect is not None else _described(file)
        given = Given(known, let_expire, uuid_to_text(uuid4().bytes), secrets)
        with prepared(Order(directories, target, given, links)) as adoption:
            found = report(adoption, _named(file, connect))
            if not as_json:
                _print(found)
            if writes:
                _carry_out(adoption, found, yes)
                if not as_json:
                    click.echo("done")
            if as_json:
                click.echo(json.dumps(found.view))
    sys.exit(found.exit_code)


def _carry_out(adoption: Adoption, found: Report, is_agreed: bool) -> None:
    """Does it, and completes the report; ends the process if the user does not agree."""
    if not is_agreed:
        try:
            click.confirm("Do this?", abort=True)
        except click.Abort:
            click.echo("nothing was written")
            sys.exit(EXIT_USAGE)
    adoption.carry_out()
    found.view["made"] = True
    found.view["lost"] += [one for one in adoption.cuts if not _is_said(found, one)]


def _print(found: Report) -> None:
    for line in found.lines():
        click.echo(printable(line))


def _is_said(found: Report, cut: str) -> bool:
    """Whether the plan has a loss at the same end of a log."""
    return any(one.startswith(cut.split(":", maxsplit=1)[0] + ":") for one in found.view["lost"])


def _named(file: str | None, connect: str | None) -> str:
    """Returns where topics are known from."""
    return file or (f"ZooKeeper at {connect}" if connect is not None else "the directories")


def _secrets(properties: tuple[str, ...]) -> tuple[str, ...]:
    """Returns what may have encrypted passwords. Raises HandoverRefused."""
    files = [keys_of_file(one) for one in properties]
    found = [given[key] for given in files for key in (SECRET, OLD_SECRET) if key in given]
    if properties and not found and not any(key.startswith(SSL) for given in files for key in given):
        raise HandoverRefused(f"{', '.join(properties)}: there is no {SECRET}, and no {SSL}*", EXIT_USAGE)
    return tuple(found)


def _read_zookeeper(connect: str, properties: tuple[str, ...], arguments: tuple[str, ...]) -> Catalog:
    """Raises HandoverRefused."""
    from .adoption.zookeeper import read_catalog

    try:
        return read_catalog(zookeeper_config(connect, properties, arguments))
    except ConfigError as error:
        raise HandoverRefused(str(error), EXIT_USAGE) from None


def _described(file: str | None) -> Catalog | None:
    """Raises HandoverRefused."""
    if file is None:
        return None
    try:
        return from_described(Path(file).read_text())
    except (CatalogInvalid, UnicodeDecodeError) as error:
        raise HandoverRefused(f"{file}: {error}", EXIT_USAGE) from None
