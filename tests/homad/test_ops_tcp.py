# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TCP in ./homa ss, top and trace, the metrics and TCP_INFO: what homad says of the streams it carries."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from homad import BUILD, Host, needs_homad, needs_root, two_hosts
from netns import ROOT, eventually
from ops_tools import Raw, scrape, snapshot, tool

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


ECHO = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=128)
print("ready", flush=True)
while True:
    one, _ = listener.accept()
    one.sendall(one.recv(100))
    one.close()
"""
LISTENS_AGAIN = """
import socket, sys, time
listener = socket.create_server((sys.argv[1], 5000), backlog=128)
listener.listen(300)
print("ready", flush=True)
time.sleep(1000)
"""
COMING = """
import socket, sys
for i in range(10**9):
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30) as one:
        one.sendall(b"x")
        assert one.recv(1) == b"x"
    if i == 3:
        print("going on", flush=True)
"""
REFUSED = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 5999), timeout=30)
except ConnectionRefusedError:
    sys.exit(0)
sys.exit("it was not refused")
"""


def unmodified(*argv: str) -> list[str]:
    return ["env", f"HOMA_PRELOAD_LIB={LIBRARY}", str(HOMA_RUN), "--tcp", "--debug", *argv]


class Program:
    """PROGRAM on a host, and the pipe by which it is told what to do."""

    def __init__(
        self, host: Host, role: str, address: str, count: int, kernel: bool = False
    ) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "verbs"
        os.mkfifo(path)
        self._verbs = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        argv = [sys.executable, "-c", PROGRAM, role, address, "5000", str(count), str(path)]
        self.process = host.start(argv if kernel else unmodified(*argv))

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
def pair(
    a: Host, b: Host, count: int = 1, kernel: bool = False
) -> Iterator[tuple[Program, Program]]:
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


def sent_again(host: Host) -> int:
    """Segments that homad has sent again, of all its connections."""
    return snapshot(host.homad)["tcp"]["engine"]["retransmits"]


# -- ss


def test_ss__a_second_listen_changes_the_backlog(hosts: tuple[Host, Host]) -> None:
    _, b = hosts
    server = b.start(unmodified(sys.executable, "-c", LISTENS_AGAIN, b.v4))
    assert server.line() == "ready"
    eventually(lambda: only(b)["send_q"] == 300)
    server.stop(signal.SIGKILL)


