# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The test runner must not call a run good that was not: crashes, missing cases, nothing run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.test import __main__ as runner
from lab.test import (
    again,
    builds,
    compiled,
    durations,
    namespaces,
    needs,
    parts,
    process,
    python_tests,
    tap,
)
from lab.test.context import ROOT, Context, Tally
from lab.test.stages import STAGES, Stage

CMOCKA = """1..3
ok 1 - heap__push
not ok 2 - heap__pop
# 0x1 != 0x2
# ../t.c:8: error: Failure!
not ok 3 # SKIP heap__huge
# not ok - tests
1..1
ok 1 - heap__clear
# ok - more tests
"""


def result(stdout: str, status: str = "OK", code: int = 0) -> dict:
    return {"name": "homa:unit / heap", "stdout": stdout, "result": status, "returncode": code}


def counted(*results: dict) -> tuple[int, int, int]:
    tally = Tally()
    for one in results:
        compiled.count(tally, "unit", one)
    return tally.passed, tally.failed, tally.skipped


def test_tap__cmocka_groups() -> None:
    output = tap.parse(CMOCKA)
    assert output.planned == 4
    assert [c.outcome for c in output.cases] == ["passed", "failed", "skipped", "passed"]
    assert output.cases[1].name == "heap__pop"
    assert "../t.c:8: error: Failure!" in output.cases[1].notes
    assert (output.cases[2].name, output.cases[2].notes) == ("heap__huge", [])


def test_tap__reason_of_a_skip() -> None:
    (case,) = tap.parse("ok 1 - kernel # SKIP no headers\n").cases
    assert (case.name, case.outcome, case.notes) == ("kernel", "skipped", ["no headers"])


def test_count__cases_not_programs() -> None:
    assert counted(result(CMOCKA, "FAIL", 1)) == (2, 1, 1)


def test_count__program_without_cases_is_one() -> None:
    assert counted(result("hello\n")) == (1, 0, 0)
    assert counted(result("hello\n", "FAIL", 1)) == (0, 1, 0)


def test_count__crash_after_a_case_fails() -> None:
    assert counted(result("1..3\nok 1 - a\n", "FAIL", -11)) == (1, 1, 0)


def test_count__crash_before_any_case_fails() -> None:
    assert counted(result("1..3\n", "FAIL", -6)) == (0, 1, 0)


def test_count__leak_after_good_cases_fails() -> None:
    assert counted(result("1..1\nok 1 - a\n", "FAIL", 1)) == (1, 1, 0)


def test_count__sanitizer_report_is_shown_from_its_beginning() -> None:
    tally = Tally()
    report = "WARNING: ThreadSanitizer: data race\n" + "  #1 frame\n" * 200
    compiled.count(tally, "threads", result("1..2\nok 1 - a\n" + report, "FAIL", 66))
    assert tally.failures[0].output.startswith("WARNING: ThreadSanitizer")


def test_count__timeout_fails() -> None:
    assert counted(result("", "TIMEOUT", -9)) == (0, 1, 0)


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    # The runner's descendants are pytest's here, other tests' processes among them.
    monkeypatch.setattr(process, "kill_all", lambda: None)
    return Context(False, [])


def stage(passed: int, failures: int, skipped: int) -> Stage:
    def run(_context: Context, _names: list[str]) -> Tally:
        tally = Tally(passed=passed, skipped=skipped)
        for number in range(failures):
            tally.fail(f"case {number}", "it broke")
        return tally

    return Stage("some", "stage", run)


@pytest.mark.parametrize(
    ("counts", "status"),
    [((3, 0, 1), 0), ((3, 1, 0), 1), ((0, 0, 5), 1), ((0, 0, 0), 1)],
)
def test_run__last_line_and_status(
    context: Context, capsys: pytest.CaptureFixture[str], counts: tuple[int, int, int], status: int
) -> None:
    assert runner._run(context, [(stage(*counts), [])]) == status
    passed, failed, skipped = counts
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"{passed} passed, {failed} failed, {skipped} skipped"


def test_run__shows_what_failed(context: Context, capsys: pytest.CaptureFixture[str]) -> None:
    runner._run(context, [(stage(1, 1, 0), [])])
    out = capsys.readouterr().out
    assert "FAILED case 0" in out and "it broke" in out


def test_pytest_report__counts_each_outcome(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert 1 == 2\n"
        "def test_skip(): pytest.skip('no root')\n"
        "@pytest.fixture\n"
        "def broken(): raise RuntimeError('set-up')\n"
        "def test_error(broken): pass\n"
    )
    report = tmp_path / "report.xml"
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", tmp_path],
        capture_output=True,
        check=False,
    )
    tally = Tally()
    again.count(tally, again.cases(report))
    assert (tally.passed, tally.failed, tally.skipped) == (1, 2, 1)
    assert "1 == 2" in tally.failures[0].output
    assert any("no root" in note for note in tally.notes)


