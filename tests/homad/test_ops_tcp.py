# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TCP in ./homa ss, top and trace, the metrics and TCP_INFO: what homad says of the streams it carries."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from homad import BUILD, Host, needs_homad, needs_root, two_hosts
from netns import ROOT, eventually
from ops_tools import tool

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

HOMA_RUN = ROOT / "lib" / "preload" / "homa-run"
LIBRARY = BUILD / "lib" / "preload" / "libhoma-preload.so"
RULES = """
[protocol]
timeout_us = 20000000

[[tcp_rule]]
listen = [1000, 9999]
connect = [1000, 9999]
"""
# Holds connections: the server reads nothing before it is told to; lines of the pipe are verbs.
PROGRAM = r"""
import socket, struct, sys, time
role, address, port, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if role == "serve":
    listener = socket.create_server((address, port), backlog=128)
    print("ready", flush=True)
    conns = [listener.accept()[0] for _ in range(count)]
else:
    conns = [socket.create_connection((address, port), timeout=60) for _ in range(count)]
print("open", flush=True)
for line in open(sys.argv[5]):
    verb, *rest = line.split()
    if verb == "send":
        for one in conns:
            one.sendall(bytes(int(rest[0])))
    elif verb == "read":
        for one in conns:
            left = int(rest[0])
            while left:
                left -= len(one.recv(left))
    elif verb == "info":
        raw = conns[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
        print(raw.hex(), flush=True)
        continue
    elif verb == "close":
        for one in conns:
            one.close()
    print("done", flush=True)
"""


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    with two_hosts(RULES) as both:
        yield both


class Program:
    """PROGRAM on a host, and the pipe by which it is told what to do."""

    def __init__(self, host: Host, role: str, address: str, count: int, kernel: bool = False) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "verbs"
        os.mkfifo(path)
        self._verbs = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        words = [] if kernel else ["env", f"HOMA_PRELOAD_LIB={LIBRARY}", str(HOMA_RUN), "--tcp", "--debug"]
        argv = [sys.executable, "-c", PROGRAM, role, address, "5000", str(count), str(path)]
        self.process = host.start([*words, *argv])

    def line(self) -> str:
        return self.process.line()

    def tell(self, verb: str) -> str:
        os.write(self._verbs, verb.encode() + b"\n")
        return self.line()

    def say(self, verb: str) -> None:
        """Without waiting for the answer."""
        os.write(self._verbs, verb.encode() + b"\n")

    def end(self) -> None:
        self.process.stop(signal.SIGKILL)
        os.close(self._verbs)
        self.folder.cleanup()


@contextmanager
def pair(a: Host, b: Host, count: int = 1, kernel: bool = False) -> Iterator[tuple[Program, Program]]:
    """Connections from `a` to `b`: client, server; the client of the kernel, if that is said."""
    server = Program(b, "serve", b.v4, count)
    assert server.line() == "ready"
    client = Program(a, "connect", b.v4, count, kernel)
    assert client.line() == "open" and server.line() == "open"
    yield client, server
    client.end()
    server.end()


def flows(host: Host, *argv: str) -> list[dict]:
    return json.loads(tool(host.homad, "ss", "--tcp", "--json", *argv).stdout)["tcp"]


def only(host: Host, *argv: str) -> dict:
    (one,) = flows(host, *argv)
    return one


# -- ss


def test_ss__listener_and_connection(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    with pair(a, b) as (client, server):
        listener, served = sorted(flows(b), key=lambda f: f["state"] != "listen")
        assert (listener["state"], listener["local"], listener["local_port"]) == ("listen", b.v4, 5000)
        assert (listener["recv_q"], listener["send_q"], listener["half_open"]) == (0, 128, 0)
        assert (served["state"], served["local_port"], served["peer"]) == ("established", 5000, a.v4)
        assert served["pid"] == listener["pid"] == server.process.pid and served["uid"] == 0
        asked = only(a)
        assert (asked["peer"], asked["peer_port"], asked["pid"]) == (b.v4, 5000, client.process.pid)
        assert asked["local_port"] == served["peer_port"]
        assert asked["age_ns"] > 0 and asked["error"] == 0 and not asked["orphan"]
        # Bytes lie where they are: written and taken, written and not taken.
        assert client.tell("send 3000") == "done"
        eventually(lambda: only(b, "--state", "established")["recv_q"] == 3000)
        assert server.tell("read 1000") == "done"
        eventually(lambda: only(b, "--state", "established")["recv_q"] == 2000)
        served = only(b, "--state", "established")
        assert (served["bytes_received"], served["bytes_acked"]) == (3000, 0)
        assert served["data_segs_in"] > 0 and served["segs_in"] >= served["data_segs_in"]
        eventually(lambda: only(a)["bytes_acked"] == 3000)
        asked = only(a)
        assert (asked["send_q"], asked["retransmits"], asked["mss"] > 500, asked["rtt_ns"] > 0) == (0, 0, True, True)
        assert asked["data_segs_out"] >= 2 and asked["cwnd"] >= asked["mss"]


def test_ss__filters(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    with pair(a, b, 3):
        assert len(flows(b)) == 4 and len(flows(b, "--listening")) == 1
        assert len(flows(b, "--state", "established", "--peer", a.v4)) == 3
        assert not flows(b, "--peer", "10.99.99.99")
        assert len(flows(b, "--user", "root")) == len(flows(b, "--user", "0")) == 4 and not flows(b, "--user", "nobody")
        assert len(flows(a, "--port", "5000")) == 3 and not flows(a, "--port", "5001")
        assert len(flows(a, "--app", flows(a)[0]["name"])) == 3 and not flows(a, "--app", "nobody-of-that-name")
        assert "established, fin-wait-1" in tool(a.homad, "ss", "--state", "opened", status=2).stderr


@pytest.mark.parametrize("width", [80, 120])
def test_ss__text_fits(hosts: tuple[Host, Host], width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    a, b = hosts
    with pair(a, b) as (client, _):
        client.say("send 100000")
        for argv in (("--tcp",), ("--tcp", "--details"), ()):
            text = tool(b.homad, "ss", *argv).stdout
            assert "1 TCP connections, 1 listeners" in text and f"{b.v4}:5000" in text
        text = tool(b.homad, "ss", "-td").stdout
        assert "cwnd:" in text and "rto:" in text and "bytes_received:" in text