def test_ss__listener_and_connection(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    with pair(a, b) as (client, server):
        listener, served = sorted(flows(b), key=lambda f: f["state"] != "listen")
        assert (listener["state"], listener["local"], listener["local_port"]) == (
            "listen",
            b.v4,
            5000,
        )
        assert (listener["recv_q"], listener["send_q"], listener["half_open"]) == (0, 128, 0)
        assert (served["state"], served["local_port"], served["peer"]) == (
            "established",
            5000,
            a.v4,
        )
        assert served["pid"] == listener["pid"] == server.process.pid and served["uid"] == 0
        asked = only(a)
        assert (asked["peer"], asked["peer_port"], asked["pid"]) == (b.v4, 5000, client.process.pid)
        assert asked["local_port"] == served["peer_port"]
        assert asked["age_ns"] > 0 and asked["error"] == 0 and not asked["orphan"]
        of_all, of_it = sent_again(a), only(a)["retransmits"]
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
        # On a busy machine segments are sent again: as many as homad counts at most, mostly none.
        assert asked["retransmits"] - of_it <= sent_again(a) - of_all
        assert (asked["send_q"], asked["mss"] > 500, asked["rtt_ns"] > 0) == (0, True, True)
        assert asked["data_segs_out"] >= 2 and asked["cwnd"] >= asked["mss"]


def test_ss__filters(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    with pair(a, b, 3):
        assert len(flows(b)) == 4 and len(flows(b, "--listening")) == 1
        assert len(flows(b, "--state", "established", "--peer", a.v4)) == 3
        assert not flows(b, "--peer", "10.99.99.99")
        assert len(flows(b, "--user", "root")) == len(flows(b, "--user", "0")) == 4 and not flows(
            b, "--user", "nobody"
        )
        assert len(flows(a, "--port", "5000")) == 3 and not flows(a, "--port", "5001")
        assert len(flows(a, "--app", flows(a)[0]["name"])) == 3 and not flows(
            a, "--app", "nobody-of-that-name"
        )
        assert (
            "established, fin-wait-1" in tool(a.homad, "ss", "--state", "opened", status=2).stderr
        )


@pytest.mark.parametrize("width", [80, 120])
def test_ss__text_fits(
    hosts: tuple[Host, Host], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    a, b = hosts
    with pair(a, b) as (client, _):
        client.say("send 100000")
        for argv in (("--tcp",), ("--tcp", "--details"), ()):
            text = tool(b.homad, "ss", *argv).stdout
            assert "1 TCP connections, 1 listeners" in text and f"{b.v4}:5000" in text
        text = tool(b.homad, "ss", "-td").stdout
        assert "cwnd:" in text and "rto:" in text and "bytes_received:" in text


def test_flows__while_they_come_and_go(hosts: tuple[Host, Host]) -> None:
    """Those that stay are seen each time, and once; none is shown with what cannot be."""
    a, b = hosts
    with pair(a, b, 40):
        churn = b.start(unmodified(sys.executable, "-c", ECHO, b.v4, "6000"))
        assert churn.line() == "ready"
        coming = a.start(unmodified(sys.executable, "-c", COMING, b.v4, "6000"))
        assert coming.line() == "going on"
        for _ in range(10):
            seen = flows(b, "--port", "5000", "--state", "established")
            assert len({f["peer_port"] for f in seen}) == len(seen) == 40
            for flow in flows(b):
                assert flow["age_ns" if flow["state"] != "listen" else "recv_q"] < 300e9
        assert coming.running()
        coming.stop(signal.SIGKILL)
        churn.stop(signal.SIGKILL)


def test_flows__in_time_wait_if_asked(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    with pair(a, b, 3) as (client, server):
        assert client.tell("close") == server.tell("close") == "done"
        # Who closes first waits; the server may be first on the wire, or both at once.
        wait = ("--state", "time-wait")
        eventually(lambda: len(flows(a, *wait) + flows(b, *wait)) >= 3)
        assert not flows(a) and 0 < (flows(a, *wait) + flows(b, *wait))[0]["due_ns"] <= 60e9


def test_flows__reader_that_does_not_read(hosts: tuple[Host, Host]) -> None:
    """Viewers that ask and do not read, or end in the middle, cost the connections nothing."""
    a, b = hosts
    with pair(a, b, 100) as (client, server):
        lazy = [Raw(b.homad.monitor) for _ in range(8)]
        for viewer in lazy:
            viewer.send(b'{"op":"flows","time_wait":true}\n' * 100)
        for viewer in lazy[:4]:
            viewer.close()
        assert client.tell("send 1000") == server.tell("read 1000") == "done"
        for wrong in (
            b'{"op":"flows","time_wait":[[]]}',
            b'{"op":["flows"]}',
            b'{"op":"flows","time_wait":-1}',
        ):
            with Raw(b.homad.monitor) as raw:
                raw.send(wrong + b"\n")
                assert raw.line()
        assert len(flows(b)) == 101
        for viewer in lazy[4:]:
            viewer.close()


# -- counters, and top


def metrics(host: Host) -> dict[str, float]:
    """Samples by name with its labels but for those that say which thread or process."""
    found: dict[str, float] = {}
    for line in scrape(host.homad.folder / "metrics.sock")[1].splitlines():
        name, value = re.sub(r'\{thread="0"\}|(app|name|pid)="[^"]*",?', "", line).rsplit(" ", 1)
        if not line.startswith("#"):
            found[name] = found.get(name, 0) + float(value)
    return found


def test_metrics__streams_of_users_and_what_is_refused() -> None:
    with two_hosts(RULES) as (a, b):
        for host in (a, b):
            host.homad.stop()
            host.homad.arguments = ["--metrics", f"unix:{host.homad.folder / 'metrics.sock'}"]
            host.homad.start()
        with pair(a, b, 2) as (client, server):
            assert client.tell("send 5000") == server.tell("read 5000") == "done"
            eventually(lambda: metrics(b)['homa_user_tcp_rx_bytes_total{uid="0"}'] == 10000)
            seen = metrics(b)
            assert seen["homa_tcp_connections"] == seen['homa_user_tcp_streams{uid="0"}'] == 2
            assert (
                seen['homa_user_tcp_listeners{uid="0"}'] == 1
                and seen["homa_tcp_opened_passive_total"] == 2
            )
            assert seen['homa_app_tcp_rx_bytes_total{uid="0"}'] == 10000
            assert metrics(a)['homa_user_tcp_tx_bytes_total{uid="0"}'] == 10000
            # What goes wrong is counted, too.
            assert not metrics(a)["homa_tcp_open_failures_total"]
            a.run(unmodified(sys.executable, "-c", REFUSED, b.v4))
            assert metrics(a)["homa_tcp_open_failures_total"] == 1
            text = scrape(b.homad.folder / "metrics.sock")[1]
            for line in text.splitlines():
                if line.startswith("homa_tcp"):
                    assert f"# HELP {re.split(r'[ {]', line)[0]} " in text


def test_top__sees_streams(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    with pair(a, b, 2) as (client, server):
        assert client.tell("send 1000") == "done"
        for _ in range(50):
            client.say("send 1000")
        server.say("read 51000")
        picture = json.loads(tool(a.homad, "top", "--once", "--json", "--interval", "1").stdout)
        assert picture["tcp"]["connections"] == 2 and picture["apps"][0]["streams"] == 2
        text = tool(a.homad, "top", "--once", "--interval", "0.2").stdout
        assert re.search(r"^TCP +open 2 +new 0/s", text, re.M)
        for _ in range(50):
            assert client.line() == "done"
        assert server.line() == "done"
