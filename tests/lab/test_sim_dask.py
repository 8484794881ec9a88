# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A sweep over a real Dask scheduler and workers on loopback, one of which is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="python3-distributed is not installed")

from lab.sim import spec
from test_sim_sweep import RUNS, finished, made, start, sweep_file, wait_for  # noqa: F401

_CODE = "import sys; from distributed.cli.{name} import {call}; sys.exit({call}())"


def tool(name: str, call: str, *arguments: str, **env: str) -> subprocess.Popen[str]:
    """A Dask program, by its Python name: the commands may not be in PATH."""
    return subprocess.Popen(
        [sys.executable, "-c", _CODE.format(name=name, call=call), *arguments],
        env={**os.environ, **env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def worker(address: str, folder: Path, **env: str) -> subprocess.Popen[str]:
    place = folder / "worker"
    place.mkdir(exist_ok=True)
    return tool(
        "dask_worker", "main", address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
        "--local-directory", str(place), "--host", "127.0.0.1", **env,
    )  # fmt: skip


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "scheduler.json"
    process = tool(
        "dask_scheduler", "main", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
        "--scheduler-file", str(file),
    )  # fmt: skip
    try:

        def there() -> bool:
            try:
                return bool(json.loads(file.read_text())["address"])
            except (OSError, ValueError, KeyError):
                return False

        wait_for(there)
        yield json.loads(file.read_text())["address"]
    finally:
        process.kill()
        process.wait()


def test_killed_worker__loses_nothing(
    scheduler: str,
    sweep_file: Path,  # noqa: F811
    fake_sim: Path,
    tmp_path: Path,
) -> None:
    env = {"FAKE_SECONDS": "0.3", "FAKE_LOG": str(fake_sim), "PYTHONPATH": ""}
    workers = [worker(scheduler, tmp_path, **env) for _ in range(2)]
    process = start(sweep_file, "--scheduler", scheduler)
    try:
        wait_for(lambda: len(finished(sweep_file)) >= 3 or process.poll() is not None)
        early = finished(sweep_file)
        workers[0].send_signal(signal.SIGKILL)
        out, err = process.communicate(timeout=100)
    finally:
        for one in [*workers, process]:
            one.kill()
            one.wait()
    assert process.returncode == 0, err
    assert len(early) >= 3
    assert f"{RUNS} runs made, 0 found" in out
    assert len(finished(sweep_file)) == RUNS
    # What had been finished when the worker died was not made again.
    for path in early:
        said = " ".join(spec.argv(json.loads(path.read_text())["run"]))
        assert made(fake_sim).count(said) == 1
    # At most the runs that the dead worker had under way were begun twice.
    assert RUNS <= len(made(fake_sim)) <= RUNS + 2


def test_no_scheduler__is_said_in_a_line(cli, sweep_file: Path, monkeypatch) -> None:  # noqa: F811
    from lab.sim import dask

    monkeypatch.setattr(dask, "_CONNECT_S", 1)
    status, _, err = cli("sim", "sweep", str(sweep_file), "--scheduler", "tcp://127.0.0.1:9")
    assert status == 1 and "no Dask scheduler at" in err, err
    status, _, err = cli("sim", "sweep", str(sweep_file), "--scheduler", "127.0.0.1")
    assert status == 2 and "tcp://HOST:8786" in err
