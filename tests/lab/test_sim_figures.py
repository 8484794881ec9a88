# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Every figure is computed, drawn and compared, from the results of a stand-in."""

import json
from pathlib import Path

import pytest

from lab.targets import goals as targets
from lab.errors import UsageError
from lab.sim import compare, draw, figures
from lab.sim.figures import limits, slowdown
from lab.sim.figures.base import Options, bins_of
from lab.sim.flags import FLAGS
from lab.sim.published import FILE, published
from lab.sim.stats import Stat, geometric, stat, t95


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose finished runs serve several tests."""
    return tmp_path_factory.mktemp("figures")


@pytest.mark.parametrize("name", list(figures.FIGURES))
def test_figure__writes_all_its_files(cli, fake_sim: Path, shared: Path, name: str) -> None:
    seeds = 2 if name == "table1" else 1
    tmp_path = shared
    argv = ("sim", "figure", name, "--quick", "--seeds", str(seeds), "--out", str(tmp_path))
    status, out, _ = cli(*argv)
    assert status == 0, out
    for suffix in ("csv", "json", "md", "png", "svg"):
        assert (tmp_path / f"{name}.{suffix}").stat().st_size > 100, suffix
    data = json.loads((tmp_path / f"{name}.json").read_text())
    assert data["figure"] == name and data["quick"] and data["seeds"] == seeds
    rows = (tmp_path / f"{name}.csv").read_text().splitlines()
    assert len(rows) == len(data["data"]) + 1 > 1
    for row in data["rows"]:
        assert row["ours"] is not None, f"{name}: nothing for '{row['what']}'"
        assert (row["met"] is None) == (not row["rule"])
    text = (tmp_path / f"{name}.md").read_text()
    assert f"({name}.png)" in text and all(row["what"] in text for row in data["rows"])


def test_figure__uses_finished_runs_again(cli, fake_sim: Path, tmp_path: Path) -> None:
    argv = ("--quick", "--seeds", "1", "--out", str(tmp_path))
    cli("sim", "figure", "table1", *argv)
    made = len(fake_sim.read_text().splitlines())
    _, out, _ = cli("sim", "figure", "fig11", *argv)
    assert len(fake_sim.read_text().splitlines()) == made == 5
    assert "0 runs made, 5 found" in out


def test_figure__failed_runs_are_told_and_the_rest_is_drawn(
    cli, fake_sim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAIL", "--workload w5")
    status, out, err = cli(
        "sim", "figure", "table1", "--quick", "--seeds", "1", "--out", str(tmp_path)
    )
    assert status == 1 and "it went wrong" in out and "1 run failed" in err
    assert (tmp_path / "table1.png").exists()


def test_figure__of_nothing_says_why(
    cli, fake_sim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAIL", "--protocol")
    status, _, err = cli(
        "sim", "figure", "fig14", "--quick", "--seeds", "1", "--out", str(tmp_path)
    )
    assert status == 1 and "it went wrong" in err and err.splitlines()[-1].startswith("homa: ")


def test_figure__headers_and_seeds_reach_the_program(cli, fake_sim: Path, tmp_path: Path) -> None:
    cli("sim", "figure", "fig14", "--quick", "--headers", "true", "--seeds", "2",
        "--out", str(tmp_path))  # fmt: skip
    lines = fake_sim.read_text().splitlines()
    assert len(lines) == 6 and all("--headers true" in line for line in lines)
    assert {line.partition("--seed ")[2].split()[0] for line in lines} == {"1", "2"}


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["figure"], "--list"),
        (["figure", "fig99"], "--list"),
        (["figure", "fig10", "--protocols", "homa,quic"], "choose from"),
        (["figure", "fig10", "--seeds", "0"], "./homa sim figure --help"),
        (["figure", "fig10", "--headers", "big"], "./homa sim figure --help"),
        (["sweep"], "./homa sim sweep --help"),
        (["sweep", "none.toml"], "cannot read none.toml"),
        (["check", "nothing", "--json", "x.json"], "choose from"),
        (["check", "nothing"], "choose from"),
        (["run", "--loda", "1"], "./homa sim run --help"),
        (["run", "--load", "80"], "like 0.8"),
        (["run", "--link", "10"], "10gbit"),
        (["run", "--measure", "5"], "with its unit"),
        (["run", "--set", "a"], "NAME=VALUE"),
        (["run", "--protocol", "quic"], "choose from homa"),
        (["run", "--preset", "none"], "sigcomm18"),
        (["run", "--trace-from", "1ms"], "--trace FILE"),
        (["run", "--json", "no-such-folder/x"], "no-such-folder"),
        (["run", "--topology", "none.toml"], "cannot read none.toml"),
        (["dance"], "./homa sim --help"),
    ],
)
def test_wrong_command_line__one_line_and_status_2(
    cli, fake_sim: Path, tmp_path: Path, monkeypatch, argv: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = cli("sim", *argv)
    assert status == 2 and says in err and err.count("\n") == 1, err


def test_check__says_its_document(cli, fake_sim: Path, tmp_path: Path) -> None:
    """Without --json it is on standard output."""
    status, out, err = cli("sim", "check", "speed", "--seeds", "1", "--out", str(tmp_path))
    assert status == 0, err
    assert json.loads(out)["hops_per_s"]


@pytest.mark.parametrize("argv", [[], ["run"], ["figure"], ["sweep"], ["check"]])
def test_help(cli, argv: list[str]) -> None:
    status, out, err = cli("sim", *argv, "--help")
    assert (status, err) == (0, "") and "Usage: ./homa sim" in out
    if argv == ["run"]:
        assert all(f"--{name}" in out for name in FLAGS)


def test_published__is_complete_and_sane() -> None:
    data = published()
    assert set(data["fig12"]["homa"]) == {"w1", "w2", "w3", "w4", "w5"}
    for protocol in ("homa", "pfabric", "phost", "pias", "ndp"):
        for application, total in data["fig12"][protocol].values():
            assert 0 < application < total <= 100
    for mean, most in data["table1"]["host-down"].values():
        assert 0 < mean < most
    for protocol in ("homa", "tcp", "dctcp"):
        for p50, p99 in data["atc"][protocol].values():
            assert 0 < p50 < p99
    assert all("source" in part for name, part in data.items() if name != "sources")


def test_published__has_the_facts_numbers() -> None:
    """Row by row what simulation-facts.md says, where that file is at hand."""
    facts = FILE.parents[3] / "shared" / "simulation-facts.md"
    if not facts.exists():
        pytest.skip("no simulation-facts.md beside this tree")
    rows = {
        cells[1].lower(): cells[2:7]
        for line in facts.read_text().splitlines()
        if len(cells := [c.strip() for c in line.split("|")]) == 8
    }
    for protocol in ("homa", "pfabric", "phost", "pias", "ndp"):
        for number, cell in enumerate(rows[protocol], 1):
            ours = published()["fig12"][protocol].get(f"w{number}")
            assert cell == ("–" if ours is None else f"{ours[0]}/{ours[1]}"), protocol


def _utilised(total: float) -> dict:
    return {"sim": {"utilisation": {"application": total / 2, "total": total}}}


def test_search__finds_the_most_that_is_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a network that delivers less and less when it is offered too much."""
    for peak, after in ((0.63, 0.0), (0.72, 0.8), (0.91, 0.5), (1.0, 0.0)):

        def points(_lab: object, _options: object, asked: dict, peak=peak, after=after) -> dict:
            return {
                key: [_utilised(min(load, peak) - after * max(0.0, load - peak))]
                for key in asked
                for load in [asked[key]["load"]]
            }

        monkeypatch.setattr(limits, "Points", points)
        found = limits.search(None, {"x": {}}, Options())  # type: ignore[arg-type]
        assert found.best["x"]
        total = found.best["x"].use("total")
        assert total and total.mean == pytest.approx(100 * peak, abs=2.51 * max(after, 1))
        offered = [load for _, load, _ in found.probes]
        assert len(offered) == len(set(offered)) <= 10