def test_namespaces__only_those_of_this_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("hmt12-a", "hmt12", "hmt123-a", "hmt12x", "other", "hmt7-b"):
        (tmp_path / name).touch()
    monkeypatch.setattr(namespaces, "FOLDER", tmp_path)
    assert namespaces.leftovers({12}) == ["hmt12", "hmt12-a", "hmt12x"]


GRANDCHILD = """
import subprocess, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from lab.test import process
process.prepare()
try:
    # A child that ignores polite requests and leaves a grandchild in its own session.
    process.run(["sh", "-c", "trap '' INT TERM; setsid sleep 1000 & echo $! > {pid}; wait"],
                Path({log!r}), cwd=Path("/"), timeout=100)
except process.Stopped:
    process.kill_all()
    sys.exit(7)
"""


def test_stopped__no_descendant_survives(tmp_path: Path) -> None:
    root = str(Path(runner.__file__).resolve().parents[2])
    pid_file = tmp_path / "pid"
    script = GRANDCHILD.format(root=root, pid=pid_file, log=str(tmp_path / "log"))
    child = subprocess.Popen([sys.executable, "-c", script])
    while not (pid_file.exists() and pid_file.read_text().strip()):
        assert child.poll() is None
        time.sleep(0.02)
    grandchild = int(pid_file.read_text())
    child.send_signal(signal.SIGTERM)
    assert child.wait(30) == 7
    with pytest.raises(ProcessLookupError):
        os.kill(grandchild, 0)


ORPHAN = """
import os, subprocess, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from lab.test import process
process.prepare()
# The orphan ends while its grandparent still runs, and must then be gone from /proc.
script = "(sh -c 'echo $$ >{pid}; exec sleep 0.1' &) ; until test -s {pid}; do sleep 0.01; done; "
script += "while test -e /proc/$(cat {pid}); do sleep 0.01; done"
status = process.run(["sh", "-c", script], Path({log!r}), cwd=Path("/"), timeout=60)
sys.exit(0 if status == 0 else 1)
"""


def test_orphans__are_buried(tmp_path: Path) -> None:
    root = str(Path(runner.__file__).resolve().parents[2])
    script = ORPHAN.format(root=root, pid=tmp_path / "pid", log=str(tmp_path / "log"))
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


SIDE_BY_SIDE = """\
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
sys.path.insert(0, {root!r})
from lab.test import process
process.prepare()
def one(i):
    return process.run(["sh", "-c", "exit 10"], Path({logs!r}) / str(i), cwd=Path("/"), timeout=600)
with ThreadPoolExecutor(2) as pool:
    statuses = list(pool.map(one, range(300)))
sys.exit(0 if statuses == [10] * 300 else 1)
"""


def test_status__of_programs_that_run_side_by_side(tmp_path: Path) -> None:
    """Who buries orphans takes no child from another thread that has just started it."""
    root = str(Path(runner.__file__).resolve().parents[2])
    script = SIDE_BY_SIDE.format(root=root, logs=str(tmp_path))
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("paths", "wanted"),
    [
        ([], []),
        (["host/kernel/rx.c"], ["build", "purity", "vm", "packaging"]),
        (["dissector/homa.lua", "README.md"], ["build", "purity", "dissector", "lab"]),
        (
            ["tests/pair/check.c", "lab/vm/guest.py"],
            ["build", "purity", "pair", "world", "sim", "vm", "hw", "lab"],
        ),
        (["host/kernel/rx.c", "meson.build"], [s.name for s in STAGES]),
    ],
)
def test_needed__stages_of_a_change(paths: list[str], wanted: list[str]) -> None:
    assert needs.stages(paths, [s.name for s in STAGES]) == wanted


def test_needed__every_folder_with_code_is_known() -> None:
    """Each file that git tracks and that is compiled or run leads to fewer stages than all."""
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    names = [s.name for s in STAGES]
    code = [f for f in files if f.endswith((".c", ".h", ".py")) and "/" in f]
    assert len(code) > 500
    assert [f for f in code if needs.stages([f], names) == names] == []
    assert {stage for f in code for stage in needs.stages([f], names)} == set(names)


