# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What `./homa reproduce --save` keeps in the repository, item by item, and what it refuses."""

import json
import re
from pathlib import Path

import pytest

from lab import provenance
from lab.errors import UsageError
from lab.reproduce import results, saving
from lab.reproduce.items import ITEMS
from lab.sim.figures.base import Options

QUICK = Options(quick=True, seeds=1)


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands in for docs/results/reproduce-quick."""
    monkeypatch.setattr(saving, "FOLDER", tmp_path / "docs")
    return tmp_path / "docs" / "reproduce-quick"


def at(monkeypatch: pytest.MonkeyPatch, commit: str) -> None:
    """As if `commit` were checked out."""
    monkeypatch.setattr(provenance, "commit", lambda: commit)


def make(cli, tmp_path: Path, *more: str) -> tuple[int, str, str]:
    out = tmp_path / "made"
    return cli("reproduce", "--quick", "--seeds", "1", "--out", str(out), *more)


def test_save__keeps_page_figures_and_numbers_and_no_runs(
    cli, fake_sim: Path, tmp_path: Path, docs: Path
) -> None:
    docs.mkdir(parents=True)
    (docs / "old.svg").write_text("of a figure that is no more")
    status, out, err = make(cli, tmp_path, "--save", "table1")
    assert status == 0 and "kept table1 in" in out, err
    names = sorted(file.name for file in docs.iterdir())
    assert names == ["README.md", "table1.csv", "table1.json", "table1.svg"]
    text = (docs / "README.md").read_text()
    assert "](table1.svg)" in text and f"1 of {len(ITEMS)} items measured" in text
    rows = {i.name: row for i in ITEMS for row in text.splitlines() if f"(`{i.name}`)" in row}
    assert "| done |" in rows["table1"] and "| not measured |" in rows["fig14"]


def test_save__beside_what_is_there_each_with_its_own_origin(
    cli, fake_sim: Path, tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, "aaaaaaaaaaaa")
    make(cli, tmp_path, "--save", "table1")
    first = (docs / "table1.json").read_bytes()
    at(monkeypatch, "bbbbbbbbbbbb-dirty")
    # Another seed: table1 would be made anew, and is not asked for.
    status, _, err = cli(
        "reproduce", "--quick", "--seeds", "2", "--out", str(tmp_path / "other"), "--save", "fig14"
    )
    assert status == 0, err
    assert (docs / "table1.json").read_bytes() == first
    said = {name: json.loads((docs / f"{name}.json").read_text()) for name in ("table1", "fig14")}
    assert (said["table1"]["origin"]["commit"], said["table1"]["origin"]["clean"]) == (
        "a" * 12,
        True,
    )
    assert (said["fig14"]["origin"]["commit"], said["fig14"]["origin"]["clean"]) == (
        "b" * 12,
        False,
    )
    assert said["table1"]["origin"]["seeds"] == [1] and said["fig14"]["origin"]["seeds"] == [1, 2]
    text = (docs / "README.md").read_text()
    assert "Measured at commit aaaaaaaaaaaa, " in " ".join(text.split())
    assert "Measured at commit bbbbbbbbbbbb with changes that are in no commit, " in " ".join(
        text.split()
    )
    assert f"2 of {len(ITEMS)} items measured" in text


def test_save__without_names_all_that_is_there(
    cli, fake_sim: Path, tmp_path: Path, docs: Path
) -> None:
    for name in ("table1", "fig14"):
        make(cli, tmp_path, name)
    folder, kept = saving.keep(tmp_path / "made", QUICK, [])
    assert folder == docs and kept == ["fig14", "table1"]


def test_save__replaces_an_item_with_all_its_files(
    cli, fake_sim: Path, tmp_path: Path, docs: Path
) -> None:
    make(cli, tmp_path, "--save", "table1")
    document = json.loads((docs / "table1.json").read_text())
    document["pictures"] = ["table1.svg", "gone.svg"]
    (docs / "table1.json").write_text(json.dumps(document))
    (docs / "gone.svg").write_text("of the item as it was")
    saving.keep(tmp_path / "made", QUICK, ["table1"])
    assert not (docs / "gone.svg").exists() and (docs / "table1.svg").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema": "homa-reproduce/0"}, "its schema is homa-reproduce/0"),
        ({"schema": None}, "its schema is none"),
        ({"rule": "another"}, "its rule is 'another'"),
        ({"quick": False}, "its runs are full ones"),
        ({"origin": None}, "it has no 'origin'"),
    ],
)
def test_save__refuses_what_is_of_another_definition(
    cli, fake_sim: Path, tmp_path: Path, docs: Path, change: dict, says: str
) -> None:
    """One that stays, and one that is copied; nothing changes then. One that is replaced may be."""
    make(cli, tmp_path, "--save", "table1")
    make(cli, tmp_path, "fig14")
    document = {**json.loads((docs / "table1.json").read_text()), **change}
    other = json.dumps({name: value for name, value in document.items() if value is not None})
    (docs / "table1.json").write_text(other)
    before = {file.name: file.read_bytes() for file in docs.iterdir()}
    status, _, err = make(cli, tmp_path, "--save", "fig14")
    assert status == 2 and says in err and str(docs / "table1.json") in err, err
    assert {file.name: file.read_bytes() for file in docs.iterdir()} == before
    saving.keep(tmp_path / "made", QUICK, ["table1"])
    (tmp_path / "made" / "fig14.json").write_text(other.replace("table1", "fig14"))
    with pytest.raises(UsageError, match="of another definition"):
        saving.keep(tmp_path / "made", QUICK, ["fig14"])


def test_reproduce__makes_again_what_is_of_another_definition(
    cli, fake_sim: Path, tmp_path: Path
) -> None:
    make(cli, tmp_path, "table1")
    file = tmp_path / "made" / "table1.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "rule": "another"}))
    _, out, _ = make(cli, tmp_path, "fig14")
    assert 'id="table1"' not in (tmp_path / "made" / "index.html").read_text()
    status, out, _ = make(cli, tmp_path, "table1")
    assert status == 0 and "table1 (1 of 1)" in out
    assert json.loads(file.read_text())["rule"] == "1"


def test_page__of_what_the_repository_keeps(
    cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command, no run, and no simulator."""
    monkeypatch.setenv("HOMA_SIM", "/nowhere/homa-sim")
    status, out, err = cli("reproduce", "--page", "--out", str(tmp_path))
    assert status == 0, err
    for length in ("quick", "night"):
        file = tmp_path / f"kept-{length}.html"
        assert f"wrote {file}" in out
        text, kept = file.read_text(), saving.FOLDER / f"reproduce-{length}"
        documents = [json.loads(path.read_text()) for path in kept.glob("*.json")]
        assert text.count("<section id=") == len(documents) > 10
        pictures = sum(len(document["pictures"]) for document in documents)
        assert text.count("data:image/svg+xml;base64,") == pictures
        assert not re.search(r'(?:src|href)="(?!data:|#)', text) and "<script" not in text
        met = sum(document["met"] for document in documents)
        assert f"of their comparisons {met} are met" in text
        assert text.count("Measured at commit") == len(documents)
    assert len(list(tmp_path.iterdir())) == 2


