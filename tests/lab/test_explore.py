# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa explore`: the order of its searches, what is kept of one that was stopped, and the picture
of a counterexample, with a program that only pretends."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lab.test import explore, spacetime

LISTING = """\
small      one RPC
           loss 2 dup 1
big        two RPCs
           loss 1
"""
LINE = "{0:<10} {1} faults  all seen {2:>10} states {3:>11} steps {4:>8} ends  depth  14  0.5 s 10 k steps/s"
# Says that all was seen, but for the one search that is stopped the first time.
FAKE = """\
#!/bin/sh
if [ "$1" = --list ]; then cat {listing}; exit 0; fi
echo "$*" >> {calls}
case "$*" in
*"--scenario big --from 1"*--again*) ;;
*"--scenario big --from 1"*) echo kept > {folder}/way.0; echo "big 1 faults  stopped  5 states 6 steps 0 ends  depth  3  0.1 s"; exit 3 ;;
esac
echo "$2 $4 faults  all seen 10 states 20 steps 3 ends  depth  4  0.5 s"
"""
TRACE = Path(explore.FOUND / "newcomer_of_a_greedy_peer.trace")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "listing").write_text(LISTING)
    (tmp_path / "kept").mkdir()
    file = tmp_path / "explore"
    file.write_text(
        FAKE.format(
            listing=tmp_path / "listing", calls=tmp_path / "calls", folder=tmp_path / "kept"
        )
    )
    file.chmod(0o755)
    return file


def options(**changed: object) -> argparse.Namespace:
    values = {
        "scenario": "",
        "faults": None,
        "bound": "",
        "seconds": 0,
        "hours": 0,
        "memory": 16,
        "workers": 1,
        "again": False,
        "json": None,
    }
    return argparse.Namespace(**{**values, **changed})


def test_jobs__are_what_the_program_says() -> None:
    text = LINE.format("short", 2, 3314, 4968, 357) + "\nother\n" + LINE.format("big", 0, 5, 6, 1)
    first, second = explore.jobs_of(text)
    assert (first.scenario, first.faults, first.states, first.steps, first.ends) == (
        "short",
        2,
        3314,
        4968,
        357,
    )
    assert (second.scenario, second.result, second.depth) == ("big", "all seen", 14)


def test_jobs__in_which_states_were_left_out() -> None:
    text = (
        (
            "big        2 faults  left out        10 states          20 steps        3 ends  depth   4     0.5 s     9 k steps/s"
            "  7 steps to states with more than 16 packets left out\n"
        )
        + LINE.format("short", 2, 3314, 4968, 357)
        + "\n"
    )
    first, second = explore.jobs_of(text)
    assert (first.result, first.left_out, second.result, second.left_out) == (
        "left out",
        7,
        "all seen",
        0,
    )


def test_search__says_that_states_were_left_out(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = 'echo "$2 $4 faults  left out 10 states 20 steps 3 ends  depth  4  0.5 s 9 k steps/s  7 steps to states with more"; exit 5'
    program.write_text(
        program.read_text().replace('echo "$2 $4 faults  all seen', f'{said}\necho "')
    )
    figures = tmp_path / "figures.json"
    assert (
        explore.search(program, options(scenario="small", json=figures), tmp_path / "kept")
        == explore.LEFT_OUT
    )
    assert "but for 7 steps" in capsys.readouterr().out
    assert '"left_out": 28' in figures.read_text()


def test_search__within_a_bound_of_each_kind(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = options(scenario="small", bound="loss=2,dup=1")
    assert explore.search(program, wanted, tmp_path / "kept") == explore.ALL_SEEN
    assert "small      loss=2,dup=1" in capsys.readouterr().out
    assert "--from 3 --faults 3 " in (tmp_path / "calls").read_text()
    assert "--bound loss=2,dup=1" in (tmp_path / "calls").read_text()


def test_order__what_is_promised_first() -> None:
    jobs = [(j.scenario, j.faults) for j in explore.order({"small": 1, "pair1": 1}, "", None)]
    assert jobs == [("pair1", 0), ("pair1", 1), ("small", 0), ("small", 1)]


def test_order__few_faults_first() -> None:
    known = explore.scenarios_of(LISTING)
    assert known == {"small": 3, "big": 1}
    jobs = [(j.scenario, j.faults) for j in explore.order(known, "", None)]
    assert jobs == [("small", 0), ("big", 0), ("small", 1), ("big", 1), ("small", 2), ("small", 3)]
    assert [j.faults for j in explore.order(known, "small", 1)] == [0, 1]


def test_search__goes_on_where_it_was_stopped(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    assert explore.search(program, options(), kept) == explore.STOPPED
    assert "--again goes on" in capsys.readouterr().out
    assert (kept / "way.0").exists()
    assert explore.search(program, options(again=True), kept) == explore.ALL_SEEN
    calls = [
        c.split("--memory")[0] + ("again" if "--again" in c else "")
        for c in (tmp_path / "calls").read_text().splitlines()
    ]
    assert [
        re.sub(r"--scenario (\w+) --from (\d).*?(again)?$", r"\1 \2 \3", c).strip() for c in calls
    ] == [
        "small 0",
        "big 0",
        "small 1",
        "big 1",
        "big 1 again",
        "small 2",
        "small 3",
    ]
    assert not (kept / "way.0").exists()
    assert "60 states in all" in capsys.readouterr().out


def test_search__begins_anew_without_again(program: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    explore.search(program, options(scenario="small"), kept)
    assert explore.search(program, options(scenario="small"), kept) == explore.ALL_SEEN
    assert len((tmp_path / "calls").read_text().splitlines()) == 8


def test_search__of_a_scenario_that_does_not_exist(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explore.search(program, options(scenario="none"), tmp_path / "kept") == 2
    assert "small, big" in capsys.readouterr().err


def test_same_states__in_any_order() -> None:
    two = [explore.Job("a", 0, "all seen", 5), explore.Job("a", 1, "all seen", 7)]
    assert explore.same_states(two, [explore.Job("a", 0, "all seen", 5)]) == []
    assert explore.same_states(two, [explore.Job("a", 1, "all seen", 8)]) == [
        "a, 1 faults: 7 states or 8"
    ]


def test_json__says_what_is_left() -> None:
    done = [
        explore.Job("a", 0, "all seen", 5, 60, 1, 3, 2.0),
        explore.Job("a", 1, "all seen", 7, 40, 1, 3, 3.0),
    ]
    figures = explore.as_json(done, explore.STOPPED, 4, 2)
    assert (figures["states"], figures["left"], figures["steps_per_second"], figures["broken"]) == (
        12,
        4,
        10,
        0,
    )


def test_spacetime__has_an_arrow_for_each_packet_that_came() -> None:
    text = TRACE.read_text()
    arrows, notes, times, _rows = spacetime.read(text)
    came = len(re.findall(r"host \d gets ", text))
    sent = len(re.findall(r"host \d sends ", text))
    assert len(arrows) == sent
    assert sum(a.end is not None for a in arrows) == came
    assert all(a.end is None or a.end > a.row for a in arrows)
    assert any(note.startswith("fails: ") for _row, note in notes)
    assert [t for _row, t in times] == ["2000.000", "2005.402"]


def test_spacetime__is_well_formed() -> None:
    tree = ElementTree.fromstring(spacetime.draw(TRACE.read_text()))
    assert tree.tag.endswith("svg")
    assert len([e for e in tree.iter() if e.get("marker-end")]) == len(
        re.findall(r"host \d gets ", TRACE.read_text())
    )
