# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What is wrong with a command line is said in one line, with a remedy, and status 2."""

import pytest

WRONG = [
    (["demo", "--hosts", "1"], "2 to 16"),
    (["demo", "--hosts", "three"], "./homa demo --help"),
    (["demo", "--seconds", "0"], "0.5 to 600"),
    (["demo", "--seconds", "nan"], "0.5 to 600"),
    (["demo", "--workload", "w9"], "w1 to w5"),
    (["demo", "--workload", "fixed:0"], "1 to 1000000"),
    (["demo", "--workload", "fixed:1000001"], "1 to 1000000"),
    (["demo", "--load", "80"], "like 0.8"),
    (["demo", "--load", "nan"], "like 0.8"),
    (["demo", "--link", "fast"], "200mbit"),
    (["demo", "--transports", "homa,quic"], "choose from"),
    (["demo", "--transports", ","], "choose from"),
    (["demo", "--seed", "-1"], "0 or more"),
    (["demo", "--plot", "x.txt"], ".png"),
    (["demo", "--plot", "no-such-folder/x.png"], "no-such-folder"),
    (["demo", "--json", "no-such-folder/x.json"], "no-such-folder"),
    (["demo", "--via", "daemon"], "program, service, kernel"),
    (["demo", "--loda", "0.5"], "./homa demo --help"),
    (["bench"], "./homa bench --help"),
    (["bench", "speed"], "./homa bench --help"),
    (["bench", "rtt", "--rounds", "0"], "1 to 1000"),
    (["bench", "rtt", "--seconds", "-1"], "0.05 to 600"),
    (["targets", "nonsense"], "--list"),
    (["dance"], "./homa help"),
    ([], "./homa help"),
]


@pytest.mark.parametrize(
    ("argv", "remedy"), WRONG, ids=[" ".join(argv) or "nothing" for argv, _ in WRONG]
)
def test_wrong(cli, argv: list[str], remedy: str) -> None:
    status, out, err = cli(*argv)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1 and err.startswith("homa: ")
    assert remedy in err


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["demo", "--help"],
        ["bench", "--help"],
        ["bench", "kernel", "--help"],
        ["targets", "--help"],
    ],
)
def test_help(cli, argv: list[str]) -> None:
    status, out, err = cli(*argv)
    assert (status, err) == (0, "")
    assert "--help" in out


def test_targets__list(cli) -> None:
    status, out, _ = cli("targets", "--list", "demo-*")
    assert status == 0
    assert "demo-tcp-pool" in out and "rtt" not in out.split()


def test_missing_program__says_how_to_get_it(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMA_BENCH", "/nowhere/homa-bench")
    status, _, err = cli("demo", "--transports", "tcp")
    assert status == 1
    assert "./homa build" in err and err.count("\n") == 1


@pytest.mark.parametrize("command", ["up", "down", "status", "clean"])
def test_help__of_the_lab_is_for_commands_that_exist(cli, command: str) -> None:
    """./homa clean is another command: it deletes what was built."""
    status, out, _ = cli(command, "--help")
    assert status == 0
    assert f"Usage: ./homa lab {command} " in out


def test_help__of_bench_service_names_each_group(cli) -> None:
    from lab.bench.service import GROUPS

    _, out, _ = cli("bench", "service", "--help")
    said = set(out.replace(",", " ").replace(".", " ").split())
    assert [group.key for group in GROUPS if group.key not in said] == []


def test_help__of_bench_tas_names_each_row(cli) -> None:
    from lab.bench.tas_rows import ROWS

    _, out, _ = cli("bench", "tas", "--help")
    assert [row.key for row in ROWS if row.key not in out.split()] == []
