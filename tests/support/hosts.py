"""Programs with a file of hosts of their own, in a mount namespace: names have the addresses that a test wants."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

SECONDS = 60


@cache
def may_have_hosts_of_its_own() -> bool:
    """Whether a program can have one on this machine."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-rm", "mount", "--bind", "/etc/hosts", "/etc/hosts"]
    return not subprocess.run(command, capture_output=True, check=False, timeout=SECONDS).returncode


def with_hosts(directory: Path, name: str, addresses: Iterable[str]) -> list[str]:
    """Returns what a command begins with, so that the name has these addresses for its program."""
    hosts = directory / "hosts"
    hosts.write_text("".join(f"{address} {name}\n" for address in addresses) + "127.0.0.1 localhost\n")
    return ["unshare", "-rm", "sh", "-c", f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh"]
