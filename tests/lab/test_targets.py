# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
import json
from pathlib import Path

import pytest
from conftest import ROOT

from lab.targets import goals as targets
from lab.errors import LabError, UsageError

ROW = {
    "name": '"one"',
    "command": '"prog {json}"',
    "path": '"a.b"',
    "goal": "2",
    "better": '"lower"',
    "why": '"because"',
}


def write(path: Path, *rows: dict[str, str]) -> Path:
    file = path / "targets.toml"
    file.write_text(
        "\n".join("[[target]]\n" + "\n".join(f"{k} = {v}" for k, v in row.items()) for row in rows)
    )
    return file


def test_load__the_projects_own_file() -> None:
    rows = targets.load_targets(ROOT / "bench" / "targets.toml")
    assert len(rows) >= 10
    assert {row.better for row in rows} == {"lower", "higher"}


def test_load__good(tmp_path: Path) -> None:
    (row,) = targets.load_targets(write(tmp_path, ROW))
    assert (row.name, row.goal, row.better) == ("one", 2.0, "lower")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"goal": '"fast"'}, "'goal' has the wrong type"),
        ({"goal": "true"}, "'goal' has the wrong type"),
        ({"better": '"smaller"'}, 'write "lower" or "higher"'),
        ({"command": '"prog"'}, "put {json} there"),
        ({"gaol": "1"}, "unknown key 'gaol'"),
        ({"why": None}, "'why' is missing"),
    ],
)
def test_load__names_what_is_wrong(tmp_path: Path, change: dict, says: str) -> None:
    row = {k: v for k, v in {**ROW, **change}.items() if v is not None}
    with pytest.raises(UsageError) as caught:
        targets.load_targets(write(tmp_path, row))
    assert says in str(caught.value)
    assert "one" in str(caught.value)


@pytest.mark.parametrize("text", ["[[target]\n", "", "x = 1\n", "target = 3\n", "\xff"])
def test_load__no_rows_or_no_toml(tmp_path: Path, text: str) -> None:
    file = tmp_path / "t.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match="t.toml"):
        targets.load_targets(file)


def test_load__missing_file_and_double_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        targets.load_targets(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="two targets are called 'one'"):
        targets.load_targets(write(tmp_path, ROW, ROW))


def test_find_value__numbers_lists_and_spreads() -> None:
    document = {
        "a": {"b": [1.0, 5, 3]},
        "c": [{"d": 7}],
        "e": {"median": 2, "min": 1, "max": 3, "rounds": [1, 2, 3]},
    }
    assert targets.find_value(document, "a.b") == targets.Value(3, 1, 5, 3)
    assert targets.find_value(document, "c.0.d") == targets.Value(7, 7, 7, 1)
    assert targets.find_value(document, "e") == targets.Value(2, 1, 3, 3)


def test_find_value__names_with_dots() -> None:
    document = {"cases": {"interop.100.homad": {"jain": 0.97}, "interop": {"x": 1}}}
    assert targets.find_value(document, "cases.interop.100.homad.jain").median == 0.97
    assert targets.find_value(document, "cases.interop.x").median == 1
    with pytest.raises(LabError, match="interop.100.linux"):
        targets.find_value(document, "cases.interop.100.linux.jain")


@pytest.mark.parametrize("path", ["a.x", "a.b.9", "a", "t", "n"])
def test_find_value__says_what_is_missing(path: str) -> None:
    with pytest.raises(LabError, match=path.split(".")[-1]):
        targets.find_value({"a": {"b": [1]}, "t": "text", "n": [True]}, path)


def make(name: str, command: str, better: str = "lower", goal: float = 2.0) -> targets.Target:
    return targets.Target(name, command, "v", goal, better, "why")


def test_measure__runs_each_command_once_and_survives_failures() -> None:
    calls = []

    def execute(command: str) -> object:
        calls.append(command)
        if command == "bad {json}":
            raise LabError("no such thing")
        return {"v": [1, 2, 30]}

    rows = [
        make("a", "x {json}"),
        make("b", "x {json}", "higher", 2.5),
        make("c", "bad {json}"),
        make("d", "x {json}"),
    ]
    results = targets.measure(rows, execute, say=lambda line: None)
    assert calls == ["x {json}", "bad {json}"]
    assert [r.met for r in results] == [True, False, False, True]
    assert results[2].problem == "no such thing"
    assert json.loads(json.dumps(results[0].as_json()))["value"]["median"] == 2


def test_run_command__reads_the_json_and_reports_failures(tmp_path: Path) -> None:
    script = tmp_path / "tool.py"
    script.write_text(
        "import sys; open(sys.argv[1], 'w').write(sys.argv[2]); sys.exit(int(sys.argv[3]))"
    )
    assert targets.run_command(f"python3 {script} {{json}} '{{\"v\": 4}}' 0", tmp_path) == {"v": 4}
    assert targets.run_command(f"python3 {script} {{json}} '{{\"v\": 5}}' 1", tmp_path) == {"v": 5}
    with pytest.raises(LabError, match="no JSON"):
        targets.run_command(f"python3 {script} {{json}} nonsense 0", tmp_path)
    with pytest.raises(LabError, match="exit status 3"):
        targets.run_command("python3 -c 'import sys; sys.exit(3)' {json}", tmp_path)
    with pytest.raises(LabError, match="failed: no such thing"):
        targets.run_command("python3 -c 'import sys; sys.exit(\"no such thing\")' {json}", tmp_path)
    with pytest.raises(LabError, match="./homa build"):
        targets.run_command("no/such/program {json}", tmp_path)


def test_run_command__what_else_is_written_goes_away(tmp_path: Path) -> None:
    """./homa demo writes a picture, which is not to stay where the scoreboard is run."""
    script = tmp_path / "tool.py"
    script.write_text(
        "import json, sys; open(sys.argv[2], 'w').write('x'); json.dump(sys.argv[2], open(sys.argv[1], 'w'))"
    )
    other = targets.run_command(f"python3 {script} {{json}} {{temporary}}/picture", tmp_path)
    assert isinstance(other, str) and other.endswith("/picture") and not Path(other).exists()
    assert list(tmp_path.iterdir()) == [script]
    commands = [t.command for t in targets.load_targets() if t.command.startswith("./homa demo")]
    assert commands and all("--plot {temporary}/" in command for command in commands)


def test_choose() -> None:
    rows = [make("demo-a", "x"), make("demo-b", "x"), make("rtt", "x")]
    assert targets.choose(rows, []) == rows
    assert [t.name for t in targets.choose(rows, ["rtt", "demo-*", "demo-a"])] == [
        "rtt",
        "demo-a",
        "demo-b",
    ]
    with pytest.raises(UsageError, match="--list"):
        targets.choose(rows, ["rt"])
