# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""./homa ss, top and trace as a stranger meets them: filters, refusals, a homad that goes away."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from tools.cli import main
from tools.connection import Connection
from ops_fake import homad, line, snapshot

ROOT = Path(__file__).resolve().parents[2]
RPC = {
    "rpc": 12, "app": 1, "name": "web", "client": True, "port": 40000, "peer": "10.0.0.2", "peer_port": 80,
    "via": "eth0", "phase": "outgoing", "age_ns": 5000, "silent_ns": 10, "probes": 0, "error": 0,
    "tx_length": 9000, "tx_sent": 100, "tx_granted": 5000, "rx_length": 0, "rx_received": 0, "rx_granted": 0,
}  # fmt: skip
OTHER = RPC | {
    "rpc": 14,
    "app": 2,
    "name": "db",
    "peer": "[fd00::2]:54321",
    "peer_port": 90,
    "phase": "ready",
}
PEER = {
    "peer": "10.0.0.2:54321", "via": "udp", "rpcs": 3, "server_rpcs": 1, "idle_ms": 5, "packet_bytes": 1408,
    "acks_owed": 0, "probes": 0, "cutoff_version": 2, "cutoffs": [0] * 8,
}  # fmt: skip


def answers() -> dict:
    rpcs = line(RPC) + line(OTHER) + line({"end": True, "count": 2})
    return {
        "snapshot": [line(snapshot("before")), line(snapshot("after"))],
        "rpcs": [rpcs],
        "peers": [line(PEER) + line({"end": True, "count": 1})],
    }


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Runs a tool against the fake: (status, output, errors)."""

    def tool(*argv: str, fake: dict | None = None) -> tuple[int, str, str]:
        with homad(tmp_path / "m.sock", fake or answers()) as path:
            status = main([*argv, "--monitor", path])
        (tmp_path / "m.sock").unlink()
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return tool


# -- ss


def test_ss__everything(run) -> None:
    status, out, err = run("ss", "--all")
    assert (status, err) == (0, "")
    for word in ("raw", "100/9000 ≤5000", "10.0.0.2:54321", "udp"):
        assert word in out


def test_ss__a_homad_that_knows_no_tcp(run) -> None:
    """One that began before an update: only who asks for TCP alone hears of it."""
    assert "flows" not in answers()
    assert run("ss", "--peers", "--tcp")[0] == 0
    status, out, err = run("ss", "--tcp")
    assert (status, out, err) == (1, "", "homa: homad says: unknown\n")


def test_ss__json_has_what_was_asked_for(run) -> None:
    status, out, _ = run("ss", "-r", "-p", "--json")
    assert status == 0
    assert json.loads(out) == {"rpcs": [RPC, OTHER], "peers": [PEER]}


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (["--app", "web"], [12]), (["--app", "2"], [14]), (["--peer", "10.0.0.2"], [12]),
        (["--peer", "fd00::2"], [14]), (["--port", "90"], [14]), (["--port", "40000"], [12, 14]),
        (["--state", "ready"], [14]), (["--app", "nobody"], []),
    ],
)  # fmt: skip
def test_ss__filters(run, argv: list[str], wanted: list[int]) -> None:
    status, out, _ = run("ss", "-r", "--json", *argv)
    assert status == 0
    assert [rpc["rpc"] for rpc in json.loads(out)["rpcs"]] == wanted


# -- top


def test_top__once(run) -> None:
    status, out, err = run("top", "--once", "--interval", "0.1")
    assert (status, err) == (0, "")
    assert "p99.9" in out and "raw" in out


def test_top__once_as_json(run) -> None:
    status, out, _ = run("top", "--once", "--json", "--interval", "0.1")
    picture = json.loads(out)
    assert status == 0
    assert picture["engine"]["requests_sent"] > 0 and picture["latency"]["p50"] > 0
    assert {"threads", "ports", "apps", "seconds"} <= set(picture)


def test_top__without_a_terminal_says_what_to_do(run) -> None:
    status, out, err = run("top")
    assert (status, out) == (2, "") and "--once" in err and err.count("\n") == 1


# -- refusals


@pytest.mark.parametrize(
    ("argv", "remedy"),
    [
        (["ss", "--nope"], "ss --help"),
        (["ss", "--peer", "somewhere"], "IPv4 or IPv6"),
        (["ss", "--port", "70000"], "65535"),
        (["ss", "--state", "happy"], "in-service"),
        (["top", "--interval", "0"], "0.1 to 3600"),
        (["trace", "--snap", "5"], "28"),
        (["trace", "--duration", "-1"], "above 0"),
        (["trace", "--pcap", "a", "--perfetto", "b"], "one of them"),
        (["trace", "--pcap", "/no/such/folder/x"], "a folder"),
        (["dance"], "help"),
    ],
)
def test_wrong_command_line__one_sentence_and_status_2(run, argv: list[str], remedy: str) -> None:
    fake = answers() | {"trace": [line({"trace": "pcapng", "record_bytes": 80, "ports": []})]}
    if argv == ["dance"]:
        assert main(argv) == 2
        return
    status, out, err = run(*argv, fake=fake)
    assert (status, out) == (2, "")
    assert remedy in err and err.count("\n") == 1 and err.startswith("homa: ")


@pytest.mark.parametrize("tool", [["ss"], ["top", "--once"], ["trace", "--duration", "1"]])
def test_no_homad__one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tool: list[str]
) -> None:
    path = tmp_path / "none.sock"
    assert main([*tool, "--monitor", str(path)]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and str(path) in err and "--monitor" in err


def test_refusal__homads_own_words(run) -> None:
    status, _, err = run("ss", fake={"snapshot": [line({"error": "only root may look"})]})
    assert status == 1 and "only root may look" in err


def test_top__terminal_goes_away(tmp_path: Path) -> None:
    """As when a window is closed under nohup: it ends, and has nothing to complain of."""
    keyboard, terminal = os.openpty()
    with homad(tmp_path / "m.sock", {"snapshot": [line(snapshot("after"))]}) as path:
        top = subprocess.Popen(
            [sys.executable, "-m", "tools", "top", "--interval", "0.1", "--monitor", path],
            stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, text=True, cwd=ROOT,
            start_new_session=True, env=os.environ | {"TERM": "xterm"},
        )  # fmt: skip
        os.close(terminal)
        assert os.read(keyboard, 1)  # it draws
        os.close(keyboard)
        _, err = top.communicate(timeout=60)
    assert (top.returncode, err) == (0, "")


def test_homad_goes_away__while_top_runs(run) -> None:
    def vanish(talk: socket.socket, request: dict) -> None:
        talk.close()

    fake = {"snapshot": [line(snapshot("before")), vanish]}
    status, _, err = run("top", "--once", "--interval", "0.1", fake=fake)
    assert status == 1 and "went away" in err and err.count("\n") == 1


def test_connection__answers_in_any_pieces(tmp_path: Path) -> None:
    def slowly(talk: socket.socket, request: dict) -> None:
        for byte in line({"rpc": 1}) + line({"end": True}):
            talk.sendall(bytes([byte]))

    with homad(tmp_path / "m", {"rpcs": [slowly]}) as path, Connection(path) as connection:
        assert list(connection.each("rpcs")) == [{"rpc": 1}]


# -- trace


def packets(count: int, cut: int = 0) -> bytes:
    body = struct.pack("=IIIII", 0, 0, 0, 4, 4) + b"abcd"
    one = struct.pack("=II", 6, 12 + len(body)) + body + struct.pack("=I", 12 + len(body))
    stream = one * count
    return stream[: len(stream) - cut]


def streams(data: bytes, then_end: bool):
    def talk_on(talk: socket.socket, request: dict) -> None:
        talk.sendall(
            line({"trace": request["format"], "record_bytes": 80, "ports": ["eth0"]}) + data
        )
        if not then_end:
            talk.recv(100)  # "stop"

    return talk_on


def test_trace__ends_in_time_and_counts(run, tmp_path: Path) -> None:
    fake = answers() | {"trace": [streams(packets(7), then_end=False)]}
    path = tmp_path / "x.pcapng"
    status, _, err = run("trace", "--pcap", str(path), "--duration", "0.3", fake=fake)
    assert (status, err) == (0, "homa: 7 packets\n")
    assert path.read_bytes() == packets(7)


def test_trace__a_homad_that_dies_leaves_whole_packets(run, tmp_path: Path) -> None:
    fake = answers() | {"trace": [streams(packets(7, cut=9), then_end=True)]}
    path = tmp_path / "x.pcapng"
    status, _, err = run("trace", "--pcap", str(path), fake=fake)
    assert status == 1 and "went away" in err and "6 packets" in err and err.count("\n") == 1
    assert path.read_bytes() == packets(6)


def test_trace__a_full_disk_leaves_whole_packets(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    fake = answers() | {"trace": [streams(packets(60000), then_end=False)]}
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20));"
        "from tools.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    with homad(tmp_path / "m", fake) as monitor:
        done = subprocess.run(
            [sys.executable, "-c", script, "trace", "--pcap", path, "--duration", "20", "--monitor", monitor],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1 and "ends early" in done.stderr and done.stderr.count("\n") == 1
    written = path.read_bytes()
    assert written and written == packets(len(written) // len(packets(1)))


def test_trace__asks_for_what_was_wanted(run, tmp_path: Path) -> None:
    asked: list[dict] = []

    def note(talk: socket.socket, request: dict) -> None:
        asked.append(request)
        streams(b"", then_end=False)(talk, request)

    fake = answers() | {"trace": [note]}
    argv = [
        "--app",
        "raw",
        "--peer",
        "10.0.0.2:54321",
        "--port",
        "80",
        "--snap",
        "60",
        "--duration",
        "0.1",
    ]
    run("trace", "--pcap", str(tmp_path / "x"), *argv, fake=fake)
    assert asked == [
        {
            "op": "trace",
            "format": "pcapng",
            "snap": 60,
            "app": "raw",
            "peer": "10.0.0.2",
            "port": 80,
        }
    ]
