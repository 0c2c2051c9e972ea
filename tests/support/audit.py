"""Audits the dependencies: `python -m tests.support.audit`, a part of `make check`.

Without a network: every requirement is pinned in constraints.txt with hashes, what is installed has the pinned version,
and the installed packages go together. With `pip-audit`, where it is installed and its advisory service answers, known
vulnerabilities too; where not, that is said and is no failure.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from docker.requirements import blocks

ROOT = Path(__file__).resolve().parents[2]
PINS = ("constraints.txt", "constraints-gssapi.txt")  # the second needs headers of Kerberos, and `make` leaves it out


def faults(folder: Path = ROOT) -> Iterator[str]:
    """Yields what is wrong with the pins of a source tree, and with what is installed here."""
    pinned = {name: block for file in PINS for name, block in blocks((folder / file).read_text()).items()}
    found = tomllib.loads((folder / "pyproject.toml").read_text())
    project = found["project"]
    extras = [one for extra in project["optional-dependencies"].values() for one in extra]
    for requirement in (*found["build-system"]["requires"], *project["dependencies"], *extras):
        name = re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower()
        if name not in pinned:
            yield f"{name} is required and not in constraints.txt; run `make constraints`"
    for name, block in pinned.items():
        if not re.search(r"--hash=sha256:[0-9a-f]{64}", block):
            yield f"{name} has no hash in constraints.txt"
        wanted = block.split("\n")[0].split("==")[1].split()[0]
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if installed != wanted:
            yield f"{name} {installed} is installed, and constraints.txt has {wanted}"


def main() -> int:
    wrong = list(faults())
    checked = subprocess.run(
        [sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False, timeout=120
    )
    if checked.returncode != 0:
        wrong += checked.stdout.splitlines()
    print("\n".join(wrong) or "dependencies are pinned with hashes, installed as pinned, and go together")
    return 1 if wrong or not _without_vulnerabilities() else 0


def _without_vulnerabilities() -> bool:
    """Asks pip-audit; True also where it cannot be asked."""
    command = shutil.which("pip-audit")
    if command is None:
        print("not audited for known vulnerabilities: pip-audit is not installed")
        return True
    pins = blocks((ROOT / "constraints.txt").read_text())
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(block.split(" \\")[0] for block in pins.values()))
        file.flush()
        done = subprocess.run(
            [command, "--requirement", file.name, "--no-deps", "--disable-pip", "--progress-spinner", "off"],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    said = done.stdout + done.stderr
    if "Traceback" in said or "could not be audited" in said:
        print("not audited for known vulnerabilities: the advisory service does not answer")
        return True
    print(said.strip())
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
