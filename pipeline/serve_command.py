"""`ottla pipeline serve`: a Spark that stays."""

from __future__ import annotations

import os

import click

from . import CONNECT_PORT
from .command import SETTING, done, java_options, of_conf


@click.command()
@click.option(
    "--port", default=CONNECT_PORT, show_default=True, help="Where Spark Connect listens, on this machine only."
)
@SETTING
def serve(port: int, settings: tuple[str, ...]) -> None:
    """Keep a Spark running, for jobs with SPARK_REMOTE=sc://127.0.0.1:15002, which start no Java then. Needs `pip
    install ottla[spark,pipelines]`. It ends when it is interrupted.
    """

    def work() -> int:
        from . import serving
        from .java import check_java

        check_java()
        os.environ.pop("SPARK_REMOTE", None)
        return serving.serve(
            port, of_conf(settings), java_options("connect"), lambda url: click.echo(f"SPARK_REMOTE={url}")
        )

    done(work)
