"""The wheel and the sdist, installed where nothing else is: they run, and only `ottla` appears."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
CHECK = """
import importlib, ottla.protocol.records, ottla.schemas, os, subprocess, sys
for name in ("protocol", "storage", "coordinator", "broker", "pipeline", "schemas"):
    try:
        importlib.import_module(name)
    except ImportError:
        continue
    sys.exit(f"{name} is at the top level")
import ottla.pipeline
try:
    ottla.pipeline.session()
except RuntimeError as error:
    assert "pip install ottla[spark]" in str(error)
assert os.path.exists(os.path.join(os.path.dirname(ottla.__file__), "py.typed"))
with open(os.path.join(os.path.dirname(ottla.protocol.__file__), "messages.pyi")) as stubs:
    assert "class FetchRequest(Struct):" in stubs.read()
for name in ("log4j2.properties", "project/spark-pipeline.yml", "project/transformations/logs.py"):
    assert os.path.exists(os.path.join(os.path.dirname(ottla.pipeline.__file__), name)), name
for name in ("ui.css", "ui.js", "icon.svg"):
    assert os.path.exists(os.path.join(os.path.dirname(ottla.__file__), "ui", "static", name)), name
done = subprocess.run([sys.executable, "-m", "ottla", "pipeline", "audit", "."], capture_output=True, text=True)
assert (done.returncode, "pip install ottla[spark]" in done.stderr) == (2, True), done
from ottla.testing import Broker
with Broker() as broker:
    print(broker.bootstrap_servers)
"""
PLUGIN = """
def test_a_broker_is_there(ottla_broker, ottla_topic):
    import socket
    host, port = ottla_broker.bootstrap_servers.split(":")
    socket.create_connection((host, int(port))).close()
    assert ottla_topic.startswith("topic-")
"""


def ran(*command: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    ran(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT))
    return out


@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_it_runs_in_an_empty_environment(built: Path, kind: str, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    (package,) = built.glob(kind)
    constraints = tmp_path / "constraints.txt"
    pins = [line.split(" \\")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if line[:1].isalpha()]
    constraints.write_text("\n".join(pins))
    ran(python, "-m", "pip", "install", "--quiet", "-c", str(constraints), str(package), "pytest")
    assert ran(python, "-c", CHECK, cwd=tmp_path).startswith("127.0.0.1:")
    assert "ottla" in ran(str(tmp_path / "env" / "bin" / "ottla"), "--version", cwd=tmp_path)
    (tmp_path / "test_plugin.py").write_text(PLUGIN)
    assert "1 passed" in ran(python, "-m", "pytest", "-q", "test_plugin.py", cwd=tmp_path)


def test_the_wheel_has_its_bill_of_materials(built: Path) -> None:
    """It is CycloneDX, names what the wheel requires, and leaves no component hanging in the air."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if ".dist-info/sboms/" in one]
        document = json.loads(archive.read(name))
        metadata = archive.read(name.split("/")[0] + "/METADATA").decode()
        assert name in archive.read(name.split("/")[0] + "/RECORD").decode()
    assert name.endswith("/sboms/ottla.cdx.json")
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    own = document["metadata"]["component"]
    assert f"\nVersion: {own['version']}\n" in metadata
    components = {one["name"]: one for one in document["components"]}
    for line in metadata.splitlines():
        if line.startswith("Requires-Dist: ") and not re.search(r"extra == .(?:dev|docs)\b", line):
            required = re.split(r"[^A-Za-z0-9._-]", line.removeprefix("Requires-Dist: "))[0].lower()
            assert components[required]["scope"] == ("optional" if "extra ==" in line else "required")
    for one in components.values():
        assert one["purl"] == f"pkg:pypi/{one['name']}@{one['version']}"
        assert one["properties"], f"{one['name']} has no hash"
    reached, left = set(), [own["bom-ref"]]
    depends = {one["ref"]: one["dependsOn"] for one in document["dependencies"]}
    while left:
        ref = left.pop()
        if ref not in reached:
            reached.add(ref)
            left += depends[ref]
    assert reached == {own["bom-ref"], *(one["bom-ref"] for one in components.values())}


def test_a_clean_clone_builds_and_has_its_stubs(tmp_path: Path) -> None:
    """Without a network: nothing but setuptools is there."""
    ran("git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(tmp_path / "clone"))
    assert not (tmp_path / "clone" / "protocol" / "messages.pyi").exists(), "derived, and yet in the repository"
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    ran(
        sys.executable,
        "-m",
        "pip",
        "install",
        *options,
        "--target",
        str(tmp_path / "installed"),
        str(tmp_path / "clone"),
    )
    stubs = (tmp_path / "installed" / "ottla" / "protocol" / "messages.pyi").read_text()
    assert "class FetchRequest(Struct):" in stubs


@pytest.mark.oracle
def test_the_schemas_are_those_of_kafkas_jars() -> None:
    assert " 0 differ" in ran(sys.executable, "-m", "tests.oracle.derive_schemas", "--check")


def test_the_dockerfile_has_no_faults() -> None:
    ran(str(Path(sys.executable).parent / "hadolint"), "docker/Dockerfile")
