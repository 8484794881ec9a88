# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa reproduce` with a stand-in for the simulator: resumable, one page, one row per item."""

import json
import re
from pathlib import Path

import pytest

from lab.reproduce import items, page, run
from lab.reproduce.items import ITEMS
from lab.sim import figures
from lab.sim.figures.base import Options


def reproduce(cli, out: Path, *more: str) -> tuple[int, str, str]:
    return cli("reproduce", "--quick", "--seeds", "1", "--out", str(out), *more)


def test_items__every_figure_has_a_row_and_a_reason_if_no_command() -> None:
    names = [item.name for item in ITEMS]
    assert len(names) == len(set(names)) and {i.paper for i in ITEMS} == set(items.PAPERS)
    made = {item.figure for item in ITEMS if item.figure}
    # What no paper shows has no row here.
    assert made == set(figures.FIGURES) - {"lowqueue"}
    for item in ITEMS:
        assert item.differs and min(item.minutes) > 0
        if not item.made and not item.command:
            assert len(item.differs) > 30, f"{item.name} does not say why it has no command"


def test_reproduce__one_page_with_figures_rows_and_where_from(
    cli, fake_sim: Path, tmp_path: Path
) -> None:
    status, out, err = reproduce(cli, tmp_path, "table1", "atc6")
    assert status == 0, err
    assert "table1 (1 of 2)" in out and "left" in out
    document = json.loads((tmp_path / "table1.json").read_text())
    origin = document["origin"]
    assert origin["machine"]["kernel"] and origin["machine"]["cores"] and "commit" in origin
    assert origin["simulator"]["build"] == document["reproduce"]["build"]
    assert origin["command"] == "./homa reproduce --quick --seeds 1 table1"
    assert document["seed_list"] == origin["seeds"] == [1]
    text = (tmp_path / "index.html").read_text()
    assert text.count("data:image/svg+xml;base64,") == 2 and "prefers-color-scheme: dark" in text
    # Self-contained: nothing is fetched from anywhere.
    assert not re.search(r'(?:src|href)="(?!data:|#)', text) and "<script" not in text
    for item in ITEMS:
        assert item.title.split("’")[0] in text.replace("&#x27;", "'"), item.name
    for row in document["rows"]:
        assert row["what"] in text
    markdown = (tmp_path / "results.md").read_text()
    assert "![Queue lengths at 80 % load](table1.svg)" in markdown and "no command" in markdown
    assert f"2 of {len(ITEMS)} items measured" in markdown


def test_seconds__are_of_as_many_seeds_as_there_are() -> None:
    def minutes(name: str, **options: int | bool) -> float:
        return run.seconds(items.choose([name]), Options(**options)) / 60

    fig3, sustained, table1 = (
        items.choose([n])[0].minutes for n in ("lab-fig3", "lab-sustained", "table1")
    )
    assert minutes("lab-fig3", quick=False) == pytest.approx(fig3[1])
    assert minutes("lab-fig3", quick=False, seeds=1) == pytest.approx(fig3[1] / 3)
    assert minutes("lab-fig3", quick=True, seeds=2) == pytest.approx(2 * fig3[0])
    # It has three of its own, whatever is asked for.
    assert minutes("lab-sustained", quick=True, seeds=1) == pytest.approx(sustained[0])
    assert minutes("table1", quick=True, seeds=1) == pytest.approx(table1[0] / 3)


def test_pages__say_how_long_all_of_it_takes() -> None:
    simulated, real = items.minutes(False)
    # RPCs beside streams are measured once for three items.
    once = [
        item.minutes[1]
        for item in ITEMS
        if item.lab and item.name not in ("snia-rtt", "snia-slowdown")
    ]
    assert real == sum(once) and simulated > 500
    said = page.Head(False, "full length").words()
    assert (
        f"{simulated / 60:.1f} hours on two cores, and {real / 60:.1f} hours more as root" in said
    )
    assert "the goal for both is 10.0 hours: missed." in said
    said = page.Head(True, "short runs").words()
    assert "the goal for the former is 40 minutes: met." in said


def test_reproduce__goes_on_where_it_was(cli, fake_sim: Path, tmp_path: Path) -> None:
    reproduce(cli, tmp_path, "table1")
    made = len(fake_sim.read_text().splitlines())
    status, out, _ = reproduce(cli, tmp_path, "table1", "fig14")
    assert status == 0 and "fig14 (1 of 1)" in out
    # One of its three runs is one of the table's.
    assert len(fake_sim.read_text().splitlines()) == made + 2
    text = (tmp_path / "index.html").read_text()
    assert 'id="table1"' in text and 'id="fig14"' in text and 'id="fig10"' not in text
    # With other seeds it is another result.
    cli("reproduce", "--quick", "--seeds", "2", "--out", str(tmp_path), "fig14")
    assert json.loads((tmp_path / "fig14.json").read_text())["seed_list"] == [1, 2]


def test_reproduce__a_failure_is_said_and_the_rest_is_made(
    cli, fake_sim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAIL", "--workload w5")
    status, _, err = reproduce(cli, tmp_path, "table1", "fig14")
    assert status == 1 and "table1" in err and "fig14" not in err
    text = (tmp_path / "index.html").read_text()
    assert "It could not be made" in text and 'id="fig14"' in text
    monkeypatch.delenv("FAKE_FAIL")
    status, out, _ = reproduce(cli, tmp_path, "table1", "fig14")
    assert status == 0 and "table1 (1 of 1)" in out
    assert "It could not be made" not in (tmp_path / "index.html").read_text()


def test_reproduce__few_messages_are_not_judged(
    cli, fake_sim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MESSAGES", "20")
    reproduce(cli, tmp_path, "atc3")
    text = (tmp_path / "index.html").read_text()
    assert "too few" in text and "8 have too few messages to judge" in text


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["fig99"], "--list"),
        (["--quick", "--night"], "--night"),
        (["--seeds", "0"], "./homa reproduce --help"),
        (["offload-rtt", "--quick"], "needs"),
        (["--out", "/dev/null/x", "--quick", "fig14"], "--out"),
    ],
)
def test_reproduce__wrong_command_line(cli, fake_sim: Path, argv: list[str], says: str) -> None:
    status, _, err = cli("reproduce", *argv)
    assert status == 2 and says in err and err.count("\n") == 1, err


def test_reproduce__list(cli, fake_sim: Path, tmp_path: Path) -> None:
    status, out, _ = reproduce(cli, tmp_path, "--list")
    assert status == 0 and all(item.name in out for item in ITEMS)
    assert "no command" in out and not fake_sim.read_text()


def test_cells__of_rows() -> None:
    row = {"what": "x", "published": 2.2, "unit": "", "rule": "≤ 2.2", "met": True}
    row["ours"] = {"mean": 1.94, "ci95": 0.04, "n": 4575}
    assert page.cells(row) == ["x", "2.2", "1.94 ± 0.04", "4,575", "× 0.882", "≤ 2.2", "met"]
    row |= {"ours": {"mean": None, "n": 8}, "met": None}
    assert page.cells(row) == ["x", "2.2", "–", "8", "–", "≤ 2.2", "too few"]
    row |= {"ours": None, "met": False, "unit": "%"}
    assert page.cells(row)[2:] == ["–", "", "–", "≤ 2.2", "missed"]
