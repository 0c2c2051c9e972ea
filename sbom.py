"""The software bill of materials of a wheel (CycloneDX 1.6, PEP 770): what ottla requires, in the versions and with the
hashes of constraints.txt and, for one extra, constraints-gssapi.txt.

`setup.py` writes it while it builds; it needs nothing but Python. The same source gives the same bytes.
"""

from __future__ import annotations

import json
import re
import tomllib
import uuid
from pathlib import Path

from docker.requirements import blocks, needed

NAME = "ottla.cdx.json"
GSSAPI = "constraints-gssapi.txt"  # apart, because it has no wheels for Linux
Json = dict[str, object]


def name_of(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower()


def document(folder: Path, version: str) -> Json:
    """Returns the document of a source tree. Components of extras are optional."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    pinned = {**blocks((folder / "constraints.txt").read_text()), **blocks((folder / GSSAPI).read_text())}
    extras = project["optional-dependencies"]
    optional = [one for extra in ("spark", "pipelines", "ui", "zookeeper", "gssapi") for one in extras[extra]]
    required = needed(pinned, project["dependencies"])
    every = needed(pinned, [*project["dependencies"], *optional])
    versions = {name: pinned[name].split("\n")[0].split("==")[1].split()[0] for name in every}
    refs = {name: f"pkg:pypi/{name}@{found}" for name, found in versions.items()}
    own = f"pkg:pypi/ottla@{version}"
    parents = {name: parents_of(pinned[name]) for name in every}
    direct = {name_of(one) for one in (*project["dependencies"], *optional)}
    depends: list[Json] = [{"ref": own, "dependsOn": sorted(refs[name] for name in direct)}]
    depends += [
        {"ref": refs[name], "dependsOn": [refs[child] for child in every if name in parents[child]]} for name in every
    ]
    body: Json = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "ottla",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": refs[name],
                "name": name,
                "version": versions[name],
                "purl": refs[name],
                "scope": "required" if name in required else "optional",
                "properties": [
                    {"name": "ottla:distribution:sha256", "value": one}
                    for one in re.findall(r"--hash=sha256:([0-9a-f]{64})", pinned[name])
                ],
            }
            for name in every
        ],
        "dependencies": depends,
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", **body}


def parents_of(block: str) -> set[str]:
    """The distributions that require one, by the `via` comments of constraints.txt."""
    return set(re.findall(r"^ *#(?: +via)? +([a-z0-9._-]+)$", block, re.MULTILINE))


def write(folder: Path, version: str, dist_info: Path) -> None:
    """Writes the document into the `.dist-info` directory of a wheel."""
    target = dist_info / "sboms"
    target.mkdir(exist_ok=True)
    (target / NAME).write_text(json.dumps(document(folder, version), indent=2) + "\n")
