# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Sweeps survive whatever ends them: no finished run is lost, none is made twice.

A stand-in for homa-sim notes every run; the real one is tried in test_sim_real.py.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT

from lab.sim import spec

SWEEP = 'name = "s"\nseeds = 3\n[grid]\nload = [0.5, 0.6]\nprotocol = ["homa", "pfabric"]\n'
RUNS = 12


@pytest.fixture
def sweep_file(tmp_path: Path, fake_sim: Path) -> Path:
    file = tmp_path / "sweep.toml"
    file.write_text(SWEEP)
    return file


def start(file: Path, *more: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "lab", "sim", "sweep", str(file), *more],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(what: Callable[[], bool]) -> None:
    """Give up after a minute; how fast the machine is does not matter."""
    for _ in range(3000):
        if what():
            return
        time.sleep(0.02)
    raise AssertionError("it never happened")


def finished(file: Path) -> list[Path]:
    return sorted((file.parent / "s.sweep" / "runs").glob("*.json"))


def made(log: Path) -> list[str]:
    """The arguments of every run, without the file that it wrote."""
    return [line.partition(" ")[2].partition(" --json")[0] for line in log.read_text().splitlines()]


def test_all_runs__are_made_once(cli, sweep_file: Path, fake_sim: Path) -> None:
    status, out, err = cli("sim", "sweep", str(sweep_file))
    assert status == 0 and "Traceback" not in err and "homa: " not in err, err
    assert len(finished(sweep_file)) == RUNS == len(set(made(fake_sim))) == len(made(fake_sim))
    assert f"{RUNS} runs made, 0 found" in out
    status, out, _ = cli("sim", "sweep", str(sweep_file))
    assert status == 0 and f"0 runs made, {RUNS} found" in out
    assert len(made(fake_sim)) == RUNS
    rows = (sweep_file.parent / "s.sweep" / "results.csv").read_text().splitlines()
    assert len(rows) == RUNS + 1 and rows[0].startswith("load,protocol,seed,p50")


def test_result__says_what_was_run(cli, sweep_file: Path) -> None:
    cli("sim", "sweep", str(sweep_file))
    one = json.loads(finished(sweep_file)[0].read_text())
    assert set(one) == {"run", "where", "build", "result"} and one["result"]["complete"]
    assert {"load", "protocol", "seed"} == set(one["run"])


def test_one_more_value__only_what_is_new(cli, sweep_file: Path, fake_sim: Path) -> None:
    cli("sim", "sweep", str(sweep_file))
    sweep_file.write_text(SWEEP.replace("0.6]", "0.6, 0.7]"))
    _, out, _ = cli("sim", "sweep", str(sweep_file))
    assert "6 runs made, 12 found" in out and len(made(fake_sim)) == RUNS + 6


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_lab_is_killed__the_rest_is_made_later(
    how: signal.Signals, cli, sweep_file: Path, fake_sim: Path
) -> None:
    process = start(sweep_file, "--jobs", "2", FAKE_SECONDS="0.3")
    wait_for(lambda: len(finished(sweep_file)) >= 3)
    process.send_signal(how)
    _, err = process.communicate()
    assert process.returncode == (-9 if how == signal.SIGKILL else 130), err
    kept = {path: path.stat().st_mtime_ns for path in finished(sweep_file)}
    assert 3 <= len(kept) < RUNS
    status, out, _ = cli("sim", "sweep", str(sweep_file))
    assert status == 0 and f"{RUNS - len(kept)} runs made, {len(kept)} found" in out
    for path in kept:
        said = " ".join(spec.argv(json.loads(path.read_text())["run"]))
        assert made(fake_sim).count(said) == 1
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    assert not list((sweep_file.parent / "s.sweep" / "runs").glob(".part-*"))


def test_lab_in_the_background__is_ended_by_sigterm(sweep_file: Path, fake_sim: Path) -> None:
    """A script starts what it puts into the background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = start(sweep_file, "--jobs", "2", FAKE_SECONDS="120")
    finally:
        signal.signal(signal.SIGINT, before)
    wait_for(lambda: len(made(fake_sim)) == 2)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate()
    assert process.returncode == 130, err


def test_lab_is_killed__its_runs_end_too(sweep_file: Path, fake_sim: Path) -> None:
    process = start(sweep_file, "--jobs", "2", FAKE_SECONDS="120")
    wait_for(lambda: len(made(fake_sim)) == 2)
    process.kill()
    process.communicate()
    pids = [int(line.split()[0]) for line in fake_sim.read_text().splitlines()]
    wait_for(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() and
                             b"fake_homa" in Path(f"/proc/{pid}/cmdline").read_bytes()
                             for pid in pids))  # fmt: skip


def test_run_is_killed__others_go_on_and_it_is_repeated(
    cli, sweep_file: Path, fake_sim: Path
) -> None:
    process = start(sweep_file, "--jobs", "2", FAKE_SECONDS="0.3")
    wait_for(lambda: len(finished(sweep_file)) >= 2 and len(made(fake_sim)) >= 4)
    victim = int(fake_sim.read_text().splitlines()[-1].split()[0])
    os.kill(victim, signal.SIGKILL)
    out, err = process.communicate()
    assert process.returncode == 1
    assert "ended by signal 9" in out and "1 run failed" in err
    assert len(finished(sweep_file)) == RUNS - 1
    _, out, _ = cli("sim", "sweep", str(sweep_file))
    assert f"1 run made, {RUNS - 1} found" in out


def test_runs_that_fail__are_told(cli, sweep_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_FAIL", "--protocol pfabric")
    status, out, err = cli("sim", "sweep", str(sweep_file))
    assert status == 1 and "it went wrong" in out and "and 1 more" in out
    assert "6 runs failed" in err and len(finished(sweep_file)) == 6


def test_damaged_file__is_made_again(cli, sweep_file: Path) -> None:
    cli("sim", "sweep", str(sweep_file))
    finished(sweep_file)[0].write_text('{"run": {}, "resu')
    _, out, _ = cli("sim", "sweep", str(sweep_file))
    assert f"1 run made, {RUNS - 1} found" in out


def test_two_at_once__the_second_is_told(cli, sweep_file: Path, fake_sim: Path) -> None:
    process = start(sweep_file, "--jobs", "2", FAKE_SECONDS="60")
    wait_for(lambda: len(made(fake_sim)) == 2)
    status, _, err = cli("sim", "sweep", str(sweep_file))
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert status == 1 and "another run is at work" in err


def test_unknown_protocol__before_anything_runs(cli, sweep_file: Path, fake_sim: Path) -> None:
    sweep_file.write_text(SWEEP.replace('"pfabric"', '"quic"'))
    status, _, err = cli("sim", "sweep", str(sweep_file))
    assert status == 2 and "no protocol 'quic'" in err and not made(fake_sim)


def test_scheduler__without_dask_says_what_to_install(
    cli, sweep_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    status, _, err = cli("sim", "sweep", str(sweep_file), "--scheduler", "tcp://127.0.0.1:9")
    assert status == 1 and "python3-distributed" in err and err.count("\n") == 1