def test_search__no_result() -> None:
    assert limits.delivered([]) == 0 and limits.delivered([{"sim": {}}]) == 0


def test_fig12__finds_the_stand_ins_limit(cli, fake_sim: Path, tmp_path: Path) -> None:
    cli("sim", "figure", "fig12", "--quick", "--seeds", "1", "--protocols", "homa,phost",
        "--out", str(tmp_path))  # fmt: skip
    found = json.loads((tmp_path / "fig12.json").read_text())["values"]["limits"]
    assert 84 <= found["homa.w3"]["total"] <= 88 and 66 <= found["phost.w1"]["total"] <= 70


def test_stat__students_intervals() -> None:
    one = stat([1.0, 2.0, 3.0])
    assert one and one.mean == 2 and one.half == pytest.approx(4.303 / 3**0.5, rel=1e-3)
    assert stat([5.0]) == Stat(5.0, None, 1) and stat([]) is None
    assert stat([None, 4.0, float("nan")]) == Stat(4.0, None, 1)
    assert t95(1) == 12.706 and t95(30) == 2.042 and 1.96 <= t95(1000) < 2.0
    assert all(t95(n) > t95(n + 1) for n in range(1, 60))
    assert geometric([1, 100]) == pytest.approx(10) and geometric([]) is None


