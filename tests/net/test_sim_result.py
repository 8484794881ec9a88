# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa-sim as a program: its result follows the schema that it shares with homa-bench, and
what it is told wrongly it refuses in one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from bench_run import BUILD, SCHEMA, problems

PROGRAM = BUILD / "sim" / "homa-sim"
SHORT = [
    "--warmup",
    "100us",
    "--measure",
    "500us",
    "--drain",
    "2ms",
    "--topology",
    "one-switch",
    "--hosts",
    "12",
]

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")


def sim(*words: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), *words], capture_output=True, text=True, timeout=timeout, check=False
    )


def result(*words: str) -> dict[str, Any]:
    done = sim(*words, "--json", "-")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert problems(found, SCHEMA) == []
    return found


PROTOCOLS = ["homa"]
if PROGRAM.exists():
    PROTOCOLS = [p["name"] for p in json.loads(sim("--list").stdout)["protocols"]]


@pytest.mark.parametrize("mode", ["oneway", "rpc"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_result__follows_the_schema_and_agrees_with_itself(protocol: str, mode: str) -> None:
    found = result(
        "--protocol", protocol, "--workload", "w2", "--load", "0.5", "--mode", mode, *SHORT
    )
    rpcs, counts = found["rpcs"], found["sim"]["counts"]
    assert rpcs["measured"] > 100
    assert rpcs["measured"] == rpcs["completed"] + rpcs["failed"]
    assert rpcs["measured"] == sum(b["count"] for b in found["sim"]["bins"])
    assert (
        rpcs["measured"]
        == found["sim"]["single_packet"]["count"] + found["sim"]["multi_packet"]["count"]
    )
    assert rpcs["measured"] == found["latency_ns"]["count"] == found["slowdown"]["count"]
    on_their_way = counts["packets_on_their_way"]
    assert (
        counts["packets_sent"]
        == counts["packets_received"] + counts["packets_dropped"] + on_their_way
    )
    assert counts["packets_live"] >= on_their_way
    # The run ends under load, so that the equation is one; the oracle sends no packets.
    assert (on_their_way > 0) == (protocol != "oracle")
    use = found["sim"]["utilisation"]
    assert 0 < use["application"] < use["total"] <= 1
    assert found["config"]["transport"] == protocol and found["complete"]


def test_result__software_on_cores() -> None:
    found = result("--load", "0.3", "--cores", "2", *SHORT)
    assert found["sim"]["software"]["cores"] == 2


def test_result__recording_incast_fixed_sizes(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("time_ns,src,dst,bytes\n1000,0,1,100\n1000,2,1,5000\n3000,3,4,1\n")
    found = result("--arrivals", str(trace), "--topology", "one-switch", "--hosts", "5")
    assert found["rpcs"]["measured"] == found["rpcs"]["completed"] == 3
    found = result("--workload", "fixed:500", "--load", "0.2", *SHORT)
    assert found["deciles"] == [] and "histogram" in found["slowdown"]
    found = result("--load", "0", "--incast", "5:3000:50us", *SHORT)
    assert found["sim"]["incast"]["slowdown"]["count"] == found["rpcs"]["measured"] == 50


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_digest__follows_from_the_seed(protocol: str) -> None:
    """For every protocol, with packets lost at random where it sends packets."""
    words = ["--protocol", protocol, "--workload", "w2", *SHORT]
    if protocol != "oracle":
        words += ["--loss", "0.001"]
    digests = {seed: result("--seed", seed, *words)["sim"]["digest"] for seed in ("1", "2")}
    assert digests["1"] == result("--seed", "1", *words)["sim"]["digest"] != digests["2"]
    # Compiled as one unit it is the same simulator.
    apart = subprocess.run(
        [BUILD / "tests" / "sim" / "sim_apart", "--seed", "1", *words, "--json", "-"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert json.loads(apart.stdout)["sim"]["digest"] == digests["1"]


def test_interrupt__gives_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    read, write = os.pipe()
    words = ["--warmup", "0", "--measure", "10s", "--json", str(path), "--progress", str(write)]
    with subprocess.Popen([str(PROGRAM), *words], pass_fds=[write]) as running:
        os.close(write)
        with os.fdopen(read) as lines:
            first = next(lines).split()
            second = next(lines).split()
            assert len(first) == len(second) == 4
            assert int(first[0]) < int(second[0]) < int(second[1]) == 10_000_000_000
            running.send_signal(signal.SIGINT)
            assert running.wait(20) == 0
    found = json.loads(path.read_text())
    assert problems(found, SCHEMA) == []
    assert found["interrupted"] and not found["complete"]
    assert found["rpcs"]["completed"] > 0 and found["time"]["window_s"] > 0


def test_abort_unstable__ends_early() -> None:
    found = sim(
        "--load",
        "1.5",
        "--workload",
        "w1",
        "--abort-unstable",
        "--measure",
        "20ms",
        "--json",
        "-",
        "--topology",
        "one-switch",
        "--hosts",
        "6",
    )
    report = json.loads(found.stdout)
    assert problems(report, SCHEMA) == []
    assert report["sim"]["backlog"]["aborted"] and not report["sim"]["backlog"]["stable"]
    assert report["time"]["window_s"] < 0.02


def test_stop_growth__the_third_that_is_left_is_that_of_a_whole_run() -> None:
    """Sample by sample, with what is offered in the whole window."""
    words = ["--workload", "w2", "--measure", "5ms", "--warmup", "1ms", "--drain", "0ms"]
    words += ["--topology", "one-switch", "--hosts", "8", "--against-oracle"]
    whole, stopped = (
        result("--load", "0.9", "--loss", "0.1", *words, "--stop-growth", limit)
        for limit in ("0", "0.04")
    )
    ours, theirs = stopped["sim"]["backlog"], whole["sim"]["backlog"]
    assert ours["aborted"] and not theirs["aborted"]
    assert len(ours["samples"]) == 83 and len(theirs["samples"]) == 250
    assert ours["samples"] == theirs["samples"][:83] and ours["reference"] == theirs["reference"]
    assert ours["offered_gbps"] == theirs["offered_gbps"] == whole["throughput"]["offered_gbps"]
    # A load that is carried is run to the end, with the same result.
    calm = [result("--load", "0.3", *words, "--stop-growth", limit) for limit in ("0", "0.04")]
    assert calm[0]["sim"]["digest"] == calm[1]["sim"]["digest"]
    assert not calm[1]["sim"]["backlog"]["aborted"]
    refused = sim("--stop-growth", "0.04")
    assert refused.returncode == 2 and "--against-oracle" in refused.stderr


def test_warm_start__the_network_is_busy_from_the_beginning() -> None:
    words = [
        "--workload",
        "w4",
        "--load",
        "0.7",
        "--warmup",
        "200us",
        "--measure",
        "1ms",
        "--drain",
        "0",
        "--topology",
        "one-switch",
        "--hosts",
        "20",
        "--against-oracle",
    ]
    cold, warm = result(*words), result(*words, "--warm-start", "200ms")
    assert warm["sim"]["backlog"]["start_bytes"] > 2 * cold["sim"]["backlog"]["start_bytes"]
    assert warm["sim"]["utilisation"]["total"] > cold["sim"]["utilisation"]["total"]
    assert warm["rpcs"]["measured"] == cold["rpcs"]["measured"]
    assert "excess_share" in warm["sim"]["backlog"]
    assert warm["sim"]["digest"] == result(*words, "--warm-start", "200ms")["sim"]["digest"]


@pytest.mark.parametrize(
    "words", [["--lod", "1"], ["--load", "x"], ["--workload", "w9"], ["--link", "7gbit"]]
)
def test_nonsense__one_line_and_status_2(words: list[str]) -> None:
    done = sim(*words)
    assert done.returncode == 2
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith("homa-sim: ")


def test_unwritable_result__status_1() -> None:
    done = sim("--json", "/nonexistent/x.json", *SHORT)
    assert done.returncode == 1 and "/nonexistent/x.json" in done.stderr


def test_help_and_list__name_every_option() -> None:
    text = sim("--help").stdout
    for flag in json.loads(sim("--list").stdout)["flags"]:
        assert f"--{flag['name']}" in text