def test_page__of_nothing(cli, tmp_path: Path, docs: Path) -> None:
    status, _, err = cli("reproduce", "--page", "--out", str(tmp_path / "made"))
    assert status == 1 and f"no results in {docs}" in err
    assert not (tmp_path / "made" / "kept-quick.html").exists()


def test_page__of_one_length(cli, tmp_path: Path) -> None:
    status, _, err = cli("reproduce", "--page", "--night", "--out", str(tmp_path))
    assert status == 0, err
    assert [file.name for file in tmp_path.iterdir()] == ["kept-night.html"]


@pytest.mark.parametrize("more", [["fig14"], ["--save"], ["--seeds", "2"], ["--list"], ["--lab"]])
def test_page__makes_nothing(cli, tmp_path: Path, more: list[str]) -> None:
    status, _, err = cli("reproduce", "--page", "--out", str(tmp_path), *more)
    assert status == 2 and "--page makes nothing" in err and not list(tmp_path.iterdir())


def test_save__says_that_there_is_nothing(tmp_path: Path, docs: Path) -> None:
    for names, says in (([], "no results in"), (["table1"], "no results of table1 in")):
        with pytest.raises(UsageError, match=says):
            saving.keep(tmp_path, QUICK, names)
    assert not docs.parent.exists()


def test_save__keeps_what_was_made_although_another_failed(
    cli, fake_sim: Path, tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAIL", "--workload w5")
    status, out, err = make(cli, tmp_path, "--save", "table1", "fig14")
    assert status == 1 and "table1" in err and "kept fig14 in" in out
    assert not (docs / "table1.json").exists()


def limits(row: dict) -> tuple[float, float]:
    """Between which numbers ours is met, as the row's rule says it, which has three digits."""
    rule = row["rule"]
    numbers = [float(text) for text in re.findall(r"[\d.]+(?:e[+-]\d+)?", rule)]
    if "…" in rule:
        return numbers[0], numbers[1]
    if rule.startswith("±"):
        middle = row["published"] or 0
        return middle - numbers[0], middle + numbers[0]
    return (numbers[0], float("inf")) if rule.startswith("≥") else (float("-inf"), numbers[0])


def test_repository__verdicts_are_those_of_the_numbers() -> None:
    """Also where a rule was changed and verdicts were written again by hand."""
    judged = 0
    for file in saving.FOLDER.glob("reproduce-*/*.json"):
        document = json.loads(file.read_text())
        for row in document["rows"]:
            mean = (row["ours"] or {}).get("mean")
            if not row["rule"] or mean is None:
                continue
            low, high = limits(row)
            if min(abs(mean - low), abs(mean - high)) > 0.005 * max(1, abs(mean)):
                assert row["met"] is (low <= mean <= high), (file.name, row)
                judged += 1
        verdicts = [row["met"] for row in document["rows"]]
        counted = (document["met"], document["missed"])
        assert counted == (verdicts.count(True), verdicts.count(False)), file
    assert judged > 200


def test_repository__what_is_kept_may_stand_together() -> None:
    """Every file in docs/results is of this lab's definitions, and the page is that of the files."""
    for folder in saving.FOLDER.glob("reproduce-*"):
        options = Options(quick=folder.name == "reproduce-quick")
        found = {
            item.name: document
            for item in ITEMS
            if item.made
            and (document := results.own(folder / f"{item.name}.json", item, options.quick))
        }
        assert found, folder
        assert (folder / "README.md").read_text() == saving.page(found, options), folder
