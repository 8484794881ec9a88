# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa reproduce` of real packets: runs of the lab become items, if they count; without packets."""

import json
import os
from dataclasses import replace
from pathlib import Path

import lab_runs
import pytest
from conftest import needs_bench

from lab import machine
from lab.cluster import experiments, points, setup, stored_runs
from lab.errors import LabError
from lab.reproduce import chosen, saving
from lab.reproduce.items import ITEMS
from lab.reproduce.real import experiment, tas
from lab.reproduce.real.catalogue import EXPERIMENTS
from lab.sim.published import published
from lab.sim.stats import Stat
from lab.sim.tails import Few

REAL = [item.name for item in ITEMS if item.lab]
MEASURED = [name for name in REAL if name != "tas-hosts"]  # by ./homa lab run
SNIA = ["snia-matrix", "snia-slowdown", "snia-rtt"]


@pytest.fixture
def runs(fake_sim: Path, monkeypatch: pytest.MonkeyPatch) -> lab_runs.Lab:
    """Root, programs, and a lab that measures nothing."""
    found = lab_runs.Lab()
    monkeypatch.setattr(experiments, "find", found.find)
    monkeypatch.setattr(stored_runs, "build", lambda: "programs")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(tas, "quiet", lambda when: None)
    monkeypatch.setattr(tas.tas, "start", machine.describe)
    monkeypatch.setattr(tas.tas, "measure", lab_runs.series)
    return found


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are made and not drawn, which takes most of the time."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda self, path, **_: Path(path).write_text("<svg/>"))


def reproduce(cli, out: Path, *more: str) -> tuple[int, str, str]:
    return cli("reproduce", "--quick", "--out", str(out), *more)


def rows_of(out: Path, name: str) -> dict[str, dict]:
    return {row["what"]: row for row in json.loads((out / f"{name}.json").read_text())["rows"]}


def test_items__each_experiment_makes_those_that_name_it() -> None:
    assert set(EXPERIMENTS) == {item.lab for item in ITEMS if item.lab}
    lab = [one for one in EXPERIMENTS.values() if isinstance(one, experiment.Experiment)]
    assert {one.run or one.name for one in lab} == set(experiments.NAMES)
    assert [item.name for item in ITEMS if item.lab == "coexist"] == SNIA
    assert not any(item.figure and item.lab for item in ITEMS)


@pytest.mark.parametrize("length", ["--quick", "--night"])
@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "tas"])
def test_item__from_runs_to_both_pages(
    cli, runs: lab_runs.Lab, tmp_path: Path, name: str, length: str
) -> None:
    """Rows, numbers, origin and figure of all experiments, as the page and --save need them."""
    made = [item for item in ITEMS if item.lab == name]
    status, _, err = cli("reproduce", length, "--out", str(tmp_path), made[0].name)
    assert status == 0, err
    seeds = list(range(1, len({setup.seed for _, setup, _ in runs.asked}) + 1))
    seeds = [1, 2, 3] if name == "sustained" else seeds
    for item in made:
        document = json.loads((tmp_path / f"{item.name}.json").read_text())
        assert document["schema"] == "homa-reproduce/1" and document["complete"] is True
        origin = document["origin"]
        assert origin["command"] == f"sudo ./homa reproduce {length} {item.name}"
        assert origin["seeds"] == document["seed_list"] == seeds
        assert ("t over seeds" in origin["interval"]) == (len(seeds) > 1)
        assert origin["machine"]["kernel"] and origin["machine"]["cores"] and "commit" in origin
        assert document["reproduce"]["build"] == "programs"
        assert (
            document["rows"] and document["data"] and document["pictures"] == [f"{item.name}.svg"]
        )
        assert (tmp_path / f"{item.name}.csv").read_text().count("\n") == len(document["data"]) + 1
        assert any("47%" in note for note in document["notes"])
        text = (tmp_path / "index.html").read_text()
        assert f'id="{item.name}"' in text and "data:image/svg+xml;base64," in text
        assert f"<code>sudo ./homa reproduce {length} {item.name}</code>" in text
        markdown = (tmp_path / "results.md").read_text()
        assert f"]({item.name}.svg)" in markdown
        for row in document["rows"]:
            # A number that is a percentile says how many messages stand behind it.
            ours = row["ours"]
            assert ours and row["what"] in markdown
            if "P50" in row["what"] or "P99" in row["what"]:
                assert ours["n"] >= 1000, row
    asked = runs.asked[0][2]
    assert asked.keep == tmp_path / "lab-runs" / name and asked.quick == (length == "--quick")


