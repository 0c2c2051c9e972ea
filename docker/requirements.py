"""Prints the part of constraints.txt, with its hashes, that the image needs: `run` for what ottla imports, `build` for
what makes its wheel.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def blocks(text: str) -> dict[str, str]:
    """Each pinned distribution with its hashes and what it is there for."""
    found = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)
    return {block.split("==")[0]: block for block in found if "==" in block.split("\n")[0]}


def needed(pinned: dict[str, str], requirements: list[str]) -> list[str]:
    """The requirements and, by the `via` comments, what they need themselves."""
    names = {re.split(r"[^A-Za-z0-9._-]", one)[0].lower() for one in requirements}
    if missing := names - pinned.keys():
        raise SystemExit(f"constraints.txt has no {', '.join(sorted(missing))}: run `make constraints`")
    while True:
        more = {
            name
            for name, block in pinned.items()
            if names & set(re.findall(r"^ *#(?: +via)? +([a-z0-9._-]+)$", block, re.MULTILINE))
        }
        if more <= names:
            return sorted(names)
        names |= more


def main(folder: Path, part: str) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    requirements = project["project"]["dependencies"] if part == "run" else project["build-system"]["requires"]
    pinned = blocks((folder / "constraints.txt").read_text())
    print("".join(pinned[name] for name in needed(pinned, requirements)), end="")


if __name__ == "__main__":
    main(Path(), sys.argv[1])
