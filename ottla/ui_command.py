"""`ottla ui`: a page in the browser for running brokers."""

from __future__ import annotations

import os
import sys

import click

from .lab_client import Lab

EXTRA = "nicegui"
PORT = 9645
EXIT_PORT = 3


@click.command()
@click.option(
    "--broker",
    "brokers",
    multiple=True,
    default=("http://127.0.0.1:9644",),
    envvar="OTTLA_LAB",
    show_default=True,
    metavar="URL",
    help="The URL of a broker's lab; may be given several times. Also in the variable OTTLA_LAB, with spaces between.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="The port to listen on; 0 for any free one.",
)
@click.option("--open", "is_opened", is_flag=True, help="Open the page in the browser.")
def ui(brokers: tuple[str, ...], host: str, port: int, is_opened: bool) -> None:
    """Show running brokers in the browser, and steer them there.

    The variables OTTLA_LAB_TOKEN and OTTLA_LAB_CA are for the brokers, as for the other commands; OTTLA_UI_TOKEN is
    what a browser must show (`?token=`).

    Exit codes: 0 after Ctrl-C, 2 if the extra is not installed, 3 port in use.
    """
    try:
        from .ui.links import Link
        from .ui.server import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in (EXTRA, "fastapi", "starlette", "uvicorn"):
            raise
        click.echo(f"ottla: the page needs the package {error.name}: pip install 'ottla[ui]'", err=True)
        sys.exit(2)
    links = [Link(number, Lab(url)) for number, url in enumerate(brokers)]

    def announce(url: str) -> None:
        click.echo(f"ottla ui is ready: {url}")
        sys.stdout.flush()
        if is_opened:
            click.launch(url)

    try:
        serve(links, host, port, os.environ.get("OTTLA_UI_TOKEN"), announce)
    except OSError as error:
        click.echo(f"ottla: cannot listen on {host}:{port}: {error.strerror or error}", err=True)
        sys.exit(EXIT_PORT)
    except KeyboardInterrupt:  # uvicorn raises it again when all has ended
        sys.exit(0)
