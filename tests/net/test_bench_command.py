# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa-bench on nonsense, and what its command line says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bench_run import (
    PROGRAM,
    TRANSPORTS,
    at,
    bench,
    needs_bench,
    needs_root,
    pair,
    serve,
    transport_words,
)
from netns import ROOT

__all__ = ["pair"]
pytestmark = needs_bench


BAD = [
    ([], "what shall I do"),
    (["serve"], "unknown command 'serve'"),
    (["--quiet"], "the command comes first"),
    (["client", "--bogus"], "unknown option '--bogus'"),
    (["client", "--peer"], "'--peer' needs a value"),
    (["client", "extra", "--peer", "1.2.3.4:5"], "unexpected argument 'extra'"),
    (["client", "--size", "10"], "at least one --peer"),
    (["client", "--peer", "1.2.3.4:5"], "what shall be sent"),
    (["client", "--peer", "1.2.3.4:5", "--workload", "w9"], "unknown workload 'w9'"),
    (
        ["client", "--peer", "1.2.3.4:5", "--workload", "/no/such.csv"],
        "/no/such.csv: cannot be opened",
    ),
    (
        ["client", "--peer", "1.2.3.4:5", "--size", "0"],
        "--size: '0' is not a number from 1 to 1000000",
    ),
    (["client", "--peer", "1.2.3.4:5", "--size", "1000001"], "from 1 to 1000000"),
    (
        ["client", "--peer", "1.2.3.4:5", "--size", "9", "--response-size", "1000001"],
        "from 1 to 1000000",
    ),
    (["client", "--peer", "1.2.3.4:5", "--size", "9", "--workload", "w1"], "exclude each other"),
    (["client", "--peer", "1.2.3.4:5", "--size", "9", "--load", "0.5"], "say which with --link"),
    (["client", "--peer", "1.2.3.4:5", "--size", "9", "--link", "10"], "such as 200mbit"),
    (
        ["client", "--peer", "1.2.3.4:5", "--size", "9", "--load", "0.5", "--rate", "3"],
        "exclude each other",
    ),
    (["client", "--peer", "1.2.3.4:5", "--size", "9", "--mtu", "100"], "--mtu: '100'"),
    (["client", "--peer", "1.2.3.4:5", "--size", "9", "--wait", "sleep"], "not one of epoll"),
    (
        ["client", "--peer", "1.2.3.4:5", "--size", "9", "--outstanding", "2", "--rate", "9"],
        "closed loop",
    ),
    (
        ["client", "--peer", "1.2.3.4:5", "--size", "9", "--wait", "block", "--rate", "9"],
        "would miss arrivals",
    ),
    (
        ["client", "--peer", "1.2.3.4:5", "--size", "9", "--denominators", "/no/such"],
        "/no/such: cannot be read",
    ),
    (["client", "--peer", "1.2.3.4:5", "--mode", "fast"], "not one of rtt, rate, goodput"),
    (["client", "--peer", "1.2.3.4:5", "--sizes", "5,4"], "must increase"),
    (["client", "--peer", "1.2.3.4:5", "--sizes", "5,x"], "not a whole number"),
    (["client", "--peer", "1.2.3.4", "--size", "9"], "'1.2.3.4' is not ADDRESS:PORT"),
    (["client", "--peer", "host:5", "--size", "9"], "numeric address"),
    (["client", "--peer", "1.2.3.4:5", "--size", "9", "--pin", "4000"], "cannot run on CPU 4000"),
    (["client", "--peer", "1.2.3.4:5", "--size", "9", "--cc", "warp"], "congestion control 'warp'"),
    (["server", "--transport", "quic"], "'quic' is not one of"),
    (["server", "--peer", "1.2.3.4:5"], "a server has no --peer"),
    (["server", "--transport", "tcp", "--bind", "nowhere"], "not ADDRESS:PORT"),
    (["server", "--transport", "tcp", "--bind", "192.0.2.1:4000"], "no such address"),
    (["list", "--all"], "unknown option '--all'"),
]


@pytest.mark.parametrize(
    ("words", "reason"), BAD, ids=[" ".join(words) or "nothing" for words, _ in BAD]
)
def test_bad_input__one_line_and_status_2(words: list[str], reason: str) -> None:
    is_client = words[:1] == ["client"] and "--transport" not in words
    with_tcp = ["client", "--transport", "tcp", *words[1:]] if is_client else words
    done = bench(*with_tcp)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"homa-bench: [^\n]+\n", done.stderr), done.stderr
    assert reason in done.stderr


def test_bad_input__csv_names_the_line(tmp_path: Path) -> None:
    sizes = tmp_path / "sizes.csv"
    sizes.write_text("size_bytes,cumulative_probability\n10,0.5\n20,0.4\n")
    done = bench("client", "--transport", "tcp", "--peer", "1.2.3.4:5", "--workload", str(sizes))
    assert done.returncode == 2
    assert done.stderr == (
        f"homa-bench: --workload: {sizes}:3: cumulative probability 0.4 is not above the previous line's 0.5\n"
    )


def test_bad_input__udp_message_longer_than_a_datagram() -> None:
    done = bench("client", "--transport", "udp", "--peer", "1.2.3.4:5", "--workload", "w4")
    assert done.returncode == 2 and "at most 1440 bytes" in done.stderr


# Not homa/udp: another process has another encapsulation port, so its ports are its own.
@needs_root
@pytest.mark.parametrize("transport", [t for t in TRANSPORTS if t != "homa/udp"])
def test_bad_input__port_taken(pair, transport: str) -> None:
    a, _ = pair
    serve(a, transport, at(a.v4))
    done = a.run(
        [str(PROGRAM), "server", *transport_words(transport), "--bind", at(a.v4)], check=False
    )
    assert done.returncode == 2
    assert re.fullmatch(r"homa-bench: [^\n]+\n", done.stderr), done.stderr


@needs_root
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_absent_peer__says_so(pair, tmp_path: Path, transport: str) -> None:
    a, b = pair
    words = [
        str(PROGRAM),
        "client",
        *transport_words(transport),
        "--peer",
        at(b.v4),
        "--size",
        "10",
    ]
    done = a.run([*words, "--connect-timeout", "0.4"], check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"homa-bench: peer [^\n]+ does not answer [^\n]+\n", done.stderr), (
        done.stderr
    )


@needs_root
@pytest.mark.skipif("homa/afxdp" not in TRANSPORTS, reason="built without libhoma")
def test_bad_input__no_such_interface(pair) -> None:
    a, _ = pair
    words = [
        "server",
        "--transport",
        "homa",
        "--via",
        "afxdp",
        "--interface",
        "nope0",
        "--bind",
        at(a.v4),
    ]
    done = a.run([str(PROGRAM), *words], check=False)
    assert done.returncode == 2
    assert "nope0" in done.stderr and done.stderr.count("\n") == 1


def test_help__lists_every_option() -> None:
    text = bench("--help").stdout
    source = (ROOT / "bench" / "options.c").read_text()
    options = re.findall(r'\{ "([a-z-]+)", (?:required|no)_argument', source)
    assert len(options) > 40
    assert [name for name in options if f"--{name}" not in text] == []


def test_list__workloads_and_transports() -> None:
    found = json.loads(bench("list", "--json").stdout)
    assert [w["name"] for w in found["workloads"]] == ["w1", "w2", "w3", "w4", "w5"]
    assert {"tcp", "tcp-pool", "udp"} <= {t["name"] for t in found["transports"]}
    assert all(len(w["deciles"]) == 11 for w in found["workloads"])
