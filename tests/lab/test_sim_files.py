# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Mistakes in TOML files are told with file, line and reason; good files mean what they say."""

from pathlib import Path

import pytest

from lab.errors import UsageError
from lab.sim import spec, sweep, tomlfile, topology, warmup

TOPOLOGY = """\
kind = "leaf-spine"
racks = 4
hosts-per-rack = 8

[links]
host = "25gbit"
loss = 0.001

[switches]
cut-through = true

[[failures]]
link = "0-32"
from = "1ms"
until = "2ms"

[[failures]]
link = "1-32"
from = "0"
until = "3ms"
"""

SWEEP = """\
seeds = 2
[run]
workload = "w3"
measure = "1ms"
[run.set]
fifo = 0
[grid]
load = [0.5, 0.8]
[grid.set]
max_overcommit = [1, 7]
"""


def write(folder: Path, text: str, name: str = "f.toml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_topology__becomes_flags(tmp_path: Path) -> None:
    assert topology.load(write(tmp_path, TOPOLOGY)) == {
        "topology": "leaf-spine",
        "racks": "4",
        "hosts-per-rack": "8",
        "link": "25gbit",
        "loss": "0.001",
        "cut-through": "true",
        "fail": ["0-32:1ms:2ms", "1-32:0:3ms"],
    }


def test_topology__a_flag_beside_it_wins(tmp_path: Path) -> None:
    file = write(tmp_path, TOPOLOGY)
    said = spec.normal({"topology": str(file), "link": "100gbit", "load": 0.5})
    assert said["link"] == "100gbit" and said["racks"] == "4"
    words = spec.argv(said)
    assert words.count("--fail") == 2 and "--cut-through" in words and "true" not in words


@pytest.mark.parametrize(
    ("before", "after", "line", "reason"),
    [
        ('kind = "leaf-spine"', 'kind = "ring"', 1, "choose from one-switch"),
        ('kind = "leaf-spine"', "kind = leaf-spine", 1, "Invalid value"),
        ("racks = 4", "racks = 0", 2, "from 1 to"),
        ("racks = 4", "racks = 4.5", 2, "whole number"),
        ("racks = 4", "rack = 4", 2, "did you mean 'racks'"),
        ("racks = 4", "k = 4", 2, "'k' means nothing to kind leaf-spine"),
        ('host = "25gbit"', "host = 25", 6, "10gbit"),
        ('host = "25gbit"', 'hots = "25gbit"', 6, "did you mean 'host'"),
        ("loss = 0.001", "loss = 2", 7, "from 0 to 0.5"),
        ("[switches]", "[switch]", 9, "unknown key 'switch'"),
        ("[switches]", "[switches", 9, "Expected"),
        ("cut-through = true", 'cut-through = "yes"', 10, "not true or false"),
        ('link = "0-32"', 'link = "0"', 12, "a failure looks like"),
        ('link = "1-32"\n', "", 17, "lacks 'link'"),
        ('until = "3ms"', "til = 1", 20, "unknown key 'til'"),
        ('until = "3ms"', 'until = "3ms', 20, "Illegal character"),
        ('link = "1-32"', 'link = "0-32"\nlink = "1-32"', 19, "Cannot overwrite"),
    ],
)
def test_topology__says_where_and_why(
    tmp_path: Path, before: str, after: str, line: int, reason: str
) -> None:
    assert before in TOPOLOGY
    file = write(tmp_path, TOPOLOGY.replace(before, after))
    with pytest.raises(UsageError) as caught:
        topology.load(file)
    said = str(caught.value)
    assert said.startswith(f"{file}:{line}: ") and reason in said and "\n" not in said


def test_sweep__every_combination_and_seed(tmp_path: Path) -> None:
    grid = sweep.load(write(tmp_path, SWEEP, "loads.toml"))
    assert grid.name == "loads" and grid.varied == ["load", "set.max_overcommit"]
    assert len(grid.runs) == 8 and grid.seeds == [1, 2]
    assert {(r["load"], r["set"]["max_overcommit"], r["seed"]) for r in grid.runs} == {
        (load, level, seed) for load in ("0.5", "0.8") for level in ("1", "7") for seed in (1, 2)
    }
    assert all(r["set"]["fifo"] == "0" and r["workload"] == "w3" for r in grid.runs)


@pytest.mark.parametrize(
    ("before", "after", "line", "reason"),
    [
        ("seeds = 2", "seeds = 0", 1, "from 1 to 10000"),
        ("seeds = 2", "seeds = [1, 1]", 1, "different"),
        ("seeds = 2", "sedes = 2", 1, "did you mean 'seeds'"),
        ("seeds = 2", 'name = "a/b"', 1, "name a folder"),
        ('workload = "w3"', 'workload = "w9"', 3, "w1 to w5"),
        ('workload = "w3"', "seed = 4", 3, "seeds stand at the top"),
        ('measure = "1ms"', 'measure = "1"', 4, "with its unit"),
        ("fifo = 0", 'fifo = "none"', 6, "NAME=VALUE"),
        ("load = [0.5, 0.8]", "load = 0.5", 8, "has to be a list"),
        ("load = [0.5, 0.8]", "load = []", 8, "has to be a list"),
        ("load = [0.5, 0.8]", "load = [0.5, 80]", 8, "like 0.8"),
        ("load = [0.5, 0.8]", "load = [0.5, 0.5]", 8, "twice"),
        ("load = [0.5, 0.8]", 'workload = ["w1"]', 8, "stands in [run] already"),
        ("load = [0.5, 0.8]", "laod = [0.5]", 8, "did you mean 'load'"),
        ("load = [0.5, 0.8]", "load = [0.5, 0.8", 9, ""),
        ("load = [0.5, 0.8]", 'topology = ["none.toml"]', 8, "there is no file"),
        ("[1, 7]", "[1, 0.5]", 10, "whole number"),
        ("[grid]", "grid = 3\n[x]", 8, "known are"),
    ],
)
def test_sweep__says_where_and_why(
    tmp_path: Path, before: str, after: str, line: int, reason: str
) -> None:
    assert before in SWEEP
    file = write(tmp_path, SWEEP.replace(before, after))
    with pytest.raises(UsageError) as caught:
        sweep.load(file)
    said = str(caught.value)
    assert said.startswith(f"{file}:{line}: ") and reason in said and "\n" not in said


def test_sweep__too_many_runs(tmp_path: Path) -> None:
    many = ", ".join(map(str, range(1, 200)))
    file = write(tmp_path, f"seeds = 10000\n[grid]\nhosts = [{many[3:]}]\n")
    with pytest.raises(UsageError, match=":2: .*mistake"):
        sweep.load(file)


def test_toml__places_of_dotted_and_quoted_keys(tmp_path: Path) -> None:
    text = 'a.b = 1\n"c d" = """\nx = 9\n"""\n[t."u v"]\nw = 2\n[[l]]\n[[l]]\nz = 1\n[l.m]\nn = 1\n'
    lines = tomlfile.load(write(tmp_path, text)).lines
    assert lines["a", "b"] == 1 and lines[("c d",)] == 2 and ("x",) not in lines
    assert lines["t", "u v", "w"] == 6 and lines["l", 1, "z"] == 9 and lines["l", 1, "m", "n"] == 11


def test_toml__unreadable(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        tomlfile.load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"a = 1\nb = '\xe4'\n")
    with pytest.raises(UsageError, match=r"latin.toml:2: not UTF-8"):
        tomlfile.load(tmp_path / "latin.toml")


def test_identity__is_what_is_said_not_how(tmp_path: Path) -> None:
    def name(said: dict, build: str = "b") -> str:
        return spec.identity(spec.normal(said), build)

    first = name({"load": 0.8, "seed": 1, "set": {"a": 1, "b": True}})
    assert first == name({"seed": "1", "set": ["b=true", "a=1"], "load": "0.8"})
    assert len({first, name({"load": 0.81, "seed": 1}), name({"load": 0.8, "seed": 2})}) == 3
    assert name({"load": 0.8}) != name({"load": 0.8}, "another build")


def test_identity__follows_the_contents_of_files(tmp_path: Path) -> None:
    one = write(tmp_path, "0,8\n1,100\n", "one.csv")
    two = write(tmp_path, "0,8\n1,100\n", "two.csv")
    same = [spec.identity(spec.normal({"workload": str(p)}), "b") for p in (one, two)]
    assert same[0] == same[1]
    one.write_text("0,8\n1,200\n")
    assert spec.identity(spec.normal({"workload": str(one)}), "b") != same[0]


def test_begin__as_the_workload_needs() -> None:
    """Longer for longer messages and slower links; what is said wins."""
    assert warmup.begin({}) == {"warm-start": "400ms", "warmup": "20ms"}
    assert warmup.begin({"workload": "w5", "link": "100gbit"}) == {
        "warm-start": "80ms", "warmup": "3ms",
    }  # fmt: skip
    assert warmup.begin({"workload": "W1"}) == {"warmup": "1ms"}
    assert warmup.begin({"mode": "rpc"}) == {"warmup": "60ms"}
    for said in ({"warmup": "5ms"}, {"warm-start": "1ms"}, {"workload": "fixed:100"},
                 {"arrivals": "x.csv"}):  # fmt: skip
        assert warmup.begin(said) == {}
