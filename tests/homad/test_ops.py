# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homad's monitoring socket and ./homa ss and top against a real daemon with real traffic."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from homad import MOST_KB, Homad, keeps_little, needs_homad, needs_root, one_host, two_hosts
from netns import ROOT, eventually
from ops_tools import RPCS, Raw, ask, serving, snapshot, tool

pytestmark = [needs_homad, needs_root]

READ = """
import contextlib, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
with contextlib.suppress(BrokenPipeError):  # it has been refused already, with a sentence
    s.sendall(b'{"op":"snapshot"}\\n')
print(s.makefile().readline())
"""


def sockets(homad: Homad, *argv: str) -> list[dict]:
    return json.loads(tool(homad, "ss", "--json", *argv).stdout)["sockets"]


def test_ss__sockets_of_all_applications() -> None:
    with one_host() as host, serving(host, 4000) as server:
        (one,) = sockets(host.homad)
        assert (one["port"], one["server"], one["pid"]) == (4000, True, server.pid)
        ask(host, host, 50)
        eventually(lambda: len(sockets(host.homad)) == 1)
        (one,) = sockets(host.homad)
        assert one["counters"]["replies"] == 50
        assert one["counters"]["rx_bytes"] == one["counters"]["tx_bytes"] == 5000
        assert not sockets(host.homad, "--port", "4001")


@pytest.mark.sanitized
def test_ss__rpcs_and_peers_at_both_ends() -> None:
    with two_hosts() as (a, b), serving(b, 4000, "hold"):
        client = a.start([RPCS, "ask", b.v4, "4000", "5", "3000", "5"])
        assert client.line() == "asking"

        def rpcs(host, **wanted) -> list[dict]:
            found = json.loads(tool(host.homad, "ss", "-r", "--json").stdout)["rpcs"]
            return [r for r in found if all(r[k] == v for k, v in wanted.items())]

        eventually(lambda: len(rpcs(b, phase="in-service")) == 5)
        served = rpcs(b, phase="in-service")
        asked = rpcs(a, client=True)
        assert {r["rpc"] ^ 1 for r in served} == {r["rpc"] for r in asked}
        for r in served:
            assert (r["port"], r["rx_received"], r["rx_length"], r["client"]) == (
                4000,
                3000,
                3000,
                False,
            )
        for r in asked:
            assert (r["peer_port"], r["tx_sent"], r["tx_length"]) == (4000, 3000, 3000)
            assert r["app"] == sockets(a.homad)[0]["app"]
        (peer,) = json.loads(tool(b.homad, "ss", "-p", "--json").stdout)["peers"]
        assert (peer["peer"], peer["rpcs"], peer["server_rpcs"]) == (a.v4, 5, 5)
        assert "in-service" in tool(b.homad, "ss", "--all").stdout
        client.stop(signal.SIGKILL)


def test_rpcs__more_than_one_piece_of_the_answer() -> None:
    with one_host() as host, serving(host, 4000, "hold"):
        client = host.start([RPCS, "ask", host.v4, "4000", "300", "10", "300"])
        assert client.line() == "asking"

        def rows() -> list[dict]:
            return json.loads(tool(host.homad, "ss", "-r", "--json", "--port", "4000").stdout)[
                "rpcs"
            ]

        # Each of them has two ends on one machine.
        eventually(lambda: len(rows()) == 600)
        assert len({r["rpc"] for r in rows()}) == 600
        assert {(r["client"], r["phase"], r["via"], r["name"]) for r in rows()} == {
            (True, "outgoing", "local", "raw"), (False, "in-service", "local", "raw"),
        }  # fmt: skip
        client.stop(signal.SIGKILL)


def test_top__sees_traffic() -> None:
    with two_hosts() as (a, b), serving(b):
        client = a.start([RPCS, "ask", b.v4, "4000", "0", "1000", "4"])
        assert client.line() == "asking"
        picture = json.loads(tool(a.homad, "top", "--once", "--json", "--interval", "0.5").stdout)
        assert picture["engine"]["requests_sent"] > 0
        assert picture["latency"]["count"] > 0 and picture["latency"]["p50"] > 1000
        assert picture["apps"][0]["requests"] > 0 and picture["apps"][0]["rx_bytes"] > 0
        assert picture["threads"][0]["cpu"] > 0 and picture["threads"][0]["commands"] > 0
        assert any(p["rx_packets"] > 0 for p in picture["ports"])
        client.stop(signal.SIGKILL)


def test_top__on_a_terminal_of_80x24() -> None:
    """The tool draws, sorts on a key, says when homad has gone, and gives the terminal back."""
    with one_host() as host, serving(host):
        pid, fd = pty.fork()
        if not pid:
            env = {
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "TERM": "xterm",
                "COLUMNS": "80",
                "LINES": "24",
            }
            argv = [
                sys.executable,
                "-m",
                "tools",
                "top",
                "--interval",
                "0.2",
                "--monitor",
                str(host.homad.monitor),
            ]
            os.execve(sys.executable, argv, env)
        shown = b""

        def await_text(text: bytes) -> None:
            nonlocal shown
            deadline = time.monotonic() + 20
            while text not in shown:
                assert time.monotonic() < deadline, shown[-3000:]
                if select.select([fd], [], [], 0.1)[0]:
                    with suppress(OSError):
                        shown += os.read(fd, 65536)

        try:
            await_text(b"q quits")
            assert b"p99.9" in shown and b"raw" in shown
            os.write(fd, b"b")
            await_text(b"by bytes")
            host.homad.stop()
            await_text(b"went away")
            assert b"Traceback" not in shown
        finally:
            with suppress(OSError):
                os.kill(pid, 9)
            os.close(fd)
            os.waitpid(pid, 0)


