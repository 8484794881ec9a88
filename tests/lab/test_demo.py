# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The demo from end to end, with kernel TCP, which needs nothing but homa-bench."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, needs_bench, needs_root
from test_net import wait_until

from lab.net import guardian
from lab.paths import homa_bench, known_transports

pytestmark = [needs_bench, needs_root]


# Little to do for the processors, so that it also works while they are busy.
LIGHT = ["--seconds", "2", "--link", "100mbit", "--workload", "w3", "--load", "0.3"]


def start(folder: Path, *options: str, **environment: str) -> subprocess.Popen:
    argv = [
        sys.executable,
        "-m",
        "lab",
        "demo",
        "--transports",
        "tcp,tcp-pool",
        "--plot",
        str(folder / "plot.png"),
        "--json",
        str(folder / "all.json"),
        *options,
    ]
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
    )


def owned(process: subprocess.Popen) -> list[str]:
    return guardian.namespaces(f"{guardian.PREFIX}{process.pid}-")


def check(folder: Path, text: str, runs: int) -> dict:
    document = json.loads((folder / "all.json").read_text())
    assert len(document["runs"]) == runs
    for run in document["runs"]:
        assert run["completed"] > 0
        assert len(run["rows"]) == 10
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert "\x1b" not in text and "TCP pool" in text and str(folder / "plot.png") in text
    fewest = min(row["count"] for run in document["runs"] for row in run["rows"])
    assert f"Each tenth holds {fewest:,} messages or more" in " ".join(text.split())
    assert ("is an indication" in " ".join(text.split())) == (fewest < 1000)
    return document


@pytest.mark.long
def test_demo__two_at_once(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    both = [start(folder, *LIGHT) for folder in folders]
    for folder, process in zip(folders, both, strict=True):
        text = process.communicate()[0]
        assert process.returncode == 0, text
        document = check(folder, text, runs=4)
        assert [r["buffer"] for r in document["runs"]] == [49152, 49152, 196608, 196608]
        assert document["network"]["denominators"]
        assert "Switch buffer per port: 48 KB" in text
        assert not owned(process)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_demo__leaves_nothing_when_ended(tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path, "--seconds", "60")
    wait_until(lambda: len(owned(process)) == 4)
    # Into the middle of a run: programs are at work inside.
    wait_until(lambda: "homa-bench" in _commands(owned(process)))
    process.send_signal(number)
    text = process.communicate()[0]
    assert process.returncode == (-9 if number == signal.SIGKILL else 130), text
    wait_until(lambda: not owned(process))
    if number != signal.SIGKILL:
        assert "interrupted" in text
    assert not (tmp_path / "all.json").exists()


def _commands(names: list[str]) -> str:
    found = ""
    for name in names:
        done = subprocess.run(
            ["ip", "netns", "pids", name], capture_output=True, text=True, check=False
        )
        for pid in done.stdout.split():
            try:
                found += Path(f"/proc/{pid}/cmdline").read_text()
            except OSError:
                continue
    return found


def test_demo__on_loopback(tmp_path: Path) -> None:
    process = start(tmp_path, *LIGHT, HOMA_LAB_MODE="loopback")
    text = process.communicate()[0]
    assert process.returncode == 0, text
    check(tmp_path, text, runs=2)
    assert "loopback" in text and "No switch" in text


@pytest.fixture
def homa() -> None:
    if "homa" not in known_transports():
        pytest.skip("homa-bench was built without Homa")


def test_demo__homa_beside_tcp(homa: None, tmp_path: Path) -> None:
    process = start(tmp_path, "--transports", "homa,tcp-pool", *LIGHT)
    text = process.communicate()[0]
    assert process.returncode == 0, text
    document = check(tmp_path, text, runs=4)
    assert {run["via"] for run in document["runs"] if run["transport"] == "homa"} == {"afxdp"}
    assert document["summary"]["smallest_decile_p99_ratio"]["tcp-pool"] > 0
    assert len(document["ratios"][0]["p99_to_homa"]) == 10
    assert "/Homa" in text


def test_demo__homa_through_homad(homa: None, tmp_path: Path) -> None:
    process = start(tmp_path, "--transports", "homa,tcp-pool", "--via", "service", *LIGHT)
    text = process.communicate()[0]
    assert process.returncode == 0, text
    document = check(tmp_path, text, runs=4)
    assert {run["via"] for run in document["runs"] if run["transport"] == "homa"} == {"service"}
    assert "homad on each host" in text


def test_demo__homad_needs_hosts(tmp_path: Path) -> None:
    process = start(tmp_path, "--via", "service", HOMA_LAB_MODE="loopback")
    text = process.communicate()[0]
    assert process.returncode == 1
    assert "--via service needs hosts of their own" in text


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that everybody may write to; pytest's own are private."""
    with tempfile.TemporaryDirectory(prefix="homa-test-") as name:
        os.chmod(name, 0o777)
        yield Path(name)


def test_demo__without_root(homa: None, public_folder: Path) -> None:
    """As user nobody, in a user namespace where that is allowed, else on loopback."""
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    files = [str(path) for path in (ROOT / "lab" / "demo" / "run.py", homa_bench())]
    if subprocess.run([*nobody, "cat", *files], capture_output=True, check=False).returncode:
        pytest.skip("others may not read this tree")
    argv = [
        *nobody,
        sys.executable,
        "-m",
        "lab",
        "demo",
        "--transports",
        "homa,tcp-pool",
        *LIGHT,
        "--plot",
        str(public_folder / "plot.png"),
        "--json",
        str(public_folder / "all.json"),
    ]
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "HOME": str(public_folder),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "Running without root" in done.stdout
    document = json.loads((public_folder / "all.json").read_text())
    assert {run["via"] for run in document["runs"] if run["transport"] == "homa"} == {"udp"}
    assert len(document["runs"]) == (4 if "in a user namespace" in done.stdout else 2)
