"""The lanes of `make test`, with folders of small tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from .. import lanes

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
RACE = """\
from pathlib import Path
import pytest

@pytest.mark.parametrize("name", ["a::b [c]", "\\u00e9\\x07"])
def test_race(name):
    seen = Path(str(len(name)))
    if not seen.exists():
        seen.touch()
        raise AssertionError("the other came first")
"""
COMPLAINT = """\
import pytest
def pytest_sessionfinish(session):
    session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q -p no:asyncio -p no:ottla -p no:hypothesis\n")
    return tmp_path


def write(path: str, text: str) -> list[str]:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    return [str(Path(path).parent)]


def run(capfd: pytest.CaptureFixture[str], **started: list[str]) -> tuple[bool, str]:
    good = lanes.run_all({name: lanes.Plan(arguments) for name, arguments in started.items()}, Path("logs"))
    return good, capfd.readouterr().out


def test_what_passes_alone_is_shown_with_its_first_failure(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    good, out = run(
        capfd,
        waiting=write("tests/clients/test_it.py", RACE),
        computing=write("tests/unit/test_it.py", "def test_it(): pass\n"),
    )
    assert good
    assert "2 failed in" in out
    assert "1 passed in" in out
    assert "2 passed in" in out
    _, heading, end = out.partition("2 tests FAILED BESIDE THE OTHER LANES and passed alone")
    assert heading
    assert end.count("the other came first") == 4  # the source's line and the error, of each test
    assert "tests/clients/test_it.py::test_race[a::b [c]]\n" in end
    assert end.splitlines()[-2] == "All tests passed."


def test_what_fails_or_skips_alone_fails_the_run(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    skips = "import pytest\nfrom pathlib import Path\ndef test_it():\n    if Path('seen').exists(): pytest.skip('no')\n"
    skips += "    Path('seen').touch()\n    assert not 'ever'\n"
    good, out = run(
        capfd,
        waiting=write("tests/clients/test_it.py", skips),
        others=write("tests/process/test_other.py", "def test_it(): assert not 'ever'\n"),
    )
    assert not good
    assert "Their second run, alone" in out
    assert "passed alone" not in out
    assert out.partition("FAILED:")[2].splitlines()[2:] == [
        "tests/process/test_other.py::test_it",
        "tests/clients/test_it.py::test_it",
    ]


def test_a_failure_that_is_real_takes_the_second_run_from_no_other(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good, out = run(
        capfd,
        waiting=write("tests/clients/race/test_race.py", RACE),
        told=write("tests/pipeline/test_story.py", RACE.replace("len(name)", "-len(name)")),
        computing=write("tests/unit/test_it.py", "def test_it(): assert not 'ever'\n"),
        crash=write("tests/clients/crash/test_it.py", "import os\ndef test_it(): os._exit(0)\n"),
    )
    assert not good
    assert "4 tests FAILED BESIDE THE OTHER LANES and passed alone" in out
    assert out.rpartition("FAILED:")[2].splitlines()[2:] == [
        "tests/unit/test_it.py::test_it",
        "the lane crash ended with code 0 before it was through",
    ]


def test_many_failures_at_once_are_no_races(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = f"map(str, range({lanes.SECOND_RUNS_MAX + 1}))"
    many = RACE.replace('["a::b [c]", "\\u00e9\\x07"]', names).replace("len(name)", "name")
    good, out = run(capfd, waiting=write("tests/clients/test_it.py", many))
    assert not good
    assert "Their second run" not in out
    assert len(out.rpartition("FAILED:")[2].splitlines()[2:]) == lanes.SECOND_RUNS_MAX + 1


def test_what_is_wrong_with_a_whole_lane_fails_the_run(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write("tests/clients/complaint/conftest.py", COMPLAINT)
    hangs = "import threading\ndef test_it(): threading.Event().wait()\n"
    limit = ["-o", "faulthandler_timeout=0.2", "-o", "faulthandler_exit_on_timeout=true"]
    good, out = run(
        capfd,
        complaint=write("tests/clients/complaint/test_it.py", "def test_it(): pass\n"),
        crash=write("tests/clients/crash/test_it.py", "import os\ndef test_it(): os._exit(0)\n"),
        hang=[*limit, *write("tests/clients/hang/test_hang.py", hangs)],
        module=write("tests/clients/module/test_it.py", "import absent\n"),
    )
    assert not good
    assert "Their second run" not in out
    assert 'test_hang.py", line 2 in test_it' in out, "the stack of the test that hangs"
    assert out.partition("FAILED:")[2].splitlines()[2:] == [
        "the lane complaint ended with code 3",
        "the lane crash ended with code 0 before it was through",
        "the lane hang ended with code 1 before it was through",
        "the lane module ended with code 2",
        "tests.clients.module.test_it",
    ]


def test_a_lane_ends_with_its_tests(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    left = "import threading\ndef test_it(): threading.Thread(target=threading.Event().wait).start()\n"
    good, out = run(capfd, waiting=write("tests/clients/test_it.py", left))
    assert good, out


def test_a_lane_begins_when_another_has_ended(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "AT_ONCE", 1)
    reported = (
        "from pathlib import Path\ndef test_it(): assert [Path(f'logs/{name}.xml').exists() for name in 'abc'] == "
    )
    good, out = run(
        capfd,
        a=write("tests/a/test_a.py", f"{reported}[False, False, False]\n"),
        b=write("tests/b/test_b.py", f"{reported}[True, False, False]\n"),
        c=write("tests/c/test_c.py", f"{reported}[True, True, False]\n"),
    )
    assert good, out
    assert out.count("1 passed in") == 3


def test_a_lane_that_takes_too_long_is_ended(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "LANE_SECONDS_MAX", 0)
    good, out = run(capfd, waiting=write("tests/clients/test_it.py", "import time\ndef test_it(): time.sleep(600)\n"))
    assert not good
    assert out.splitlines()[-1] == "the lane waiting took longer than 0 s"
    assert "The end of the lane waiting:" in out


def test_lanes_end_with_the_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[lanes.Lane] = []
    start = lanes.Lane.__init__

    def noted(lane: lanes.Lane, *arguments: object) -> None:
        start(lane, *arguments)  # type: ignore[arg-type]
        started.append(lane)

    def interrupted(lane: lanes.Lane) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(lanes.Lane, "__init__", noted)
    monkeypatch.setattr(lanes.Lane, "show", interrupted)
    sleeps = write("tests/clients/test_it.py", "import time\ndef test_it(): time.sleep(600)\n")
    with pytest.raises(KeyboardInterrupt):
        lanes.run_all({"one": lanes.Plan(sleeps), "two": lanes.Plan(sleeps)}, Path("logs"))
    assert [lane.process.poll() is None for lane in started] == [False, False]
