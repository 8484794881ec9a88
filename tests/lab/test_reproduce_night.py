# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Full runs in several sittings: the simulator that a folder keeps, and items made in part."""

import json
import os
import shutil
from pathlib import Path

import pytest

from lab import provenance
from lab.errors import LabError
from lab.reproduce import saving, simulator
from lab.sim import program
from lab.sim.figures import limits
from lab.sim.figures.base import Options
from lab.sim.pool import Lab, Local
from lab.sim.store import Store


def reproduce(cli, out: Path, *more: str) -> tuple[int, str, str]:
    return cli("reproduce", "--quick", "--seeds", "3", "--out", str(out), *more)


@pytest.fixture
def other(fake_sim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Has another build of the simulator stand where the first one stood."""

    def change() -> None:
        text = Path(os.environ["HOMA_SIM"]).read_text()
        path = tmp_path / "another-homa-sim"
        path.write_text(text + "# another build\n")
        path.chmod(0o755)
        monkeypatch.setenv("HOMA_SIM", str(path))
        program.catalogue.cache_clear()

    return change


def test_keep_simulator__goes_on_with_the_one_that_the_folder_has(
    cli, fake_sim: Path, other, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "made"
    original = os.environ["HOMA_SIM"]
    monkeypatch.setattr(provenance, "commit", lambda: "a" * 12)
    status, _, err = reproduce(cli, out, "--keep-simulator", "fig14")
    assert status == 0, err
    made = len(fake_sim.read_text().splitlines())
    monkeypatch.setenv("HOMA_SIM", original)
    other()
    monkeypatch.setattr(provenance, "commit", lambda: "b" * 12)
    # W3 at 80 % is there already, although this tree has another simulator by now.
    status, _, err = reproduce(cli, out, "--keep-simulator", "table1")
    assert status == 0, err
    assert len(fake_sim.read_text().splitlines()) == made + 12
    said = json.loads((out / "table1.json").read_text())["origin"]
    assert (said["commit"], said["simulator"]["commit"]) == ("b" * 12, "a" * 12)
    text = " ".join((out / "results.md").read_text().split())
    assert "The simulator is that of commit aaaaaaaaaaaa." in text
    # Without it, this tree's simulator makes everything anew.
    other()
    reproduce(cli, out, "table1")
    assert len(fake_sim.read_text().splitlines()) == made + 12 + 15
    assert (
        json.loads((out / "table1.json").read_text())["origin"]["simulator"]["commit"] == "b" * 12
    )


def test_keep_simulator__one_that_was_changed_is_refused(
    fake_sim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMA_SIM", os.environ["HOMA_SIM"])
    source = Path(os.environ["HOMA_SIM"])
    assert simulator.use(tmp_path, lambda: source)["build"] == program.build()
    kept = tmp_path / "simulator" / "homa-sim"
    shutil.copy(kept, tmp_path / "x")
    kept.write_text((tmp_path / "x").read_text() + "# changed\n")
    with pytest.raises(LabError, match="is not about"):
        simulator.use(tmp_path, lambda: source)


def test_finished__fig12_says_what_is_not_measured_yet(
    cli, fake_sim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "FOLDER", tmp_path / "docs")
    out = tmp_path / "made"
    reproduce(cli, out, "fig12")
    made = len(fake_sim.read_text().splitlines())
    for file in out.glob("runs/*.json"):
        if json.loads(file.read_text())["run"]["workload"] != "w4":
            file.unlink()
    (out / "fig12.json").unlink()
    status, said, err = reproduce(cli, out, "--finished", "--save", "fig12")
    assert status == 0 and "kept fig12" in said, err
    assert len(fake_sim.read_text().splitlines()) == made
    document = json.loads((out / "fig12.json").read_text())
    assert document["complete"] is False
    rows = {row["what"]: row for row in document["rows"]}
    assert rows["Homa W4, total"]["ours"]["mean"] == 85 and rows["Homa W4, total"]["rule"]
    missing = rows["Homa W3, total (not measured yet)"]
    assert missing["ours"] is None and missing["met"] is None and not missing["rule"]
    text = (tmp_path / "docs" / "reproduce-quick" / "README.md").read_text()
    # Where its lines break depends on the commit, the day and the load.
    text = " ".join(text.split())
    assert "| in part |" in text and "Not all of it is measured yet." in text
    # It is gone on with, and whole in the end.
    reproduce(cli, out, "fig12")
    assert json.loads((out / "fig12.json").read_text())["complete"] is True


def test_finished__fig12_leaves_out_protocols_of_which_nothing_is_measured(
    fake_sim: Path, tmp_path: Path
) -> None:
    lab = Lab(Store(tmp_path, program.build()), Local(2))
    wanted = Options(quick=True, seeds=3, protocols=("homa", "ndp"))
    limits.fig12(lab, wanted)
    for file in tmp_path.glob("*.json"):
        if json.loads(file.read_text())["run"]["protocol"] == "ndp":
            file.unlink()
    lab.only_finished = True
    output = limits.fig12(lab, wanted)
    assert {row.what.split()[0] for row in output.rows} == {"Homa"}
    assert {record[1] for record in output.records} == {"homa"}
    assert "Not measured yet and left out: NDP." in output.notes
    (tmp_path / "drawn").mkdir()
    assert all(f.stat().st_size > 1000 for f in output.paint(tmp_path / "drawn" / "fig12"))


def test_finished__fig13_has_the_levels_that_are_there(cli, fake_sim: Path, tmp_path: Path) -> None:
    out = tmp_path / "made"
    reproduce(cli, out, "fig13")
    for file in out.glob("runs/*.json"):
        if json.loads(file.read_text())["run"].get("set", {}).get("scheduled-levels") == "2":
            file.unlink()
    (out / "fig13.json").unlink()
    status, _, err = reproduce(cli, out, "--finished", "fig13")
    assert status == 0, err
    document = json.loads((out / "fig13.json").read_text())
    assert {row["scheduled_levels"] for row in document["data"]} == {1, 4, 7}
    assert document["complete"] is False


def test_finished__what_cannot_be_made_in_part(cli, fake_sim: Path, tmp_path: Path) -> None:
    for name, says in (("fig14", "cannot be made in part"), ("fig12", "none of its runs")):
        status, out, err = reproduce(cli, tmp_path, "--finished", name)
        assert status == 1 and says in out and "could not be made" in err
    assert not fake_sim.read_text()


def test_guesses__are_the_quick_runs_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "FOLDER", tmp_path)
    assert saving.limits() == {}
    verdicts = {
        "homa.w1": {0.4: "sustained", 0.7: "sustained", 0.8: "undecided", 0.9: "not sustained"},
        "homa.w2": {0.4: "sustained", 0.7: "not sustained", 0.8: "sustained"},
        "homa.w3": {0.4: "not sustained"},
    }
    probes = [
        {"case": case, "load": load, "verdict": verdict}
        for case, found in verdicts.items()
        for load, verdict in found.items()
    ]
    (tmp_path / "reproduce-quick").mkdir()
    file = tmp_path / "reproduce-quick" / "fig12.json"
    file.write_text(json.dumps({"values": {"probes": probes}}))
    assert saving.limits() == {"homa.w1": 0.7, "homa.w2": 0.4}