def test_needed__unknown_commit(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--needed", "no-such-commit"]) == 2
    assert "no-such-commit" in capsys.readouterr().err


@pytest.mark.parametrize("files", [1, 2, 5])
def test_in_parts__runs_every_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    """Parts of a folder's files beside each other; each has a log of its own."""
    folder = tmp_path / "tests/some"
    folder.mkdir(parents=True)
    for i in range(files):
        (folder / f"test_{i}.py").write_text(f"def test_{i}(): assert {i} != 0\n")
    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(python_tests, "ROOT", tmp_path)
    monkeypatch.setattr(python_tests.builds, "ensure", lambda _context, _name: tmp_path)
    context = Context(False, [])
    tally = python_tests.in_parts(context, "some", [], 600)
    assert (tally.passed, tally.failed) == (files - 1, 1)
    assert tally.failures[0].name.endswith("test_0.test_0")
    most = python_tests.PARALLEL * python_tests.PARTS_OF_A_LANE
    assert len(list(context.logs.glob("some-*.xml"))) == min(files, most)


@pytest.mark.parametrize(("name", "result"), [("test_1", (1, 0)), ("test_9", (0, 1))])
def test_in_parts__a_test_by_name_is_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, result: tuple[int, int]
) -> None:
    """A part without it is no failure; that no part has it, is one."""
    folder = tmp_path / "tests/some"
    folder.mkdir(parents=True)
    for i in range(3):
        (folder / f"test_{i}.py").write_text(f"def test_{i}(): pass\n")
    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(python_tests, "ROOT", tmp_path)
    monkeypatch.setattr(python_tests.builds, "ensure", lambda _context, _name: tmp_path)
    tally = python_tests.in_parts(Context(False, []), "some", [name], 600)
    assert (tally.passed, tally.failed) == result


@pytest.mark.parametrize(("share", "passed"), [("", 3), ("0/2", 2), ("1/2", 1)])
def test_share__of_a_file_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: str, passed: int
) -> None:
    file = tmp_path / "tests/some/test_it.py"
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"def test_{i}(): pass\n" for i in range(3)))
    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(python_tests.builds, "ensure", lambda _context, _name: tmp_path)
    part = parts.Part([file], share=share)
    tally = python_tests.pytest(Context(False, []), "lab", [], 60, "some", part=part)
    assert (tally.passed, tally.failed, tally.skipped) == (passed, 0, 0)


def test_parts__have_each_file_and_share_once_the_longest_first() -> None:
    files = [Path(f"test_{i}.py") for i in range(9)]
    slow = {"test_3": (90, 1), "test_5": (60, 3), "test_7": (40, 1), "test_8": (30, 1)}
    made = parts.divide(files, slow, 6)
    assert [part.seconds for part in made] == [90, 56, 54, 20, 20, 20]
    assert made[0].files == [files[3]]
    assert sorted(part.share for part in made) == ["", "", "", "0/3", "1/3", "2/3"]
    assert sorted(f for part in made for f in part.files) == sorted([*files, files[5], files[5]])
    assert parts.divide([], {}, 6) == []
    assert [part.files for part in parts.divide(files[:1], {}, 6)] == [files[:1]]


def test_parts__table_names_files_that_are_there() -> None:
    """tests/slow.toml: a name that is wrong would silently do nothing."""
    rows = parts.table(ROOT)
    assert set(rows) > {"homad", "vm", "lab"}
    for row, slow in rows.items():
        there = {p.stem for p in (ROOT / "tests" / row.partition("-")[0]).glob("**/test_*.py")}
        assert set(slow) - there == set()
        assert all(seconds > 0 and shares >= 1 for seconds, shares in slow.values())


LONG_AND_SHORT = """
import os, pytest, time
@pytest.mark.long
def test_long(): time.sleep(0.05)
def test_short(): assert os.environ["HOMA_TEST_LONG"] == "{long}"
"""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnknownMarkWarning")
@pytest.mark.parametrize("long", [False, True])
def test_long__only_if_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    """And the slowest file and the slowest test are named, the slowest first."""
    folder = tmp_path / "tests/some"
    folder.mkdir(parents=True)
    (folder / "test_it.py").write_text(LONG_AND_SHORT.format(long=int(long)))
    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(python_tests, "ROOT", tmp_path)
    monkeypatch.setattr(python_tests.builds, "ensure", lambda _context, _name: tmp_path)
    context = Context(False, [], long=long)
    assert python_tests.pytest(context, "some", [], 60).passed == 1 + long
    assert durations.slowest(context.logs, 0, 0) == []
    lines = durations.slowest(context.logs, 0, 9)
    assert lines[0].endswith(" s  some tests.some.test_it") and len(lines) == 2 + long
    assert ("test_long" in lines[1]) == long
    assert durations.slowest(context.logs, time.time() + 60, 9) == []


def test_names__are_known_without_a_build(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    def built(*_: object) -> Path:
        raise AssertionError("something was built")

    tests = [{"name": "unit_one", "suite": ["homa:unit"]}]
    monkeypatch.setattr(builds, "ensure", built)
    monkeypatch.setattr(builds, "configured", lambda *_: tmp_path)
    monkeypatch.setattr(builds, "introspect", lambda *_: tests)
    context = Context(False, [])
    with pytest.raises(SystemExit) as left:
        runner._plan(context, ["unit,pair"])
    assert left.value.code == 2
    assert "no stage or test 'unit,pair'" in capsys.readouterr().err
    runner._list(context)
    assert "unit_one" in capsys.readouterr().out
