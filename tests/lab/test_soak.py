# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa fuzz --soak` with a program that only pretends: what fails is kept, to be repeated."""

from __future__ import annotations

import os
import subprocess
from itertools import islice
from pathlib import Path

import pytest
from soaks import stretches

from lab.test import soak
from lab.test.context import Context

FAKE = """\
#!/bin/sh
[ "$PAIR_TEST" = '*random_worlds*' ] || exit 9
if [ -n "$PAIR_SEED" ]; then echo "PAIR_SEED=$PAIR_SEED at 1.5 s: again"; exit 1; fi
echo "worlds from PAIR_SEED=$PAIR_SOAK_FIRST"
if mkdir {once}; then
	{first}
fi
echo "40 worlds to PAIR_SEED=9"
"""


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    return Context(False, [])


def fake(tmp_path: Path, first: str) -> Path:
    program = tmp_path / "pair_soak"
    program.write_text(FAKE.format(once=tmp_path / "once", first=first))
    program.chmod(0o755)
    return program


def test_places__are_new_each_time_and_can_be_had_again() -> None:
    def some(seed: int) -> list[int]:
        return list(islice(soak.places(seed), 1000))

    first, second = some(0), some(0)
    assert not set(first) & set(second)
    first, second = some(5), some(5)
    assert first == second
    assert len(set(first)) == 1000
    # Beyond the small numbers that people try.
    assert min(first) > 1000000


def test_main__says_what_it_does(
    context: Context,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The whole command, as ./homa fuzz --soak --seconds 1 runs it."""
    program = fake(tmp_path, ":")
    monkeypatch.setattr(soak, "collect", lambda *_: {"plain": program, "asan": program})
    assert soak.main(context, 1, 3, False, None) == 0
    said = capsys.readouterr().out
    assert "random worlds, plain and asan, " in said
    assert said.splitlines()[-1].startswith("worlds: ")


def test_run__counts_and_goes_on_after_a_failure(context: Context, tmp_path: Path) -> None:
    program = fake(tmp_path, 'echo "PAIR_SEED=$((PAIR_SOAK_FIRST + 7)) at 0.3 s: broken"; exit 1')
    done = soak.run(context, {"plain": program}, 0, 3, 1, stretches(3))
    (finding,) = done.findings
    assert finding.seed == finding.first + 7
    assert done.worlds["plain"] == 7 + 40 + 40
    assert done.as_json()["findings"] == 1
    kept = Path(finding.file).read_text()
    assert "broken" in kept and finding.again in kept
    again = subprocess.run(finding.again, shell=True, capture_output=True, text=True)
    assert again.stdout == f"PAIR_SEED={finding.seed} at 1.5 s: again\n"


def test_run__a_crash_names_its_stretch(context: Context, tmp_path: Path) -> None:
    program = fake(tmp_path, "kill -11 $$")
    done = soak.run(context, {"asan": program}, 0, 3, 1, stretches(1))
    (finding,) = done.findings
    assert (finding.seed, finding.status) == (None, -11)
    assert f"PAIR_SOAK_FIRST={finding.first}" in finding.again and "ASAN" in finding.again


def test_run__good_worlds_leave_nothing(context: Context, tmp_path: Path) -> None:
    done = soak.run(context, {"plain": fake(tmp_path, ":")}, 0, 0, 2, stretches(2))
    assert done.findings == [] and done.worlds["plain"] >= 40
    assert not list(context.logs.iterdir())


def test_judge__a_good_status_without_worlds_is_a_finding(tmp_path: Path) -> None:
    worlds, finding = soak.judge("plain", tmp_path, 5, 1, 0, "no world at all\n")
    assert (worlds, finding is not None) == (0, True)
    assert os.fspath(tmp_path) in (finding.again if finding else "")
