# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa-bench: what it measures and reports, between two namespaces."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from bench_run import (
    PROGRAM,
    STREAMS,
    TRANSPORTS,
    at,
    bench,
    client,
    consistent,
    load,
    needs_bench,
    needs_root,
    pair,
    serve,
    transport_words,
)
from netns import Namespace, Net, eventually

__all__ = ["pair"]
pytestmark = needs_bench


@needs_root
@pytest.mark.parametrize("family", ["v4", "v6"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_closed_loop__counts_agree_on_both_sides(
    pair, tmp_path: Path, transport: str, family: str
) -> None:
    a, b = pair
    peer = at(getattr(b, family))
    served = tmp_path / "server.json"
    server = serve(b, transport, peer, "--json", str(served))
    result = client(
        a, tmp_path, transport, peer, "--size", "500", "--outstanding", "4", "--duration", "0.5"
    )
    consistent(result)
    assert result["complete"] and not result["interrupted"]
    assert result["rpcs"]["completed"] > 0
    if transport != "udp":
        assert result["rpcs"]["failed"] == 0 and result["errors"] == {}
    assert (
        result["throughput"]["rps"] > 0 and result["cpu"]["user_s"] + result["cpu"]["system_s"] > 0
    )
    status, _, _ = server.stop()
    assert status == 0
    counts = load(served)["server"]
    # Everything that the client sent, and its probes.
    assert counts["requests"] >= result["rpcs"]["completed"]
    assert counts["response_bytes"] >= 500 * result["rpcs"]["completed"]


@needs_root
@pytest.mark.parametrize("transport", STREAMS)
def test_response_size__may_differ_from_the_request(pair, tmp_path: Path, transport: str) -> None:
    a, b = pair
    serve(b, transport, at(b.v4))
    result = client(
        a,
        tmp_path,
        transport,
        at(b.v4),
        "--size",
        "200000",
        "--response-size",
        "100",
        "--duration",
        "0.5",
    )
    consistent(result)
    assert result["rpcs"]["failed"] == 0 and result["rpcs"]["completed"] > 0
    throughput = result["throughput"]
    assert throughput["request_gbps"] == pytest.approx(2000 * throughput["response_gbps"], rel=0.01)


@needs_root
@pytest.mark.parametrize("transport", STREAMS)
def test_open_loop__same_arrivals_for_every_transport(pair, tmp_path: Path, transport: str) -> None:
    a, b = pair
    serve(b, transport, at(b.v4))
    words = [
        "--workload",
        "w3",
        "--rate",
        "400",
        "--duration",
        "1",
        "--warmup",
        "0.2",
        "--seed",
        "7",
    ]
    result = client(a, tmp_path, transport, at(b.v4), *words, "--timeout", "60", "--drain", "20")
    consistent(result)
    # Fixed by the seed alone: the same number whatever the transport.
    assert result["rpcs"]["measured"] == 418
    assert result["rpcs"]["failed"] == 0
    assert [d["latency_ns"]["count"] for d in result["deciles"]] == [
        44,
        41,
        29,
        36,
        59,
        43,
        41,
        41,
        41,
        43,
    ]
    assert result["generator"]["lag_ns"]["count"] == 418


@needs_root
@pytest.mark.parametrize("transport", STREAMS)
def test_nodes__each_is_client_and_server(pair, tmp_path: Path, transport: str) -> None:
    spaces, running = pair, []
    for index, space in enumerate(spaces):
        other = spaces[1 - index]
        argv = [
            str(PROGRAM),
            "node",
            *transport_words(transport),
            "--bind",
            at(space.v4),
            "--peer",
            at(other.v4),
        ]
        argv += [
            "--workload",
            "w2",
            "--load",
            "0.2",
            "--link",
            "20mbit",
            "--duration",
            "1",
            "--drain",
            "20",
        ]
        argv += [
            "--timeout",
            "60",
            "--host-index",
            str(index),
            "--json",
            str(tmp_path / f"{index}.json"),
        ]
        running.append(space.start(argv))
    for process in running:
        status, _, errors = process.wait(60)
        assert status == 0, errors
    results = [load(tmp_path / f"{index}.json") for index in range(2)]
    for result, other in zip(results, reversed(results), strict=True):
        consistent(result)
        assert result["rpcs"]["failed"] == 0
        assert other["server"]["requests"] >= result["rpcs"]["completed"] > 50
        assert 0 < result["throughput"]["offered_load"] < 1


@needs_root
def test_unloaded__gives_denominators_for_slowdowns(pair, tmp_path: Path) -> None:
    a, b = pair
    serve(b, "tcp", at(b.v4))
    result = client(
        a, tmp_path, "tcp", at(b.v4), "--unloaded", "--workload", "w4", "--samples", "5"
    )
    sizes = [row["size"] for row in result["unloaded"]]
    assert sizes == sorted(set(sizes)) and sizes[0] == 53 and sizes[-1] == 1_000_000
    assert all(big <= 2.1 * small + 2 for small, big in zip(sizes, sizes[1:], strict=False))
    table = tmp_path / "best.json"
    table.write_text(
        json.dumps({"unloaded": [{"size": 100, "p50_ns": 1000}, {"size": 200, "p50_ns": 2000}]})
    )
    words = ["--size", "150", "--duration", "0.3", "--denominators", str(table)]
    result = client(a, tmp_path, "tcp", at(b.v4), *words)
    # Halfway between the two sizes an idle network takes 1500 ns.
    for name in ("p50", "p99", "max"):
        assert result["slowdown"][name] == pytest.approx(
            result["latency_ns"][name] / 1500, rel=0.01, abs=0.01
        )


@needs_root
def test_unloaded__waits_between_rpcs(pair, tmp_path: Path) -> None:
    """So long at least, after each: five that count and three before them."""
    a, b = pair
    serve(b, "tcp", at(b.v4))
    words = ["--unloaded", "--sizes", "8", "--samples", "5", "--pause", "50000"]
    result = client(a, tmp_path, "tcp", at(b.v4), *words)
    assert result["config"]["pause_us"] == 50_000
    assert result["unloaded"][0]["count"] == 5
    assert result["time"]["window_s"] >= 8 * 0.05


def some_have_come(space: Namespace) -> None:
    """Waits until some hundred RPCs of 1,000 bytes have come to a server there."""
    look = ["ip", "-j", "-s", "link", "show", "dev", space.device]
    eventually(
        lambda: json.loads(space.run(look).stdout)[0]["stats64"]["rx"]["bytes"] > 300_000, 60
    )


@needs_root
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_killed_peer__gives_errors_and_an_end(pair, tmp_path: Path, transport: str) -> None:
    a, b = pair
    server = serve(b, transport, at(b.v4))
    path = tmp_path / "client.json"
    argv = [
        str(PROGRAM),
        "client",
        *transport_words(transport),
        "--peer",
        at(b.v4),
        "--json",
        str(path),
    ]
    argv += [
        "--size",
        "1000",
        "--rate",
        "500",
        "--duration",
        "60",
        "--timeout",
        "1",
        "--give-up",
        "0.5",
    ]
    running = a.start(argv)
    some_have_come(b)
    server.send_signal(signal.SIGKILL)
    status, _, errors = running.wait(30)
    assert status == 1
    assert "gave up" in errors and b.v4 in errors
    result = load(path)
    consistent(result)
    assert not result["complete"] and not result["interrupted"] and result["ended_by"]
    assert result["rpcs"]["failed"] > 0 and result["rpcs"]["completed"] > 0


@needs_root
def test_timeout__holds_in_the_drain(pair, tmp_path: Path) -> None:
    a, b = pair
    server = serve(b, "tcp", at(b.v4))
    argv = ["--size", "1000", "--rate", "1000", "--duration", "3", "--timeout", "1"]
    path = tmp_path / "client.json"
    words = [str(PROGRAM), "client", *transport_words("tcp"), "--peer", at(b.v4)]
    argv += ["--drain", "60", "--give-up", "60", "--json", str(path)]
    running = a.start([*words, *argv])
    some_have_come(b)
    server.send_signal(signal.SIGSTOP)
    status, _, _ = running.wait(50)
    assert status == 0
    result = load(path)
    consistent(result)
    # Also of those that were sent when the window was nearly over.
    assert set(result["errors"]) <= {"timeout"}


@needs_root
@pytest.mark.parametrize("transport", STREAMS)
def test_burst__comes_at_equal_intervals_and_apart_is_apart(
    pair, tmp_path: Path, transport: str
) -> None:
    a, b = pair
    peer = at(b.v4)
    serve(b, transport, peer)
    argv = ["--size", "100", "--response-size", "20000", "--rate", "200", "--burst"]
    result = client(a, tmp_path, transport, peer, *argv, "--duration", "1", "--apart", peer)
    consistent(result)
    apart, rpcs = result["apart"], result["rpcs"]
    # At equal intervals: as many as were asked for, one more or less.
    assert 199 <= apart["completed"] + apart["failed"] <= 201
    assert apart["latency_ns"]["count"] == apart["completed"] and not apart["errors"]
    # Nothing or one RPC was under way when somebody looked, or a few if it was late.
    samples = result["backlog"]["samples"]
    assert len(samples) == 250 and all(s % 20_100 == 0 for s in samples)
    assert rpcs["measured"] == rpcs["completed"] == result["latency_ns"]["count"] == 0
    assert result["config"]["burst"] is True


@needs_root
def test_check__notices_wrong_bytes(pair, tmp_path: Path) -> None:
    a, b = pair
    peer, server_json = at(b.v4), tmp_path / "server.json"
    argv = ["--size", "5000", "--response-size", "90000", "--duration", "0.5", "--check"]
    server = serve(b, "homa", peer, "--check", "--json", str(server_json))
    result = client(a, tmp_path, "homa", peer, *argv, "--apart", peer)
    server.stop()
    assert result["apart"]["completed"] > 0 and result["apart"]["failed"] == 0
    assert load(server_json)["transport"]["protocol_errors"] == 0
    # One that does not fill its messages answers with other bytes.
    serve(b, "homa", peer)
    words = [str(PROGRAM), "client", *transport_words("homa"), "--peer", peer, *argv]
    done = a.run([*words, "--connect-timeout", "1"], check=False, timeout=60)
    assert done.returncode == 1 and "Bad message" in done.stderr


@needs_root
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("transport", STREAMS)
def test_signal__partial_result(pair, tmp_path: Path, transport: str, number: int) -> None:
    a, b = pair
    serve(b, transport, at(b.v4))
    path = tmp_path / "client.json"
    argv = [
        str(PROGRAM),
        "client",
        *transport_words(transport),
        "--peer",
        at(b.v4),
        "--json",
        str(path),
    ]
    running = a.start([*argv, "--size", "1000", "--outstanding", "3", "--duration", "60"])
    some_have_come(b)
    status, _, _ = running.stop(number, 60)
    assert status == 0
    result = load(path)
    consistent(result)
    assert result["interrupted"] and not result["complete"]
    assert result["rpcs"]["completed"] > 0 and result["time"]["window_s"] < 30


def slow(space: Namespace, limit: str) -> None:
    """Its device sends 1 Mbit/s and drops what does not fit into `limit` bytes."""
    shaper = ["root", "tbf", "rate", "1mbit", "burst", "3k", "limit", limit]
    space.run(["tc", "qdisc", "add", "dev", space.device, *shaper])


@needs_root
def test_overload__drops_are_counted_as_failures(pair, tmp_path: Path) -> None:
    a, b = pair
    slow(a, "30k")
    serve(b, "tcp-pool", at(b.v4))
    words = [
        "--size",
        "20000",
        "--rate",
        "200",
        "--max-outstanding",
        "20",
        "--duration",
        "1",
        "--drain",
        "0.5",
    ]
    result = client(a, tmp_path, "tcp-pool", at(b.v4), *words)
    consistent(result)
    rpcs = result["rpcs"]
    assert rpcs["dropped"] == result["errors"]["overflow"] > 50
    # At most 20 were in flight, and what did not end is in the histogram at its age.
    assert 0 < rpcs["unfinished"] <= 21
    assert rpcs["censored"] == rpcs["failed"] - rpcs["dropped"]


# What a process of this test may open, one descriptor in two for connections of its own.
DESCRIPTORS = 64
FEW = ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}"]


@needs_root
def test_pool__has_half_of_the_descriptors(pair, tmp_path: Path) -> None:
    a, b = pair
    slow(a, "30k")
    serve(b, "tcp-pool", at(b.v4))
    words = [
        "--size",
        "20000",
        "--rate",
        "400",
        "--max-outstanding",
        "300",
        "--duration",
        "1",
        "--drain",
        "1",
    ]
    result = client(a, tmp_path, "tcp-pool", at(b.v4), *words, before=FEW)
    consistent(result)
    assert result["complete"] and result["rpcs"]["completed"] > 0
    assert result["transport"]["connections"] <= DESCRIPTORS // 2
    assert result["rpcs"]["dropped"] == result["errors"]["overflow"] > 50
    assert "EMFILE" not in result["errors"]


@needs_root
def test_pool__a_server_without_descriptors_closes_what_comes(pair, tmp_path: Path) -> None:
    a, b = pair
    served = tmp_path / "server.json"
    server = serve(b, "tcp-pool", at(b.v4), "--json", str(served), before=FEW)
    words = ["--size", "500", "--duration", "0.5", "--outstanding", "4"]
    result = client(a, tmp_path, "tcp-pool", at(b.v4), *words, "--connections", "200")
    consistent(result)
    assert result["rpcs"]["completed"] > result["rpcs"]["failed"]
    assert not {"timeout", "unfinished"} & set(result["errors"])
    # Whoever comes afterwards is served.
    result = client(a, tmp_path, "tcp-pool", at(b.v4), *words, "--connections", "8")
    assert result["rpcs"]["failed"] == 0 and result["rpcs"]["completed"] > 0
    status, _, wrong = server.stop()
    assert status == 0, wrong
    transport = load(served)["transport"]
    assert transport["refused"] > 100 and transport["accepted"] >= 16


@needs_root
def test_lossy_udp__lost_datagrams_are_timeouts(pair, tmp_path: Path) -> None:
    a, b = pair
    slow(a, "10k")
    serve(b, "udp", at(b.v4))
    words = [
        "--size",
        "1400",
        "--rate",
        "500",
        "--duration",
        "1",
        "--timeout",
        "0.3",
        "--drain",
        "1",
    ]
    result = client(a, tmp_path, "udp", at(b.v4), *words)
    consistent(result)
    assert result["errors"]["timeout"] > 50 and result["rpcs"]["completed"] > 10


@needs_root
@pytest.mark.parametrize("wait", ["block", "spin", "yield", "epoll"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_wait__every_way_works(pair, tmp_path: Path, transport: str, wait: str) -> None:
    a, b = pair
    serve(b, transport, at(b.v4), "--wait", wait)
    result = client(
        a, tmp_path, transport, at(b.v4), "--mode", "rtt", "--wait", wait, "--duration", "0.3"
    )
    consistent(result)
    assert result["rpcs"]["completed"] > 0
    assert result["config"]["outstanding"] == 1 and result["config"]["wait"] == wait


@needs_root
def test_tcp__connections_and_coalescing(pair, tmp_path: Path) -> None:
    a, b = pair
    serve(b, "tcp", at(b.v4))
    words = ["--mode", "rate", "--duration", "0.5"]
    one = client(a, tmp_path, "tcp", at(b.v4), *words)
    assert one["transport"]["connections"] == 1
    # One write for each request, and one for the probe.
    assert one["transport"]["writes"] >= one["rpcs"]["completed"]
    many = client(a, tmp_path, "tcp", at(b.v4), *words, "--connections", "16")
    assert many["transport"]["connections"] == 16
    shared = client(a, tmp_path, "tcp", at(b.v4), *words, "--coalesce")
    assert shared["transport"]["writes"] < shared["rpcs"]["completed"]
    pool = client(a, tmp_path, "tcp-pool", at(b.v4), *words, "--connections", "64")
    assert pool["transport"]["connections"] >= 64
    assert pool["rpcs"]["failed"] == 0


@needs_root
def test_tcp__streams_are_opened_before_the_run(pair, tmp_path: Path) -> None:
    """Also those that no RPC takes: an RPC that opened its own would wait a round trip more."""
    a, b = pair
    serve(b, "tcp", at(b.v4))
    words = ["--size", "100", "--rate", "10", "--duration", "0.5", "--connections", "16"]
    result = client(a, tmp_path, "tcp", at(b.v4), *words)
    assert result["rpcs"]["completed"] < 16
    assert result["transport"]["connections"] == 16
    assert result["transport"]["opened_during_run"] == 0


@pytest.fixture
def space():
    with Net() as net:
        yield net.pair()[0]


@needs_root
@pytest.mark.parametrize("wait", ["block", "yield", "epoll"])
@pytest.mark.parametrize("transport", ["unix", "unix-packet"])
def test_unix__a_write_for_each_message(space, tmp_path: Path, transport: str, wait: str) -> None:
    served = tmp_path / "server.json"
    server = serve(space, transport, "@echo", "--wait", wait, "--json", str(served))
    result = client(
        space, tmp_path, transport, "@echo", "--mode", "rate", "--wait", wait, "--duration", "0.3"
    )
    consistent(result)
    assert result["rpcs"]["failed"] == 0 and result["rpcs"]["completed"] > 0
    assert result["transport"]["writes"] >= result["rpcs"]["completed"]
    if transport == "unix-packet":
        assert result["transport"]["reads"] >= result["rpcs"]["completed"]
    assert server.stop()[0] == 0
    assert load(served)["server"]["requests"] >= result["rpcs"]["completed"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["unix", "--peer", "10.0.0.1:4000", "--size", "100"], "is not @NAME"),
        (["unix", "--peer", "@" + "x" * 200, "--size", "100"], "is not @NAME"),
        (["unix-packet", "--peer", "@echo", "--size", "200000"], "at most 100000 bytes"),
        (["unix-packet", "--peer", "@echo", "--size", "100", "--coalesce"], "one packet for each"),
    ],
)
def test_unix__refuses_what_cannot_be(words: list[str], reason: str) -> None:
    done = bench("client", "--transport", *words)
    assert done.returncode == 2 and reason in done.stderr


@needs_root
def test_tcp_server__survives_hostile_bytes(pair, tmp_path: Path) -> None:
    a, b = pair
    served = tmp_path / "server.json"
    server = serve(b, "tcp", at(b.v4), "--json", str(served))
    attack = (
        "import os,socket,sys\n"
        "for bytes in (b'\\0' * 12, b'\\xff' * 12, os.urandom(4096), b'\\0\\0\\0\\5', b''):\n"
        "    s = socket.create_connection((sys.argv[1], 4000)); s.sendall(bytes); s.close()\n"
    )
    a.run(["python3", "-c", attack, b.v4])
    result = client(a, tmp_path, "tcp", at(b.v4), "--size", "100", "--duration", "0.3")
    assert result["rpcs"]["failed"] == 0 and result["rpcs"]["completed"] > 0
    assert server.stop()[0] == 0
    assert load(served)["transport"]["protocol_errors"] >= 2
