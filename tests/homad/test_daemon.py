# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homad as a process: command line, systemd, privileges, reload, log, and the places it claims."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attachtool import ATTACH, BIND, LISTEN, LISTEN_ON, Client, request
from homad import HOMAD, SANITIZED, Homad, finishing, needs_homad, needs_root, one_host
from netns import ROOT, Namespace, Net, eventually

pytestmark = [needs_homad, needs_root]

UDP = ["--udp-only"]
NET_ADMIN, BPF = 1 << 12, 1 << 39
CLAIM = b"\0homad-one-per-network-namespace"


def homad(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HOMAD, *words], capture_output=True, text=True, check=False, timeout=30)


# ---- command line ----


@pytest.mark.parametrize(
    "words, piece",
    [
        (["--wrong"], "unknown option '--wrong'"),
        (["-x"], "unknown option"),
        (["stray"], "unknown option"),
        (["--mode"], "needs a value"),
        (["--mode", "fast"], "shared or dedicated"),
        (["--mode", "dedicated"], "--cores"),
        (["--cores", "1,x"], "list of"),
        (["--cores", "3-1"], "list of"),
        (["--cores", "0-99"], "list of"),
        (["--log-level", "loud"], "error, warning, info or debug"),
        (["--log-json=1"], "takes no value"),
        (["--set", "rtt=1"], "unknown setting"),
        (["--set", "max_overcommit=99"], "from 1 to 32"),
        (["--interface", "a-name-that-is-too-long"], "at most"),
        (["--socket", "/" + 120 * "x"], "at most"),
        (["--socket", ""], "a path"),
    ],
)
def test_command_line__mistakes(words: list[str], piece: str) -> None:
    done = homad(*words)
    assert done.returncode == 2 and done.stdout == "", done
    assert piece in done.stderr and done.stderr.count("\n") == 1, done


@pytest.mark.parametrize(
    "words, piece",
    [
        (["--udp-only"], "AF_XDP only"),
    ],
)
def test_command_line__leaves_no_room_for_tcp_rules(
    words: list[str], piece: str, tmp_path: Path
) -> None:
    """What the file says is right until the command line changes what it relies on."""
    file = tmp_path / "homad.toml"
    file.write_text("[[tcp_rule]]\nlisten = [80, 80]\n")
    said = homad("--config", str(file), "--check-config")
    assert said.returncode == 0, said
    said = homad("--config", str(file), *words, "--check-config")
    assert said.returncode == 2 and piece in said.stderr and "[[tcp_rule]]" in said.stderr, said


def test_command_line__says_what_there_is() -> None:
    usage = homad("--help")
    assert usage.returncode == 0
    for option in ("--config FILE", "--check-config", "--socket", "--set NAME=VALUE", "--cores"):
        assert option in usage.stdout
    assert re.fullmatch(r"homad \d+\.\d+\.\d+\n", homad("--version").stdout)
    settings = homad("--config-help").stdout
    params = (ROOT / "engine" / "homa" / "homa_params.def").read_text()
    names = re.findall(r"^PARAM\((\w+)", params, re.M)
    assert len(names) > 20 and all(f" {name} = " in settings for name in names)


def test_example_config__is_right_and_shows_the_defaults(tmp_path: Path) -> None:
    text = (ROOT / "packaging" / "homad.toml").read_text()
    text = re.sub(r'^group = "homa"$', 'group = "root"', text, flags=re.M)
    file = tmp_path / "homad.toml"
    file.write_text(text)
    done = homad("--check-config", "--config", str(file))
    assert done.returncode == 0, done.stderr
    file.write_text(text + "wrong = 1\n")
    done = homad("--check-config", "--config", str(file))
    assert done.returncode == 2 and "protocol.wrong" in done.stderr, done
    # What is commented out is right, too, and every setting is there.
    live = re.sub(r"^#(?=\w+ = )", "", text, flags=re.M).replace("cores = [2, 3]", "cores = []")
    file.write_text(live)
    done = homad("--check-config", "--config", str(file))
    assert done.returncode == 0, done.stderr
    settings = homad("--config-help").stdout.split("[[rule]]")[0]
    known = re.findall(r"^[* ] (\w+) = (.*)$", settings, re.M)
    assert len(known) > 25
    for name, value in known:
        shown = [found for found, _ in re.findall(rf"^#?{name} = ([^#\n]*?) *(#|$)", text, re.M)]
        assert shown, f"{name} is missing in packaging/homad.toml"
        if name not in ("cores", "mode", "group", "user_memory", "total_memory"):
            assert value in shown, name