@pytest.mark.usefixtures("undrawn")
def test_fig3__is_judged_by_what_is_published_and_by_each_tenth(
    cli, runs: lab_runs.Lab, tmp_path: Path
) -> None:
    reproduce(cli, tmp_path, "lab-fig3")
    rows = rows_of(tmp_path, "lab-fig3")
    short = rows["W3, TCP stream to Homa: short messages, P99"]
    assert short["published"] == pytest.approx(51.7, abs=0.1)
    assert short["rule"] == "≥ 38.8" and short["ours"]["mean"] == pytest.approx(40)
    assert short["met"] is True and short["ours"]["n"] == lab_runs.MANY
    # The longest tenth, where TCP is only twice as slow, decides.
    tenth = rows["W3, Homa to TCP stream: P99 of the tenth that is worst"]
    assert tenth["ours"]["mean"] == pytest.approx(0.5) and tenth["rule"] == "≤ 1"
    off = rows["W4, Homa, the tenth that differs most: simulated P50 off the real one by"]
    assert off["ours"]["mean"] == pytest.approx(10) and off["rule"] == "± 15" and off["met"]
    other = rows["W4, TCP stream, the tenth that differs most: simulated P99 off the real one by"]
    assert not other["rule"] and other["met"] is None
    most = "W4, TCP stream: slower than 200 ms, of the tenth with most"
    assert rows[most]["ours"]["mean"] == pytest.approx(0.9)
    assert rows[f"{most}, simulated"]["ours"]["mean"] == pytest.approx(1.8)
    assert "W4, Homa: slower than 200 ms, of the tenth with most" not in rows
    (record,) = [
        one
        for one in json.loads((tmp_path / "lab-fig3.json").read_text())["data"]
        if (one["workload"], one["transport"], one["tenth"]) == ("w4", "tcp", 10)
    ]
    assert (record["slow_share"], record["slow_share_sim"]) == pytest.approx((0.009, 0.018))
    text = " ".join((tmp_path / "results.md").read_text().split())
    assert "Not measured with short runs" not in text
    tenths = "0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9 % (simulated 0, 0.2, 0.4"
    assert tenths in text
    assert "Seeds 1; intervals need more than one seed." in text


@pytest.mark.usefixtures("undrawn")
def test_small__is_homa_alone_with_ports_of_eight_mtus(
    cli, runs: lab_runs.Lab, tmp_path: Path
) -> None:
    reproduce(cli, tmp_path, "lab-small")
    ((name, setup, wanted),) = runs.asked
    assert (name, setup.buffer, wanted.transports) == ("fig3", 8 * setup.mtu, "homa")
    rows = rows_of(tmp_path, "lab-small")
    judged = [what for what, row in rows.items() if row["rule"]]
    # P50 and P99 of four workloads.
    assert len(judged) == 8 and all("simulated P" in what for what in judged)
    assert rows["W4, packets that ports drop, of a thousand RPCs"]["ours"]["mean"] == 0.25


def test_tas__rounds_goals_and_what_is_published(
    cli, runs: lab_runs.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tas.shutil, "which", lambda name: f"/usr/bin/{name}")
    status, _, err = reproduce(cli, tmp_path, "tas-hosts")
    assert status == 0, err
    document = json.loads((tmp_path / "tas-hosts.json").read_text())
    assert document["origin"]["seeds"] == [1, 2]
    assert "Rounds 1, 2; intervals 95 %, Student's t over rounds." in " ".join(
        (tmp_path / "results.md").read_text().split()
    )
    rows = {row["what"].split(":")[0]: row for row in document["rows"] if row["rule"]}
    assert set(rows) == {target.name for target in tas._targets()} and len(rows) > 15
    fewest = rows["tas-echo"]
    assert fewest["ours"] == {"mean": 2.0, "ci95": 0.0, "runs": 2} and fewest["met"] is True
    assert all(row["ours"] for row in rows.values())
    assert rows["tas-interop-jain"]["ours"]["mean"] == 0.99
    late = next(row for row in rows.values() if "P99" in row["what"])
    assert late["rule"] == "≤ 0.6" and late["ours"]["n"] == lab_runs.MANY and late["met"] is True
    peak = rows["tas-16k-to-peak"]
    assert peak["published"] == 0.93 and peak["rule"] == "≥ 0.9"
    info = {row["what"]: row for row in document["rows"] if not row["rule"]}
    many = info["connections: 1,024, homad at both ends, to the kernel's TCP"]
    assert many["published"] == 5.1 and many["ours"]["mean"] == 2
    # All that is published stands on the page, once.
    known = [row["published"] for row in document["rows"] if row["published"] is not None]
    assert len(known) == len(published()["tas"]["values"])
    assert (tmp_path / "tas-hosts.svg").stat().st_size > 10_000