# -- the socket


def test_monitor__others_are_refused() -> None:
    """The file's mode keeps them out; where it does not, homad does."""
    with one_host() as host:
        assert host.homad.monitor.stat().st_mode & 0o777 == 0o600
        host.homad.monitor.chmod(0o666)
        done = subprocess.run(
            ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3", "-c", READ,
             str(host.homad.monitor)], capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        assert "only root" in done.stdout


def test_monitor__its_group_is_let_in_by_a_homad_without_privileges() -> None:
    """The socket is made while homad may still give it away."""
    with one_host(config={"process": {"user": "nobody"}, "monitor": {"group": "daemon"}}) as host:
        path, folder = host.homad.monitor, host.homad.folder
        assert (path.stat().st_mode & 0o777, path.group()) == (0o660, "daemon")

        def read_as(*groups: str) -> str:
            done = subprocess.run(
                ["setpriv", "--reuid", "games", *groups, "/usr/bin/python3", "-c", READ, str(path)],
                capture_output=True, text=True, timeout=30,
            )  # fmt: skip
            return done.stdout

        assert '"pid"' in read_as("--regid", "daemon", "--clear-groups")
        assert '"pid"' in read_as("--regid", "games", "--groups", "mail,daemon")
        assert not read_as("--regid", "games", "--clear-groups")
        shutil.chown(folder, "nobody")  # so that it can take its sockets away


@pytest.mark.sanitized
def test_monitor__nonsense_is_answered_and_harmless() -> None:
    with one_host() as host:
        with Raw(host.homad.monitor) as raw:
            for nonsense in (
                b"\n",
                b"{}\n",
                b"[1]\n",
                b"\xff\x00\n",
                b'{"op": 5}\n',
                b'{"op":"trace","format":7}\n',
            ):
                assert "error" in raw.ask(nonsense), nonsense
            for bad in ({"snap": -1}, {"snap": "x"}, {"app": []}, {"peer": "x"}, {"port": 70000}):
                assert "error" in raw.ask({"op": "trace", "format": "records"} | bad), bad
            assert raw.ask({"op": "snapshot"})["homad"]["pid"] == host.homad.pid
        with Raw(host.homad.monitor) as raw:
            raw.send(b"x" * 5000)
            assert "error" in raw.line()
            with suppress(ConnectionResetError):  # what it did not read any more
                assert raw.read() == b""
        assert snapshot(host.homad)["homad"]["attachments"] == 0


def test_monitor__many_requests_in_one_packet() -> None:
    with one_host() as host, Raw(host.homad.monitor) as raw:
        raw.send(b'{"op":"rpcs"}\n{"op":"snapshot"}\n{"op":"peers"}\n')
        assert raw.line() == {"end": True, "count": 0}
        assert "homad" in raw.line()
        assert raw.line() == {"end": True, "count": 0}


@pytest.mark.sanitized
def test_monitor__viewers_that_do_not_read_cost_nothing_forever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keeps_little(monkeypatch)
    with one_host() as host, serving(host):
        lazy = [Raw(host.homad.monitor) for _ in range(8)]
        for raw in lazy:
            raw.socket.setblocking(False)
            try:
                for _ in range(2000):
                    raw.send({"op": "snapshot"})
            except BlockingIOError:
                pass
        ask(host, host, 100)
        assert snapshot(host.homad)["homad"]["attachments"] >= 1
        assert host.homad.rss() < MOST_KB
        before = len(host.homad.fds())
        for raw in lazy:
            raw.close()
        eventually(lambda: len(host.homad.fds()) <= before - 8)


def test_monitor__too_many_viewers_are_told() -> None:
    with one_host() as host:
        viewers = [Raw(host.homad.monitor) for _ in range(33)]
        assert "too many" in viewers[-1].line()["error"]
        for raw in viewers:
            raw.close()
        eventually(lambda: "homad" in snapshot(host.homad))


def test_monitor__of_a_dead_daemon_is_replaced_and_of_a_living_one_not() -> None:
    with one_host() as host:
        host.homad.kill()
        assert host.homad.monitor.exists()
        host.homad.start()
        assert snapshot(host.homad)["homad"]["pid"] == host.homad.pid
        other = Homad(None, arguments=["--udp-only"])
        other.monitor = host.homad.monitor
        other.start(wait=False)
        assert other.wait() != 0
        assert "another homad" in other.log()
        assert snapshot(host.homad)["homad"]["pid"] == host.homad.pid
        other.finish()


def test_idle__no_wakeups_after_a_viewer_has_gone() -> None:
    with one_host() as host:
        for _ in range(3):
            snapshot(host.homad)
        with Raw(host.homad.monitor) as raw:
            assert raw.ask({"op": "trace", "format": "pcapng"})["trace"] == "pcapng"
        connected = socket.socket(socket.AF_UNIX)
        connected.connect(str(host.homad.monitor))

        def quiet() -> bool:
            before = host.homad.switches()
            time.sleep(1)
            return host.homad.switches() == before

        eventually(quiet, 20)
        connected.close()
