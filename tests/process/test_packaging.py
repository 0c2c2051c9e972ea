"""The wheel and the sdist, installed where nothing else is: they run, and only `ottla` appears."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from ..lanes import NOT_SLOW

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
CHECK = Path(__file__).with_name("wheel_check.py")
PLUGIN = """
def test_a_broker_is_there(ottla_broker, ottla_topic):
    import socket
    host, port = ottla_broker.bootstrap_servers.split(":")
    socket.create_connection((host, int(port))).close()
    assert ottla_topic.startswith("topic-")
"""


def ran(*command: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    ran(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT))
    return out


@pytest.fixture(scope="module")
def environment(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with the wheel, what it requires, and pytest."""
    directory = tmp_path_factory.mktemp("environment")
    venv.create(directory / "env", with_pip=True)
    constraints = directory / "constraints.txt"
    pins = [line.split(" \\")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if line[:1].isalpha()]
    constraints.write_text("\n".join(pins))
    (wheel,) = built.glob("*.whl")
    python = str(directory / "env" / "bin" / "python")
    ran(python, "-m", "pip", "install", "--quiet", "-c", str(constraints), str(wheel), "pytest")
    return directory / "env"


@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_it_runs_in_an_empty_environment(built: Path, environment: Path, kind: str, tmp_path: Path) -> None:
    python = str(environment / "bin" / "python")
    (package,) = built.glob(kind)
    ran(python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", str(package))
    assert ran(python, str(CHECK), cwd=tmp_path).startswith("127.0.0.1:")
    assert "ottla" in ran(str(environment / "bin" / "ottla"), "--version", cwd=tmp_path)
    (tmp_path / "test_plugin.py").write_text(PLUGIN)
    assert "1 passed" in ran(python, "-m", "pytest", "-q", "test_plugin.py", cwd=tmp_path)


BY_COMPILED_MODULES = ("unit/test_segment.py", "unit/test_trace_client.py", "world/test_transactions.py")


@pytest.mark.gcc
def test_a_compiled_wheel_runs(tmp_path: Path) -> None:
    """The tests that mostly use its compiled modules pass, run beside an installed wheel and not in the checkout."""
    wheels, installed = tmp_path / "wheels", tmp_path / "installed"
    quick = {"OTTLA_OPTIMIZATION": "0", "CFLAGS": "-g0"}  # what debuggers need takes a quarter of GCC's time
    environment = {**os.environ, **quick, "OTTLA_COMPILED": "1", "PYTHONPATH": str(installed)}
    ran(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(wheels), env=environment)
    (wheel,) = wheels.glob("ottla-*-cp*.whl")
    ran(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(installed), str(wheel))
    assert "(compiled)" in ran(sys.executable, "-m", "ottla", "--version", cwd=tmp_path, env=environment)
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("transcripts", "node_modules"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    chosen = [f"tests/{name}" for name in BY_COMPILED_MODULES]
    said = ran(sys.executable, "-m", "pytest", "-n0", "-m", NOT_SLOW, *chosen, cwd=tmp_path, env=environment)
    assert "ottla: compiled" in said


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