@pytest.mark.usefixtures("undrawn")
def test_tas__few_requests_and_what_does_not_count(
    cli, runs: lab_runs.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab_runs, "MANY", 900)
    monkeypatch.setattr(tas.shutil, "which", lambda name: None)
    reproduce(cli, tmp_path, "tas-hosts")
    rows = json.loads((tmp_path / "tas-hosts.json").read_text())["rows"]
    late = next(row for row in rows if "P99" in row["what"])
    assert late["ours"] == {"mean": None, "n": 900} and late["met"] is None
    assert not any("redis" in row["what"] for row in rows)

    def failing(*more: object) -> list:
        found = lab_runs.series(*more)  # type: ignore[arg-type]
        found[0].problem = "round 1: 3 wrong answers"
        return found

    monkeypatch.setattr(tas.tas, "measure", failing)
    assert reproduce(cli, tmp_path, "--seeds", "1", "tas-hosts")[0] == 1
    said = (tmp_path / "tas-hosts.problem").read_text()
    assert "1 of 124 points failed" in said and "connections.1.kernel: round 1: 3 wrong" in said
    clock = iter([0.0, 0.0])
    monkeypatch.undo()
    with pytest.raises(LabError, match="it does not count: before it"):
        tas.quiet("before", lambda: next(clock), 0.01)
    idle = iter([0.0, 1e9])
    tas.quiet("after", lambda: next(idle), 0.01)


@pytest.mark.usefixtures("undrawn")
def test_fig3__with_several_seeds(cli, runs: lab_runs.Lab, tmp_path: Path) -> None:
    reproduce(cli, tmp_path, "--seeds", "3", "lab-fig3")
    assert [setup.seed for _, setup, _ in runs.asked] == [1, 2, 3]
    row = rows_of(tmp_path, "lab-fig3")["W4, Homa: short messages, P99 slowdown"]
    # 0.9 * 200 µs over 20 µs, and 2 % more with each seed.
    assert row["ours"]["mean"] == pytest.approx(9 * 1.02) and row["ours"]["runs"] == 3
    assert row["ours"]["n"] == 3 * lab_runs.MANY and row["ours"]["ci95"] > 0
    document = json.loads((tmp_path / "lab-fig3.json").read_text())
    assert {record["seed"] for record in document["data"]} == {1, 2, 3}


@pytest.mark.usefixtures("undrawn")
def test_other_items__goals(cli, runs: lab_runs.Lab, tmp_path: Path) -> None:
    status, _, err = reproduce(cli, tmp_path, *MEASURED)
    assert status == 0, err
    five = rows_of(tmp_path, "lab-fig5")["W5, Homa, 2 levels to 8: short messages, P99"]
    assert (five["rule"], five["ours"]["mean"], five["met"]) == ("≤ 1.5", 2, False)
    six = rows_of(tmp_path, "lab-fig6")
    homa = six["W4, Homa, three loads: short messages, P99, greatest to least"]
    assert homa["published"] == 2 and homa["met"] is True
    assert homa["ours"]["mean"] == pytest.approx(0.9 / 0.54)
    incast = rows_of(tmp_path, "lab-incast")
    lost = incast["Homa with incast control: packets that the client's port drops, all runs"]
    assert (lost["ours"]["mean"], lost["rule"], lost["met"]) == (0, "≤ 0", True)
    assert incast["40 to 1: P99 of TCP to Homa with incast control"]["ours"]["mean"] == 5
    (unjust,) = [row for row in rows_of(tmp_path, "lab-failures").values() if row["rule"]]
    assert unjust["ours"]["mean"] == 0 and unjust["met"] is True
    best = rows_of(tmp_path, "lab-sustained")["W4, Homa: highest load that is sustained, of 80, 88"]
    assert (best["ours"]["mean"], best["rule"], best["met"]) == (88, "≥ 88", True)
    beyond = "beside 40 % of streams: streams lose beyond what they must"
    matrix = rows_of(tmp_path, "snia-matrix")
    assert matrix[f"W4 30 %, Homa, 8 priorities, {beyond}"]["met"] is True
    shared = matrix[f"W4 30 %, Homa and streams by homad, {beyond}"]
    assert shared["met"] is False and shared["ours"]["mean"] == pytest.approx(6)
    assert not matrix[f"W4 30 %, TCP RPCs, {beyond}"]["rule"]
    slow = rows_of(tmp_path, "snia-slowdown")
    noise = slow[
        "W4 30 %, Homa, 8 priorities, beside 40 % of streams: short P99 to that without streams"
    ]
    assert noise["rule"] == "≤ 2" and noise["ours"]["mean"] == pytest.approx(1.5) and noise["met"]
    trip = rows_of(tmp_path, "snia-rtt")[
        "W4 30 %, Homa, 1 priority, without streams: short messages, P99"
    ]
    assert trip["ours"]["mean"] == pytest.approx(0.2) and trip["unit"] == "ms"


