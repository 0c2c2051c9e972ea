"""Where Kafka's jars are: fetched once by Maven from the poms beside this file."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
RELEASES = "releases"  # several versions of one artifact, which are no dependencies


def home() -> Path:
    return Path(os.environ.get("OTTLA_ORACLE_HOME") or Path.home() / ".cache" / "ottla-oracle")


def missing() -> str | None:
    """Why the oracle cannot run here, or None."""
    absent = [name for name in ("java", "mvn") if shutil.which(name) is None]
    return f"needs {' and '.join(absent)} on the PATH" if absent else None


def jar_folder(part: str) -> Path:
    """The folder with the jars of `broker` (Kafka 4.4.0), `tools` (its command-line tools and Streams), `mirror`
    (MirrorMaker 2), `connector` (of Spark), or `releases` (the clients of every minor release since 0.8.2, without what
    they depend on).
    """
    folder = home() / part
    if (folder / ".complete").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with jar_lock(part):  # tests that run beside each other fetch once
        if (folder / ".complete").exists():
            return folder
        pom = _pom(part, folder)
        goal = "copy" if part == RELEASES else "copy-dependencies"
        subprocess.run(
            ["mvn", "-q", "-B", "-f", str(pom), f"dependency:{goal}", f"-DoutputDirectory={folder}"],
            check=True,
            timeout=1800,
        )
        (folder / ".complete").touch()
    return folder


@contextmanager
def jar_lock(part: str) -> Iterator[None]:
    """Only one process at a time changes the folder of a part's jars."""
    with (home() / part / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _pom(part: str, folder: Path) -> Path:
    """Returns the pom of a part; for a Kafka that has none of its own, one like that of 0.8.2.2."""
    pom = HERE / f"{part}-pom.xml"
    if pom.exists() or not part.startswith("kafka-"):
        return pom
    version = part.removeprefix("kafka-")
    scala = "2.13" if tuple(map(int, version.split("."))) >= (2, 5) else "2.11"
    like = (HERE / "kafka-0.8.2.2-pom.xml").read_text()
    made = folder / "pom.xml"
    made.write_text(like.replace("0.8.2.2", version).replace("kafka_2.11", f"kafka_{scala}"))
    return made


def jar_paths(part: str) -> list[Path]:
    return sorted(jar_folder(part).glob("*.jar"))


def classpath(part: str) -> str:
    return f"{jar_folder(part)}/*"


def archived(part: str, kind: str) -> list[str]:
    """Options with which Java takes the classes of a program out of an archive: a broker is there with half the work.
    `kind`: of programs that share an archive, which the first to end makes.
    """
    archive = jar_folder(part) / f"{kind}.jsa"
    made = "SharedArchiveFile" if archive.exists() else "ArchiveClassesAtExit"
    return ["-Xlog:disable", "-Xlog:all=error:stderr", f"-XX:{made}={archive}"]


def connector() -> str | None:
    """The jars of Spark's Kafka connector as `spark.jars` has them; None where they cannot be had, which is said."""
    if missing() is not None:
        return None
    try:
        return ",".join(str(one) for one in jar_paths("connector"))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"the jars of Spark's Kafka connector cannot be had: {error}")
        return None
