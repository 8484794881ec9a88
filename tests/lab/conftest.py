# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Makes `lab` importable, and says which tests need root."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="makes network namespaces, so it needs root"
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: before a release is enough (./homa test --long)")


def _bench_is_built() -> bool:
    from lab.errors import LabError
    from lab.paths import homa_bench

    try:
        return bool(homa_bench())
    except LabError:
        return False


needs_bench = pytest.mark.skipif(
    not _bench_is_built(), reason="homa-bench is not built; ./homa build does it"
)


@pytest.fixture
def fake_sim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Puts fake_homa_sim.py in homa-sim's place; the file that has a line per run of it."""
    from lab.sim import program

    log = tmp_path / "fake.log"
    log.touch()
    monkeypatch.setenv("HOMA_SIM", str(Path(__file__).with_name("fake_homa_sim.py")))
    monkeypatch.setenv("FAKE_LOG", str(log))
    program.catalogue.cache_clear()
    yield log
    program.catalogue.cache_clear()


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]):
    """Runs the command line: (status, standard output, standard error)."""
    import signal

    from lab.__main__ import main

    def run(*argv: str) -> tuple[int, str, str]:
        before = signal.getsignal(signal.SIGTERM)
        try:
            status = main(list(argv))
        finally:
            signal.signal(signal.SIGTERM, before)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run