def test_compare__rules() -> None:
    def met(row: compare.Row) -> bool | None:
        return row.met

    assert met(compare.within("x", 90, Stat(87.0, None, 1), 3)) is True
    assert met(compare.within("x", 90, Stat(86.9, None, 1), 3)) is False
    assert met(compare.about("x", 63, Stat(67.0, None, 1), 3)) is False
    assert met(compare.at_most("x", 10, Stat(15.0, None, 1), factor=1.5)) is True
    assert met(compare.at_least("x", 20, None)) is False
    assert met(compare.info("x", 1, None)) is None
    row = compare.within("x", 90, Stat(91.25, 0.5, 3), 3)
    assert row.cells() == ["x, %", "90", "91.2 ± 0.5", "+1.2", "≥ 87", "met"]
    assert "| x, % | 90 |" in compare.as_markdown([row])


def test_bins__are_means_over_seeds() -> None:
    def run(p99: float) -> dict:
        row = {"from": 0, "to": 0.02, "min_bytes": 1, "max_bytes": 9, "count": 5, "p99": p99}
        return {"sim": {"bins": [row, {"from": 0.02, "to": 0.04, "count": 0}]}}

    (only,) = bins_of([run(1.0), run(3.0)])
    assert only["p99"].mean == 2 and only["count"] == 10 and only["p50"] is None
    average = slowdown.average([only])
    assert average and average.mean == pytest.approx(2)


def test_colours__differ() -> None:
    papers = ("homa", "pfabric", "phost", "pias", "ndp", "oracle")
    assert len({draw.COLORS[p] for p in papers}) == len(papers)
    assert len(set(draw.ramp(7))) == 7


@pytest.mark.parametrize(
    "row", [t for t in targets.load_targets() if t.command.startswith("./homa sim")],
    ids=lambda row: row.name,
)  # fmt: skip
def test_targets__find_their_values(
    cli, fake_sim: Path, shared: Path, tmp_path: Path, row: targets.Target
) -> None:
    words = row.command.replace(targets.JSON_ARGUMENT, str(tmp_path / "x.json")).split()[1:]
    status, _, err = cli(*words, "--out", str(shared), "--seeds", "1")
    assert status == 0, err
    value = targets.find_value(json.loads((tmp_path / "x.json").read_text()), row.path)
    assert value.rounds >= 1


def test_choose__all() -> None:
    assert [f.name for f in figures.choose("all")] == list(figures.FIGURES)
    with pytest.raises(UsageError):
        figures.choose("fig1")
