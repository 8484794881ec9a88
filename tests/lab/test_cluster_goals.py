# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The scoreboard's numbers of the ATC'21 figures on real packets."""

import json
from dataclasses import replace
from pathlib import Path

import lab_runs
import pytest

from lab.cluster import goals, setup, show
from lab.cluster.arguments import Wanted
from lab.cluster.real_and_simulated import Compared
from lab.targets import goals as targets

SETUP = setup.Setup(
    hosts=8, link_bps=25 * 10**9, dilate=250, mtu=3000, buffer=325_000, seed=1,
    messages=12_000, longest_s=300, via="program",
)  # fmt: skip
ROWS = [
    row
    for row in targets.load_targets()
    if any(row.command.startswith(f"./homa lab run {name} ") for name in ("fig3", "fig5", "fig6"))
]


def points(name: str, transports: str = "", count: int = lab_runs.MANY) -> list[Compared]:
    return lab_runs.figure(name, Wanted(True, transports=transports), SETUP, count)


def test_numbers__of_each_figure() -> None:
    found = goals.numbers("fig3", points("fig3"))
    # TCP takes 40 times as long as Homa for short messages; the paper's W2 72 times.
    assert found["short"] == pytest.approx(40 / (4151.5 / 57.7))
    assert found["tenths_p50"] == found["tenths_p99"] == pytest.approx(0.5)
    assert found["simulated_p50"] == found["simulated_p99"] == pytest.approx(10)
    found = goals.numbers("fig5", points("fig5"))
    assert found["two_to_eight"] == pytest.approx(2) and found["simulated_p99"] is not None
    spread = goals.numbers("fig6", points("fig6"))["spread"]
    assert spread == pytest.approx(0.9 / 0.54)


def test_simulated__the_tenth_that_differs_most_up_or_down() -> None:
    one = points("fig3", "homa")[0]
    rows = list(one.rows)
    lab = rows[4].lab["p99"]
    rows[4] = replace(rows[4], sim={"p50": rows[4].sim["p50"], "p99": 0.6 * lab})
    found = goals.numbers("fig3", [replace(one, rows=rows)])
    assert found["simulated_p99"] == pytest.approx(40)
    assert found["simulated_p50"] == pytest.approx(10)
    # Nothing to compare Homa with.
    assert found["short"] is None and found["tenths_p99"] is None


@pytest.mark.parametrize("name", ["fig3", "fig5", "fig6"])
def test_numbers__none_of_what_does_not_count(name: str) -> None:
    some = points(name)
    doubtful = [replace(one, doubts=["the machine stood still"]) for one in some]
    assert goals.numbers(name, [doubtful[0], *some[1:]])["simulated_p50"] is None
    assert set(goals.numbers(name, doubtful).values()) == {None}
    assert set(goals.numbers(name, points(name, count=900)).values()) == {None}
    assert set(goals.numbers(name, []).values()) == {None}
    without = [replace(some[0], rows=[]), *some[1:]]
    assert goals.numbers(name, without)["simulated_p99"] is None


def test_tenths__one_workload_that_is_missing_is_no_number() -> None:
    some = points("fig3")
    without = [replace(some[1], rows=[]), some[0], *some[2:]]
    found = goals.numbers("fig3", without)
    assert found["tenths_p50"] is None and found["short"] is None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_targets__find_their_values(row: targets.Target, tmp_path: Path) -> None:
    """In the file that the command of each row writes."""
    words = row.command.split()
    name, file = words[3], tmp_path / "x.json"
    transports = words[words.index("--transports") + 1] if "--transports" in words else ""
    show.end(name, SETUP, points(name, transports), file, None)
    assert targets.find_value(json.loads(file.read_text()), row.path).median > 0


def test_targets__have_a_row_for_each_number() -> None:
    said = {(row.command.split()[3], row.path.partition(".")[2]) for row in ROWS}
    figures = {(n, number) for n in ("fig3", "fig5", "fig6") for number in goals.numbers(n, [])}
    # The simulator is asked in Figure 3's network, and in the same with small buffers.
    rest = {(n, f"simulated_{p}") for n in ("fig5", "fig6") for p in goals.BOTH}
    assert said == figures - rest
    assert sum("--buffer 24kb" in row.command for row in ROWS) == 2