@pytest.mark.usefixtures("undrawn")
def test_coexist__its_grid_is_run_once_for_three_items(
    cli, runs: lab_runs.Lab, tmp_path: Path
) -> None:
    status, out, err = reproduce(cli, tmp_path, "snia-rtt", "snia-matrix", "snia-slowdown")
    assert status == 0 and "snia-matrix, snia-slowdown, snia-rtt (1 of 1)" in out, err
    assert len(runs.asked) == 1
    # Whoever names one of them has them all.
    reproduce(cli, tmp_path / "other", "snia-rtt")
    assert all((tmp_path / "other" / f"{name}.json").exists() for name in SNIA)
    reproduce(cli, tmp_path / "other", "snia-matrix")
    assert len(runs.asked) == 2


@pytest.mark.usefixtures("undrawn")
def test_few_messages__are_not_judged(cli, runs: lab_runs.Lab, tmp_path: Path) -> None:
    runs.count = 999
    status, _, err = reproduce(cli, tmp_path, *MEASURED)
    assert status == 0, err
    for name in MEASURED:
        for what, row in rows_of(tmp_path, name).items():
            if "P50" in what or "P99" in what:
                assert row["ours"] == {"mean": None, "n": 999} and row["met"] is None, what
    assert "too few" in (tmp_path / "index.html").read_text()


@pytest.mark.usefixtures("undrawn")
def test_run_that_does_not_count__is_said_and_nothing_is_kept(
    cli, runs: lab_runs.Lab, tmp_path: Path
) -> None:
    doubt = "the processors were 83% busy, more than 60%"
    runs.doubt = lambda found: [replace(found[0], doubts=[doubt]), *found[1:]]
    status, out, err = reproduce(cli, tmp_path, "lab-incast", "snia-rtt", "fig14")
    assert status == 1 and "fig14" not in err
    for name in ("lab-incast", "snia-rtt"):
        assert name in err and not (tmp_path / f"{name}.json").exists()
        assert doubt in (tmp_path / f"{name}.problem").read_text()
    assert "1 of 9 runs do not count, the first: 1 to 1, Homa, incast control: the proc" in out
    text = (tmp_path / "index.html").read_text()
    assert text.count("It could not be made: 1 of") == 2 and "failed" in text
    # The same command tries again; what is measured then is a result, and nothing failed any more.
    runs.doubt = list
    status, _, err = reproduce(cli, tmp_path, "lab-incast", "snia-rtt")
    assert status == 0, err
    assert "It could not be made" not in (tmp_path / "index.html").read_text()
    # A result stays if it is made again and does not count then.
    runs.doubt = lambda found: [replace(found[0], doubts=[doubt]), *found[1:]]
    before = (tmp_path / "lab-incast.json").read_bytes()
    assert reproduce(cli, tmp_path, "--seeds", "2", "lab-incast")[0] == 1
    assert (tmp_path / "lab-incast.json").read_bytes() == before


