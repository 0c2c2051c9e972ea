"""The command `ottla compare`."""

from __future__ import annotations

import asyncio
import signal
import ssl
import sys
from pathlib import Path
from typing import TextIO

import click

from . import api_names
from .addresses import Address, AddressType
from .compare.proxy import WILDCARDS, Options, Proxy
from .compare.report import Report
from .compare.upstream import GONE
from .comparing import rules
from .comparing.identities import Identities
from .comparing.login import MECHANISMS, Credentials
from .protocol.text import printable

SIGNALS = (signal.SIGINT, signal.SIGTERM)
EXIT_DIFFERENT, EXIT_USAGE, EXIT_UNREACHABLE = 1, 2, 3


def apis(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> frozenset[str]:
    return api_names.known(given)


@click.command()
@click.argument("a", type=AddressType())
@click.argument("b", type=AddressType())
@click.option(
    "--listen", type=AddressType(), default="127.0.0.1:9192", show_default=True, help="Where clients connect."
)
@click.option("--advertise", metavar="HOST", help="The host that clients get [default: that of --listen].")
@click.option("--rules", "rule_files", multiple=True, type=click.Path(path_type=Path), help="Rules of what may differ.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option("--report", "report_file", type=click.File("w", lazy=False), help="Write the lines to a file.")
@click.option("--only", multiple=True, callback=apis, metavar="API", help="Compare only this API; may be repeated.")
@click.option("--ignore", multiple=True, callback=apis, metavar="API", help="Do not compare this API; may be repeated.")
@click.option("--timeout", "timeout_s", default=30.0, show_default=True, help="Seconds that B has for a reply.")
@click.option("--exit-on-difference", is_flag=True, help="End at the first difference.")
@click.option("--ca-a", type=click.Path(dir_okay=False), help="A has TLS; its certificate is signed by this authority.")
@click.option("--ca-b", type=click.Path(dir_okay=False), help="B has TLS; its certificate is signed by this authority.")
@click.option("--user-b", envvar="OTTLA_COMPARE_USER_B", help="Log in at B as this user, whatever the client does.")
@click.option(
    "--mechanism-b", type=click.Choice(MECHANISMS), default="PLAIN", show_default=True, help="Of that log-in."
)
@click.option(
    "--password-b", envvar="OTTLA_COMPARE_PASSWORD_B", help="Give it in the variable OTTLA_COMPARE_PASSWORD_B."
)
def compare(
    a: Address,
    b: Address,
    listen: Address,
    advertise: str | None,
    rule_files: tuple[Path, ...],
    as_json: bool,
    report_file: TextIO | None,
    only: frozenset[str],
    ignore: frozenset[str],
    timeout_s: float,
    exit_on_difference: bool,
    ca_a: str | None,
    ca_b: str | None,
    user_b: str | None,
    mechanism_b: str,
    password_b: str | None,
) -> None:
    """Serve clients with the replies of broker A, send the same to broker B, and tell what differs (HOST:PORT each).

    Exit codes at Ctrl-C: 0 nothing differed, 1 something did, 2 invalid options, 3 a broker cannot be reached or the
    port is in use.
    """
    try:
        found_rules = rules.read(*rule_files, rules.LIVE)
        tls_a, tls_b = (ssl.create_default_context(cafile=one) if one else None for one in (ca_a, ca_b))
    except (OSError, rules.RulesError) as error:
        click.echo(printable(f"ottla: {error}"), err=True)
        sys.exit(EXIT_USAGE)
    host = advertise or ("127.0.0.1" if listen.host in WILDCARDS else listen.host)
    credentials = Credentials(user_b, password_b or "", mechanism_b) if user_b else None
    options = Options(a, b, listen, host, timeout_s, only, ignore, tls_a, tls_b, credentials)

    def write(line: str) -> None:
        click.echo(line, file=report_file)
        (report_file or sys.stdout).flush()

    identities = Identities()
    report = Report(found_rules, identities, as_json, write)
    sys.exit(asyncio.run(_run(Proxy(options, report, identities), report, exit_on_difference)))


async def _run(proxy: Proxy, report: Report, exit_on_difference: bool) -> int:
    ending, hurrying, loop = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop()

    def end() -> None:
        (hurrying if ending.is_set() else ending).set()

    for number in SIGNALS:
        loop.add_signal_handler(number, end)
    if exit_on_difference:
        report.found = ending.set
    try:
        address = await proxy.start()
    except GONE as error:
        click.echo(printable(f"ottla: {error}"), err=True)
        return EXIT_UNREACHABLE
    click.echo(f"ottla compare is ready: bootstrap.servers={address}", err=True)
    await ending.wait()
    await proxy.close(hurrying)
    report.end()
    for number in SIGNALS:  # the exit code says what differed, however often Ctrl-C is pressed
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)
    return EXIT_DIFFERENT if report.differences else 0
