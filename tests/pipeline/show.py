"""`make pipeline`: a short real workload on a fresh broker, and what the pipeline reports about it, as one page."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from ottla.cli import main as ottla
from ottla.testing import Broker

from . import story


def main(arguments: list[str]) -> None:
    page = Path(arguments[0] if arguments else "pipeline.html").resolve()
    with tempfile.TemporaryDirectory() as directory:
        with Broker(story.SETTINGS, directory=Path(directory)) as broker:
            print("a broker serves producers, transactions, groups and a queue …", flush=True)
            story.tell(broker.bootstrap_servers)
        print("Spark reads what it left …", flush=True)
        ottla(["pipeline", "all", f"{directory}/data", "--format", "html", "--out", str(page)])


if __name__ == "__main__":
    main(sys.argv[1:])