# ---- systemd ----


class Notified:
    """What a daemon tells its service manager."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(60 if SANITIZED else 20)

    def next(self) -> str:
        return self.socket.recv(4096).decode()


def test_notify__every_state_and_the_watchdog(tmp_path: Path) -> None:
    path = tmp_path / "notify"
    notified = Notified(path)
    env = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "300000"}
    with one_host(start=False, arguments=UDP, env=env) as host:
        host.homad.start(wait=False)
        assert "READY=1" in notified.next()
        assert [notified.next() for _ in range(3)] == ["WATCHDOG=1"] * 3
        host.homad.send_signal(signal.SIGHUP)
        states = [s for s in (notified.next() for _ in range(3)) if s != "WATCHDOG=1"]
        assert re.match(r"RELOADING=1\nMONOTONIC_USEC=\d+", states[0]), states
        while "READY=1" not in states[-1]:
            states.append(notified.next())
        assert host.homad.stop() == 0
        while "STOPPING=1" not in states[-1]:
            states.append(notified.next())


ABSTRACT = (
    "import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM);"
    "s.bind(b'\\0homad-manager'); print('bound', flush=True);"
    "print(s.recv(99).split(b'\\n')[0].decode(), flush=True)"
)


def test_notify__abstract_socket() -> None:
    env = {"NOTIFY_SOCKET": "@homad-manager"}
    with one_host(arguments=UDP, start=False, env=env) as host:
        manager = host.space.start(["/usr/bin/python3", "-c", ABSTRACT])
        assert manager.line() == "bound"
        host.homad.start(wait=False)
        assert manager.line() == "READY=1"


def test_notify__a_manager_that_is_gone_does_no_harm() -> None:
    env = {"NOTIFY_SOCKET": "/nonexistent/notify"}
    with one_host(arguments=UDP, start=False, env=env) as host:
        host.homad.start(wait=False)
        host.homad.await_log(" ready ")


# ---- privileges ----


def capabilities(daemon: Homad) -> list[tuple[int, int, int]]:
    """Effective, permitted, ambient of every thread."""
    found = []
    for task in Path(f"/proc/{daemon.pid}/task").iterdir():
        status = (task / "status").read_text()
        values = dict(re.findall(r"^(Cap\w+|NoNewPrivs):\s+([0-9a-f]+)$", status, re.M))
        assert values["NoNewPrivs"] == "1"
        found.append(tuple(int(values[k], 16) for k in ("CapEff", "CapPrm", "CapAmb")))
    assert len(found) >= 2
    return found


def test_privileges__only_what_devices_need_is_kept() -> None:
    with one_host() as host:
        if "serving a device" not in host.homad.log():
            pytest.skip("AF_XDP does not work here")
        for effective, permitted, ambient in capabilities(host.homad):
            assert effective == permitted and permitted & ~(NET_ADMIN | BPF) == 0 and ambient == 0


def test_privileges__with_udp_alone_nothing_is_kept() -> None:
    with one_host(arguments=UDP) as host:
        assert set(capabilities(host.homad)) == {(0, 0, 0)}


def test_privileges__becomes_another_user() -> None:
    with one_host(config={"process": {"user": "nobody"}}, start=False) as host:
        os.chown(host.homad.folder, 65534, 65534)
        host.homad.start()
        status = Path(f"/proc/{host.homad.pid}/status").read_text()
        assert re.search(r"^Uid:(\s+65534){4}$", status, re.M)
        assert re.search(r"^Gid:(\s+65534){4}$", status, re.M)
        assert re.search(r"^Groups:\s*(65534\s*)?$", status, re.M)
        with Client(host.homad.socket) as client:
            client.attach()


# ---- reload ----


def test_reload__takes_over_what_can_change() -> None:
    config = {"quota": {"rpcs": 100}, "log": {"level": "info"}}
    with one_host(config=config, arguments=UDP) as host:
        before = host.homad.resources()
        with Client(host.homad.socket) as client:
            client.attach()
            assert client.ask(BIND, port=2000).error == 0
            host.homad.configure(
                {
                    "quota": {"rpcs": 7, "attachments": 1},
                    "log": {"level": "debug", "format": "json"},
                    "threads": {"spin_us": 10, "scale": False},
                    "protocol": {"max_overcommit": 3, "max_peers": 500},
                }
            )
            host.homad.send_signal(signal.SIGHUP)
            host.homad.await_log('"message":"configuration read again"')
            log = host.homad.log()
            for name in ("quota.rpcs", "protocol.max_overcommit", "threads.spin_us"):
                assert re.search(rf"setting changed.*{name}", log), name
            for name in ("threads.scale", "protocol.max_peers"):
                assert re.search(rf"needs a restart.*{name} ", log), name
            assert client.ask(BIND, port=2001).error == 0
            with Client(host.homad.socket) as second:
                assert second.ask(ATTACH).error < 0
        host.homad.await_resources(before)
        # Nothing changed since: nothing is said to have.
        marks = host.homad.log().count("needs a restart")
        host.homad.send_signal(signal.SIGHUP)
        eventually(lambda: host.homad.log().count("configuration read again") == 2)
        assert host.homad.log().count("needs a restart") == marks + 2
        assert host.homad.log().count("setting changed") == log.count("setting changed")


def test_reload__rules_hold_from_now_on() -> None:
    with one_host(arguments=UDP) as host, Client(host.homad.socket) as client:
        client.attach()
        host.homad.configure("[[rule]]\nuser = 0\nports = [2000, 2001]\n")
        host.homad.send_signal(signal.SIGHUP)
        host.homad.await_log("configuration read again")
        assert client.ask(BIND, port=3000).error < 0
        assert client.ask(BIND, port=2001).error == 0
        assert client.ask(LISTEN, size=LISTEN_ON, port=3000).error < 0
        with Client(host.homad.socket) as automatic:
            port = automatic.attach().port
            assert automatic.ask(LISTEN, size=LISTEN_ON).port == port >= 0x8000
        host.homad.configure("[[rule]]\nallow = false\n")
        host.homad.send_signal(signal.SIGHUP)
        eventually(lambda: host.homad.log().count("configuration read again") == 2)
        with Client(host.homad.socket) as second:
            assert "may not attach" in second.ask(ATTACH).text
        assert client.ask(BIND, port=2000).error < 0
        assert client.ask(LISTEN, size=LISTEN_ON).error < 0
        assert client.ask(LISTEN).error == 0


def test_reload__a_broken_file_changes_nothing() -> None:
    with one_host(config={"quota": {"attachments": 2}}, arguments=UDP) as host:
        broken = "[quota]\nattachments = 1\nrpcz = 3\n[log]\nlevel = 1\n"
        for i, text in enumerate((broken, "nonsense", "[quota")):
            host.homad.configure(text)
            host.homad.send_signal(signal.SIGHUP)
            eventually(lambda: host.homad.log().count("stays as it was") == i + 1)  # noqa: B023
        log = host.homad.log()
        assert ":3: there is no setting quota.rpcz" in log and ":5: log.level" in log
        host.homad.config_file.unlink()
        host.homad.send_signal(signal.SIGHUP)
        eventually(lambda: host.homad.log().count("stays as it was") == 4)
        with Client(host.homad.socket) as one, Client(host.homad.socket) as two:
            one.attach()
            two.attach()


# ---- log ----


def test_log__json_lines_whatever_applications_are_called() -> None:
    arguments = [*UDP, "--log-json", "--log-level", "debug"]
    with one_host(arguments=arguments) as host:
        names = ['"}, {"level":"error', "a=b c=d\n", "\x1b[31mred", "", 40 * "x", "ä"]
        for name in names:
            with Client(host.homad.socket) as client:
                client.send(request(ATTACH, name=name[:31]))
                assert client.answer()
        eventually(lambda: host.homad.log().count('"attached"') == len(names))
        lines = [json.loads(line) for line in host.homad.log().splitlines()]
        assert all({"time", "level", "message"} <= line.keys() for line in lines)
        assert {line["level"] for line in lines} <= {"debug", "info", "warning"}
        attached = [line for line in lines if line["message"] == "attached"]
        assert [line["app"] for line in attached] == list(range(1, len(names) + 1))
        assert all(re.fullmatch(r"[!-~]+", line["name"]) for line in attached)
        assert all(line["uid"] == 0 and line["pid"] == os.getpid() for line in attached)


def test_log__a_noisy_application_is_cut_short() -> None:
    with one_host(arguments=[*UDP, "--log-level", "debug"]) as host:
        for _ in range(400):
            with Client(host.homad.socket) as client:
                client.attach()
        assert host.homad.log().count(" debug attached ") < 300

        def told() -> bool:
            with Client(host.homad.socket) as client:
                client.attach()
            return re.search(r"attached .*left_out=[1-9]", host.homad.log()) is not None

        eventually(told)


# ---- places ----


@contextmanager
def another(space: Namespace, daemon: Homad) -> Iterator[Homad]:
    """A further daemon with the files of `daemon`, but with its own log."""
    second = Homad(space, arguments=UDP, folder=daemon.folder)
    second.log_file = daemon.folder / f"log-{time.monotonic_ns()}"
    with finishing(second):
        yield second


def refused(second: Homad) -> str:
    second.start(wait=False)
    assert second.wait() == 1
    return second.log()


def test_socket__of_a_living_daemon_in_another_namespace() -> None:
    with one_host(arguments=UDP) as host:
        assert host.peer
        with another(host.peer, host.homad) as second:
            log = refused(second)
            assert f"pid {host.homad.pid}" in log and "serves" in log, log
        with Client(host.homad.socket) as client:
            client.attach()


def test_socket__of_a_dead_daemon_is_replaced() -> None:
    with one_host(arguments=UDP) as host:
        host.homad.kill()
        assert host.homad.socket.exists()
        host.homad.start()
        with Client(host.homad.socket) as client:
            client.attach()


def test_socket__of_another_program_and_other_files_are_left_alone() -> None:
    with one_host(arguments=UDP, start=False) as host:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(host.homad.socket))
        listener.listen()
        with another(host.space, host.homad) as second:
            assert "another program listens" in refused(second)
        listener.close()
        host.homad.socket.unlink()
        host.homad.socket.write_text("precious")
        with another(host.space, host.homad) as second:
            assert "is no socket" in refused(second)
        assert host.homad.socket.read_text() == "precious"
        host.homad.socket.unlink()
        host.homad.start()


SQUATTER = (
    "import socket, sys, os;"
    "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET);"
    f"s.bind({CLAIM!r}); s.listen(1); print(os.getpid(), flush=True); sys.stdin.read()"
)


def test_claim__of_a_stranger_does_not_stop_root() -> None:
    """Anybody could make an abstract socket of that name."""
    with one_host(arguments=UDP, start=False) as host:
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        for prefix, stops in ((nobody, False), ([], True)):
            squatter = subprocess.Popen(
                host.space.command([*prefix, "/usr/bin/python3", "-c", SQUATTER]),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert squatter.stdout
            pid = squatter.stdout.readline().strip()
            with another(host.space, host.homad) as daemon:
                if stops:
                    assert f"pid {pid} is running" in refused(daemon)
                else:
                    daemon.start()
                    assert f"pid={pid}" in daemon.await_log("going on without regard")
            squatter.communicate()


def test_monitor__is_beside_the_other_socket(tmp_path: Path) -> None:
    """Who says --socket and no more needs no /run/homa."""
    tmp_path.chmod(0o755)
    argv = [str(HOMAD), *UDP, "--socket", str(tmp_path / "homad.sock")]
    with Net() as net:
        space, _ = net.pair()
        daemon = space.start(argv)
        try:
            eventually((tmp_path / "homad.sock").exists)
            assert (tmp_path / "monitor.sock").is_socket(), daemon.stderr.rest(1)
        finally:
            daemon.stop()


def test_directory__is_made() -> None:
    with one_host(arguments=UDP, start=False) as host:
        host.homad.socket = host.homad.folder / "new" / "homad.sock"
        host.homad.start()
        with Client(host.homad.socket) as client:
            client.attach()
