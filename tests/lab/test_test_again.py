# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The second chance of `./homa test --again`: it must never make a run good that was not."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.test import again, builds, process, python_tests
from lab.test import __main__ as runner
from lab.test.context import Context, Tally

# Fails if the file `mark` is not there yet, and makes it.
ONCE = """
import pathlib, pytest
def first(mark):
    mark = pathlib.Path(mark)
    known = mark.exists()
    mark.touch()
    return not known
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a text as tests/some/test_it.py, with or without a second chance."""
    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(process, "kill_all", lambda: None)
    monkeypatch.setattr(builds, "ensure", lambda *_: tmp_path)
    monkeypatch.setattr(python_tests, "ROOT", tmp_path)
    monkeypatch.setattr(again, "ROOT", tmp_path)
    file = tmp_path / "tests/some/test_it.py"
    file.parent.mkdir(parents=True)

    def go(text: str, *, chance: bool = True) -> Tally:
        file.write_text(ONCE + text.replace("MARK", str(tmp_path / "mark")))
        return python_tests.pytest(Context(False, [], again=chance), "some", [], 60)

    return go


UNSTEADY = "def test_good(): pass\ndef test_it(): assert not first('MARK'), 'too late'\n"


def test_unsteady__passes_and_is_named(run) -> None:
    tally = run(UNSTEADY)
    assert (tally.passed, tally.failed) == (2, 0)
    (line,) = tally.unsteady
    assert line.startswith("tests/some/test_it.py::test_it: ")


def test_unsteady__fails_without_the_option(run) -> None:
    tally = run(UNSTEADY, chance=False)
    assert (tally.passed, tally.failed, tally.unsteady) == (1, 1, [])


def test_broken__fails_once(run) -> None:
    tally = run("def test_good(): pass\ndef test_it(): assert False\n")
    assert (tally.passed, tally.failed, tally.unsteady) == (1, 1, [])


def test_parameters__only_the_failed_one_again(run) -> None:
    tally = run(
        "@pytest.mark.parametrize('n', ['a b', 'c.d-1', 'é'])\n"
        "def test_it(n): assert n != 'c.d-1' or not first('MARK')\n"
    )
    assert (tally.passed, tally.failed) == (3, 0)
    assert "test_it[c.d-1]" in tally.unsteady[0]


def test_fixture__counts_for_all_that_share_it(run) -> None:
    shared = (
        "@pytest.fixture(scope='module')\ndef machine():\n    assert not first('MARK')\n"
        "@pytest.mark.parametrize('n', range(N))\ndef test_it(machine, n): pass\n"
    )
    tally = run(shared.replace("N", "7"))
    assert (tally.passed, tally.failed, len(tally.unsteady)) == (7, 0, 7)


def test_many__are_not_run_again(run) -> None:
    text = (
        "@pytest.mark.parametrize('n', range(13))\ndef test_it(n): assert not first(f'MARK{n}')\n"
    )
    tally = run(text)
    assert (tally.passed, tally.failed, tally.unsteady) == (0, 13, [])


@pytest.mark.parametrize("word", again.HARD)
def test_report_of_a_sanitizer_or_kernel__is_not_run_again(run, word: str) -> None:
    text = f"def test_it():\n    if first('MARK'): pytest.fail('12: {word} x')\n"
    assert run(text).failed == 1


WENT_DOWN = """the guest (6.1.0) went down
--- kernel:
BUG: KASAN: slab-use-after-free in homak_rx+0x1/0x2 [homa]
"""


def test_guest_that_goes_down__is_not_run_again(run) -> None:
    """What the kernel said is in the failure, but no test has looked for it."""
    assert run(f"def test_it():\n    if first('MARK'): pytest.fail({WENT_DOWN!r})\n").failed == 1


def test_second_run_that_skips__leaves_the_failure(run) -> None:
    text = "def test_it():\n    if not first('MARK'): pytest.skip('no memory')\n    assert False\n"
    tally = run(text)
    assert (tally.passed, tally.failed, tally.unsteady) == (0, 1, [])


def test_pytest_that_dies__is_not_run_again(run) -> None:
    tally = run("import os\ndef test_it():\n    if first('MARK'): os._exit(3)\n")
    assert (tally.passed, tally.failed) == (0, 1)


def test_second_run_that_dies__leaves_the_failure(run) -> None:
    text = (
        "import os\ndef test_it():\n    if not first('MARK'): os._exit(3)\n    assert False\n"
        "def test_good(): pass\n"
    )
    tally = run(text)
    assert (tally.passed, tally.failed, tally.unsteady) == (1, 1, [])


def test_cases_of_a_script__belong_to_its_test(run) -> None:
    script = (
        "def test_it(request):\n"
        "    good = not first('MARK')\n"
        "    for case in ('a', 'b: c [d]'):\n"
        "        for when in ('setup', 'call', 'teardown'):\n"
        "            bad = case == 'a' and when == 'call' and not good\n"
        "            request.node.ihook.pytest_runtest_logreport(report=pytest.TestReport(\n"
        "                nodeid=f'{request.node.nodeid}::{case}', location=('x', 0, case),\n"
        "                keywords={}, outcome='failed' if bad else 'passed',\n"
        "                longrepr='no' if bad else None, when=when))\n"
        "    assert good\n"
    )
    tally = run(
        "@pytest.mark.parametrize('kernel', ['6.1'])\n"
        + script.replace("(request)", "(request, kernel)")
    )
    assert (tally.passed, tally.failed, len(tally.unsteady)) == (3, 0, 1)


def test_result__names_the_unsteady(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(process, "kill_all", lambda: None)
    tally = Tally(passed=1, unsteady=["tests/x.py::test_y: too late"])
    stage = runner.Stage("some", "stage", lambda *_: tally)
    assert runner._run(Context(False, []), [(stage, [])]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "unsteady: 1 tests failed and passed when they were run again" in out
    assert out[-1] == "1 passed, 0 failed, 0 skipped"
