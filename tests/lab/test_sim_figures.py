# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Every figure is computed, drawn and compared, from the results of a stand-in."""

import json
from pathlib import Path

import pytest

from lab.targets import goals as targets
from lab.errors import UsageError
from lab.sim import compare, draw, figures, tails
from lab.sim.figures import atc, inside, slowdown
from lab.sim.figures.order import average
from lab.sim.figures.base import bins_of
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


def test_figure__runs_with_failed_messages_do_not_count(
    cli, fake_sim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GIVEN_UP", "3")
    status, out, err = cli(
        "sim", "figure", "atc-table2", "--quick", "--seeds", "1", "--out", str(tmp_path)
    )
    assert status == 1
    assert "3 messages failed, although no packet was lost" in out + err


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
    numbers = [pair for port in inside.PORTS for pair in data["table1"][port].values()]
    assert len(numbers) == 15 and all(0 < mean < most for mean, most in numbers)
    for protocol in ("homa", "tcp", "dctcp"):
        for p50, p99 in data["atc"][protocol].values():
            assert 0 < p50 < p99


def test_published__no_number_without_a_source() -> None:
    """Every table that holds numbers says itself where they stand."""

    def unsourced(table: dict, place: str) -> list[str]:
        found = []
        for name, part in table.items():
            here = f"{place}.{name}"
            if isinstance(part, dict) and "source" not in table:
                found += [here] if _numbers(part) and "source" not in part else []
            if isinstance(part, dict) and "source" not in part and "source" not in table:
                found += unsourced(part, here)
            elif not isinstance(part, (dict, str)) and "source" not in table:
                found.append(here)
        return found

    assert unsourced(published(), "") == []
    assert unsourced({"a": {"b": 1}, "c": {"source": "x", "d": 2}, "e": 3}, "") == [
        ".a",
        ".a.b",
        ".e",
    ]


def _numbers(table: dict) -> bool:
    return any(not isinstance(part, (dict, str)) for part in table.values())


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


def test_fig12__finds_the_stand_ins_limit(cli, fake_sim: Path, tmp_path: Path) -> None:
    cli("sim", "figure", "fig12", "--quick", "--seeds", "1", "--protocols", "homa,phost",
        "--out", str(tmp_path))  # fmt: skip
    assert (tmp_path / "fig12-knees.png").stat().st_size > 1000
    found = json.loads((tmp_path / "fig12.json").read_text())["values"]["limits"]
    assert found["homa.w3"]["total"] == 85 and found["phost.w1"]["total"] == 70


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

    for ours, holds in ((87.0, True), (86.9, False), (93.0, True), (93.1, False)):
        assert met(compare.about("x", 90, Stat(ours, None, 1), 3)) is holds
    for ours, holds in ((15.0, True), (15.1, False), (6.7, True), (6.6, False)):
        assert met(compare.like("x", 10, Stat(ours, None, 1))) is holds
    for ours, holds in ((1.5, False), (1.6, True), (2.8, True), (2.9, False)):
        assert met(compare.between("x", 1.6, 2.8, Stat(ours, None, 1))) is holds
    assert compare.between("x", 1.6, 2.8, None).published == pytest.approx(2.2)
    assert compare.between("x", 1.6, 2.8, None, published=1.7).published == 1.7
    assert met(compare.at_most("x", 10, Stat(15.0, None, 1), factor=1.5)) is True
    assert met(compare.at_most("x", None, Stat(15.0, None, 1), goal=14)) is False
    assert met(compare.at_least("x", 20, None)) is False
    assert met(compare.at_least("x", 31, Stat(20.0, None, 1), goal=19)) is True
    assert met(compare.info("x", 1, None)) is None
    with pytest.raises(ValueError):
        compare.at_most("x", None, None)
    row = compare.about("x", 90, Stat(91.25, 0.5, 3), 3)
    assert row.cells() == ["x, %", "90", "91.2 ± 0.5", "", "+1.2", "± 3", "met"]
    assert "| x, % | 90 |" in compare.as_markdown([row])


def test_atc__ratios_have_an_upper_end(cli, fake_sim: Path, tmp_path: Path) -> None:
    """A TCP that is far slower than the paper's is as wrong as one that is too fast."""
    assert atc.outside({"tcp.w2": 40, "tcp.w3": 19, "dctcp.w4": 83}) == 1
    assert atc.outside({"tcp.w2": 40, "tcp.w5": 144}) == 2
    assert atc.outside({"tcp.w2": 40, "dctcp.w5": 3.5}) == 2
    assert atc.outside({}) is None
    cli("sim", "figure", "atc3", "--quick", "--seeds", "1", "--out", str(tmp_path))
    document = json.loads((tmp_path / "atc3.json").read_text())
    rules = {row["what"]: row["rule"] for row in document["rows"] if row["rule"]}
    assert len(rules) == 8 and rules["W5, short messages, P99 of TCP to Homa"] == "19 … 72"
    assert rules["W2, short messages, P99 of DCTCP to Homa"] == "7 … 83"
    paper = {row["what"]: row["published"] for row in document["rows"]}
    assert paper["W5, short messages, P99 of TCP to Homa"] == pytest.approx(31.4, abs=0.1)


def test_ndp__waste_is_told_off_the_published_one(cli, fake_sim: Path, tmp_path: Path) -> None:
    cli("sim", "figure", "fig10", "--quick", "--seeds", "1", "--protocols", "homa,ndp",
        "--out", str(tmp_path))  # fmt: skip
    values = json.loads((tmp_path / "fig10.json").read_text())["values"]
    assert values["ndp_waste_percent"] == pytest.approx(5)
    assert values["ndp_waste_off_points"] == pytest.approx(22)


def test_compare__too_few_messages_are_not_judged() -> None:
    """The number is said, the percentile is not, and nothing is met or missed by it."""
    for rule in (compare.at_most, compare.at_least, compare.like):
        row = rule("x", 2.2, tails.Few(8))
        assert row.met is None and row.cells()[1:5] == ["2.2", "–", "8", "–"]
    row = compare.at_most("x", 2.2, Stat(2.0, None, 3, 12345))
    assert row.met is True and row.cells()[3] == "12,345"
    assert row.as_json()["ours"] == {"mean": 2.0, "ci95": None, "runs": 3, "n": 12345}
    assert compare.info("x", 1, tails.Few(8)).as_json()["ours"] == {"mean": None, "n": 8}


def _shape(values: dict[int, int]) -> dict:
    return {
        "values": list(values), "counts": list(values.values()), "count": sum(values.values()),
        "sum": sum(v * c for v, c in values.items()), "min": min(values), "max": max(values),
    }  # fmt: skip


def _bin(at: int, values: dict[int, int]) -> dict:
    edges = {
        "from": at / 50,
        "to": (at + 1) / 50,
        "min_bytes": 10 * at + 1,
        "max_bytes": 10 * at + 9,
    }
    return {**edges, "count": sum(values.values()), "histogram": _shape(values)}


def _run_of(*bins: dict) -> dict:
    return {"sim": {"bins": list(bins)}}


def test_tail__of_all_seeds_together() -> None:
    """1 % of all messages are slow, but all of them in one seed: the seeds' mean would be wrong."""
    runs = [_run_of(_bin(0, {1000: 980, 9000: 20})), _run_of(_bin(0, {1000: 1000}))]
    found = tails.tail(tails.bins(runs, 0.2), 99)
    assert found and found.samples == 2000 and found.mean == 1
    assert found.half == pytest.approx(12.706 * 4, rel=0.01)
    found = tails.tail(tails.bins(runs, 0.2), 99.5)
    assert found and found.mean == pytest.approx(9, rel=0.001)


def test_tail__none_of_fewer_than_a_thousand() -> None:
    enough = tails.tail(tails.bins([_run_of(_bin(0, {1000: 1000}))], 0.2), 99)
    assert isinstance(enough, Stat) and enough.samples == 1000
    assert tails.tail(tails.bins([_run_of(_bin(0, {1000: 999}))], 0.2), 99) == tails.Few(999)
    assert tails.tail(tails.bins([_run_of()], 0.2), 99) is None
    ratio = tails.ratio(enough, tails.Few(7))
    assert ratio == tails.Few(7) and tails.ratio(enough, None) is None


def test_tail__short_is_the_smallest_fifth() -> None:
    """Nothing of the eleventh fiftieth counts."""
    run = _run_of(_bin(9, {1000: 1000}), _bin(10, {50000: 5000}))
    value = slowdown.short_p99([run], "w4")
    assert isinstance(value, Stat) and value.mean == 1 and value.samples == 1000
    half = slowdown.half_p99([run])
    assert isinstance(half, Stat) and half.mean > 49
    one = {"sim": {"single_packet": {"histogram": _shape({3000: 8})}}}
    assert slowdown.short_p99([one], "w5") == tails.Few(8)


def test_bins__neighbours_are_joined_until_there_are_enough() -> None:
    runs = [_run_of(*(_bin(n, {1000 * (n + 1): 400}) for n in range(8)))]
    bins = bins_of(runs)
    assert [(b["count"], round(b["from"] * 50), round(b["to"] * 50)) for b in bins] == [
        (1200, 0, 3), (2000, 3, 8),
    ]  # fmt: skip
    assert bins[0]["p99"].mean == pytest.approx(3, rel=0.001)
    assert (bins[1]["min_bytes"], bins[1]["max_bytes"]) == (31, 79)
    mean = average(bins)
    assert mean and mean.mean == pytest.approx(24**0.5, rel=0.001)
    assert bins_of([_run_of(_bin(0, {1000: 900}))]) == []


def test_figure__few_messages_give_no_percentile(
    cli, fake_sim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MESSAGES", "20")
    cli("sim", "figure", "fig10", "--quick", "--seeds", "1", "--protocols", "homa",
        "--out", str(tmp_path))  # fmt: skip
    rows = json.loads((tmp_path / "fig10.json").read_text())["rows"]
    short = [row for row in rows if "P99" in row["what"]]
    assert len(short) > 5 and all(r["ours"]["mean"] is None and r["met"] is None for r in short)
    assert {r["ours"]["n"] for r in short} >= {20, 200}


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