@pytest.mark.usefixtures("undrawn")
def test_resumed__only_what_has_changed(
    cli, runs: lab_runs.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce(cli, tmp_path, "lab-fig6", "lab-sustained")
    made = len(runs.asked)
    reproduce(cli, tmp_path, "lab-fig6", "lab-sustained")
    assert len(runs.asked) == made == 2
    # sustained has three seeds, whatever is said.
    reproduce(cli, tmp_path, "--seeds", "2", "lab-fig6", "lab-sustained")
    assert [name for name, *_ in runs.asked[made:]] == ["fig6", "fig6"]
    monkeypatch.setattr(stored_runs, "build", lambda: "other programs")
    reproduce(cli, tmp_path, "lab-sustained")
    assert len(runs.asked) == made + 3
    _, out, _ = reproduce(cli, tmp_path, "--list")
    lines = {line.split()[0]: line for line in out.splitlines() if line.split()}
    assert "done" in lines["lab-sustained"] and "to do, as root" in lines["lab-incast"]


def test_choose__real_packets_come_last_and_only_if_wanted() -> None:
    simulated = [item.name for item in ITEMS if item.figure]

    def names(*what: str, lab: bool = False, night: bool = False, root: bool = True) -> list[str]:
        return [item.name for item in chosen.choose(what, lab, night, root)[0]]

    assert names() == names(root=False) == simulated
    assert names(lab=True) == names(night=True) == [*simulated, *REAL]
    assert names("lab-fig6", "atc6", "table1") == ["table1", "atc6", "lab-fig6"]
    assert chosen.choose([], False, True, False) == (chosen.choose([], False, False, True)[0], True)
    for more in ({"lab": True}, {"names": ["atc6", "lab-fig6"]}):
        with pytest.raises(LabError, match="as root, or without lab-fig"):
            chosen.choose(**{"names": [], "lab": False, "night": False, "root": False, **more})


@pytest.mark.usefixtures("undrawn")
def test_no_root__is_said_at_once(
    cli, runs: lab_runs.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for argv in (["lab-fig6"], ["--lab"]):
        status, _, err = reproduce(cli, tmp_path, *argv)
        assert status == 1 and "need root" in err and err.count("\n") == 1
    assert not runs.asked and not list(tmp_path.glob("*.json"))


@pytest.mark.usefixtures("undrawn")
def test_no_root__a_night_goes_on_without_and_the_page_says_why(
    cli, runs: lab_runs.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    few = [item for item in ITEMS if item.name in ("fig14", "lab-fig6", "lab-incast")]
    monkeypatch.setattr(chosen.items, "choose", lambda names: few)
    status, out, err = cli("reproduce", "--night", "--seeds", "1", "--out", str(tmp_path))
    assert status == 0, err
    assert out.count("items of them are left out") == 1 and "fig14 (1 of 1)" in out
    assert not runs.asked
    for page in ("index.html", "results.md"):
        text = (tmp_path / page).read_text()
        assert text.count(f"not measured: {chosen.NEED_ROOT}") == len(REAL)


@pytest.mark.usefixtures("undrawn")
def test_finished__has_no_real_packets(cli, runs: lab_runs.Lab, tmp_path: Path) -> None:
    status, out, _ = reproduce(cli, tmp_path, "--finished", "lab-fig6")
    assert status == 1 and "cannot be made in part" in out and not runs.asked


@pytest.mark.usefixtures("undrawn")
def test_save__keeps_them_beside_simulated_ones(
    cli, runs: lab_runs.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "FOLDER", tmp_path / "docs")
    out = tmp_path / "made"
    status, _, err = reproduce(cli, out, "--save", "fig14", "lab-fig6", "snia-rtt")
    assert status == 0, err
    docs = tmp_path / "docs" / "reproduce-quick"
    names = sorted(file.name for file in docs.iterdir())
    files = [f"{name}.{kind}" for name in ("fig14", "lab-fig6", "snia-rtt")
             for kind in ("csv", "json", "svg")]  # fmt: skip
    assert names == sorted(["README.md", *files])
    assert "](lab-fig6.svg)" in (docs / "README.md").read_text()


@needs_bench
@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", ["fig3", "fig5", "fig6", "small"])
def test_experiment__each_tenth_has_the_messages_that_a_verdict_needs(
    name: str, quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two cores, whose links are slowest; 300 s were not enough for a tenth of the load."""
    monkeypatch.setattr(setup, "cores", lambda: 2)
    one = EXPERIMENTS[name]
    assert isinstance(one, experiment.Experiment)
    hosts, _ = experiments.find(one.run or name, quick)
    figure = points.FIGURES[one.run or name]
    network = one.network(hosts, 1)
    for workload in figure.quick if quick else figure.workloads:
        some = points.points_of(one.run or name, (workload,), ("homa", "tcp"))
        rate, _ = network.rate(some)
        for point in some:
            rps = hosts * points.rate_of(point, rate)
            assert network.window_s(point, rate) * rps / 10 > 1100, point


def test_over_seeds__n_is_of_all_and_few_of_one_is_few() -> None:
    assert experiment.over_seeds([]) is None
    assert experiment.over_seeds([(2.0, 1000)]) == Stat(2.0, None, 1, 1000)
    both = experiment.over_seeds([(2.0, 1000), (4.0, 1200)])
    assert isinstance(both, Stat) and (both.mean, both.samples) == (3, 2200) and both.half
    assert experiment.over_seeds([(2.0, 1000), (None, 900)]) == Few(900)


def test_worst__of_tenths() -> None:
    some = [Stat(0.5, None, 1, 1100), Stat(-3.0, None, 1, 1200)]
    assert experiment.worst(some) == some[0] and experiment.worst(some, abs) == some[1]
    assert experiment.worst([*some, Few(30)]) == Few(30)
    # A tenth that nobody has is no reason to judge by the others.
    assert experiment.worst([*some, None]) is experiment.worst([None]) is None
