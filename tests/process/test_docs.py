"""The documentation: the site builds without a warning, its links lead somewhere, and the commands of its pages do what
the pages say.

Readers of pages wait for brokers and clients more than they compute, so all of them begin with the first test and
read beside each other.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from ..support.docs import Reader
from ..support.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
DOCS, EXAMPLES, GUIDE = ROOT / "docs", ROOT / "examples", ROOT / "CONTRIBUTING.md"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_computed" not in path.parts)
NEED_JAVA = ("spark", "kafka-streams")
READERS_MAX = 3

pytestmark = pytest.mark.slow


def with_commands(page: Path) -> bool:
    return bool(re.search(r"^```(\{code-block\} )?console$", page.read_text(), re.MULTILINE))


FOLLOWED = [page for page in PAGES if with_commands(page)]


def follow_page(page: Path, directory: Path) -> None:
    Reader(directory, dict(zip(("9092", "9644"), map(str, free_ports(2)), strict=True))).follow(page.read_text())


def follow_guide(guide: Path, directory: Path) -> None:
    """Types the worked examples into a copy of the repository, except the pipeline's job, which needs a JVM."""
    unneeded = ["transcripts", "recorded", "data", "_build", "docker", "attack"]
    half_written = "*.pyc.*"  # compiled by a test beside this one
    ignored = shutil.ignore_patterns(".*", *unneeded, half_written)
    shutil.copytree(ROOT, directory, ignore=ignored, dirs_exist_ok=True)
    examples = guide.read_text().partition("## Worked examples")[2]
    reader = Reader(directory, {}, {"PYTHONPATH": str(directory)})
    reader.follow(examples.partition("\n### Add a job of the pipeline")[0])


Follow = Callable[[Path, Path], None]


@pytest.fixture(scope="module")
def followed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Path, Future[None]]]:
    """What became of the pages of all tests that run."""
    wanted: dict[Path, Follow] = {
        cast(Path, item.callspec.params["page"]): cast(Follow, item.callspec.params["follow"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function is test_the_commands_of_a_page_do_what_it_says
    }
    slow_first = sorted(wanted, key=lambda page: page.stem not in NEED_JAVA)
    with ThreadPoolExecutor(READERS_MAX) as pool:
        yield {page: pool.submit(wanted[page], page, tmp_path_factory.mktemp(page.stem)) for page in slow_first}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize(
    ("follow", "page"),
    [
        pytest.param(follow_guide, GUIDE, id=GUIDE.name),
        *(
            pytest.param(
                follow_page,
                page,
                id=page.relative_to(DOCS).as_posix(),
                marks=[pytest.mark.oracle] if any(word in page.name for word in NEED_JAVA) else [],
            )
            for page in FOLLOWED
        ),
    ],
)
def test_the_commands_of_a_page_do_what_it_says(follow: Follow, page: Path, followed: dict[Path, Future[None]]) -> None:
    followed[page].result()


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=800)
    assert done.returncode == 0, done.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert tmp_path / "index.html" in pages
    assert "AllocateProducerIds" in (tmp_path / "reference" / "apis.html").read_text(), "what is not served is listed"
    for page in pages:
        assert not re.search(r"\.\. [\w-]+::", page.read_text()), f"{page.name} shows a directive as text"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_to_files_of_the_repository_lead_somewhere(page: str) -> None:
    for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", (ROOT / page).read_text()):
        assert (ROOT / link).exists(), f"{page} links to {link}"


def test_the_readme_says_why_each_library_is_needed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [one for name, of in project["optional-dependencies"].items() if name != "dev" for one in of]
    wanted = {re.split(r"[<>=]", one)[0].lower() for one in (*project["dependencies"], *extras)}
    table = (ROOT / "README.md").read_text().partition("## Dependencies")[2].lower()
    named = {word for row in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE) for word in re.findall(r"[\w-]+", row)}
    assert sorted(wanted - named) == []


@pytest.mark.parametrize(
    ("example", "prints"),
    [
        ("slow_followers.py", r"immediate: \d+ ms\nlag=50ms: \d+ ms\nlag=200ms: \d+ ms\n"),
        ("crash.py", "100 acknowledged, 100 found, the same: True\n"),
    ],
)
def test_an_example_does_what_it_says(example: str, prints: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example)], capture_output=True, text=True, check=False, cwd=ROOT, timeout=400
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(prints, done.stdout), done.stdout


def test_the_example_of_a_test_passes() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "ottla.pytest_plugin", str(EXAMPLES / "test_worker.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=400)
    assert done.returncode == 0, done.stdout
