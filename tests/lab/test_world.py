# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa fuzz --world` with a program that only pretends: what fails is made smaller and kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from soaks import stretches

from lab.test import soak, world
from lab.test.context import Context

JSON = (
    '{"worlds": 600, "virtual_seconds": 9000, "seconds": 3.0, "events": 5, "packets": 4,'
    ' "rpcs": 3, "settle_seconds": 0.5, "faults": {"loss": 2, "cut": 0, "ring_drops": 0}}'
)
FAKE = """\
#!/bin/sh
case "$*" in *--shrink*) echo "left of its faults: loss, of $2"; exit 0;; esac
echo "seed $3"
if mkdir {once} 2>/dev/null; then
	{first}
fi
echo 'json: {json}'
"""


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    return Context(False, [])


def run(context: Context, tmp_path: Path, first: str, n: int) -> world.Worlds:
    program = tmp_path / "world"
    program.write_text(FAKE.format(once=tmp_path / "once", first=first, json=JSON))
    program.chmod(0o755)
    done = world.Worlds(hosts=5, keep=tmp_path / "kept")
    soak.run(context, {"plain": program}, 0, 0, 1, stretches(n, world.stretch), done)
    return done


def test_run__sums_up(context: Context, tmp_path: Path) -> None:
    done = run(context, tmp_path, ":", 3)
    assert done.findings == [] and done.worlds["plain"] == 3 * 600
    assert done.faults["loss"] == 3 * 2
    assert done.as_json()["virtual_per_second"] == 3000.0
    assert done.never() == ["cut"]
    assert not list(context.logs.iterdir())


def test_run__what_fails_is_made_smaller_and_kept(context: Context, tmp_path: Path) -> None:
    done = run(context, tmp_path, 'echo "seed 77"; echo "PAIR_SEED=77 at 1 s: broken"; exit 1', 1)
    (finding,) = done.findings
    assert finding.seed == 77 and finding.again.endswith("world --seed 77 --hosts 5")
    kept = Path(finding.file)
    assert kept.parent == tmp_path / "kept"
    text = kept.read_text()
    assert "broken" in text and "left of its faults: loss, of 77" in text and finding.again in text


def test_run__a_crash_has_the_seed_of_its_world(context: Context, tmp_path: Path) -> None:
    done = run(context, tmp_path, 'echo "seed 78"; kill -11 $$', 1)
    (finding,) = done.findings
    assert (finding.seed, finding.status) == (78, -11)


def test_judge__a_good_status_without_figures_is_a_finding(tmp_path: Path) -> None:
    figures, finding = world.judge("plain", tmp_path, 5, [], 0, "seed 5\n")
    assert figures is None and finding is not None
