# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homad where things are missing or forbidden: no AF_XDP, no disk space, no right, no second daemon."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from apitool import CLIENT, PATIENT
from homad import (
    API_PROGRAMS,
    HOMAD,
    PROGRAMS,
    SANITIZED,
    Homad,
    Host,
    finishing,
    needs_homad,
    needs_root,
    one_host,
    protocol,
)
from netns import Net, eventually
from test_hostile import NOBODY, STEADY, echo_server, ended_well, going

pytestmark = [needs_homad]

PROBE = PROGRAMS / "probe"


def probe(host: Host, *words: str, as_user: list[str] | None = None) -> list[str]:
    return host.run([*(as_user or []), PROBE, *words]).stdout.splitlines()


# ---- attaching ----


@needs_root
@pytest.mark.parametrize("version", ["256", "513", "65535"])
def test_wrong_version__says_both(version: str) -> None:
    """The refusal itself is of our version, so that the library can tell what to do."""
    with one_host() as host:
        (line,) = probe(host, "version", version)
        assert line.startswith("error ") and version in line and "version" in line, line
        assert "answer of version" not in line
        assert probe(host, "attach")[0].startswith("ok")


@needs_root
def test_garbage__is_refused() -> None:
    with one_host() as host:
        before = host.homad.resources()
        for words, code in (
            (["magic"], errno.EPROTO),
            (["early"], errno.ENOTCONN),
            (["twice"], errno.EISCONN),
            (["pool", "1000"], errno.EINVAL),
            (["pool", str(1 << 62)], errno.EINVAL),
        ):
            assert probe(host, *words)[0].startswith(f"error {code} "), words
        assert probe(host, "attach")[0].startswith("ok")
        host.homad.await_resources(before)


@needs_root
def test_quota__of_attachments_memory_and_segments() -> None:
    config = {
        "quota": {
            "attachments": 3,
            "user_memory": "64MiB",
            "send_max": "4MiB",
            "rcvbuf_max": "32MiB",
        }
    }
    with one_host(config=config) as host:
        before = host.homad.resources()
        count, code, *text = probe(host, "attachments", "10")[0].split()
        assert (count, len(text) > 5) == ("3", True), text
        assert int(code) == errno.EDQUOT, code
        # All of them are gone with the process, and the quota is free again.
        host.homad.await_resources(before)
        assert probe(host, "attachments", "3")[0].startswith("3 0")
        assert probe(host, "pool", str(64 << 20))[0].startswith(f"error {errno.EINVAL} ")
        count, code, *text = probe(host, "segments", str(1 << 20))[0].split()
        assert (int(count), int(code)) == (3, errno.EDQUOT) and text
        host.homad.await_resources(before)


@needs_root
def test_permissions__by_user_group_and_port() -> None:
    rules = """
[[rule]]
user = 65534
allow = true
ports = [5000, 5001]
[[rule]]
group = 4242
allow = true
ports = [6000, 6000]
[[rule]]
user = 0
allow = true
ports = [1, 32767]
[[rule]]
allow = false
"""
    grouped = ["setpriv", "--reuid=4711", "--regid=4711", "--groups=4242"]
    stranger = ["setpriv", "--reuid=4711", "--regid=4711", "--clear-groups"]
    eacces = f"error {errno.EACCES}"
    with one_host(config=rules) as host:
        assert probe(host, "bind", "5000", as_user=NOBODY) == ["ok"]
        assert probe(host, "bind", "4999", as_user=NOBODY)[0] == eacces
        assert probe(host, "bind", "5002", as_user=NOBODY)[0] == eacces
        assert probe(host, "bind", "6000", as_user=grouped) == ["ok"]
        assert probe(host, "bind", "5000", as_user=grouped)[0] == eacces
        assert probe(host, "bind", "1") == ["ok"]
        refused = probe(host, "attach", as_user=stranger)[0]
        assert refused.startswith(eacces) and len(refused) > 30, refused
        for bad in ("0", "32768", "65535"):
            assert probe(host, "bind", bad)[0] == f"error {errno.EINVAL}"


@needs_root
def test_port__of_another_application() -> None:
    with one_host() as host:
        echo_server(host, 4000)
        assert probe(host, "bind", "4000") == [f"error {errno.EADDRINUSE}"]


@needs_root
def test_socket_mode__keeps_strangers_out() -> None:
    with one_host(config={"attach": {"mode": "0600"}}) as host:
        assert probe(host, "attach")[0].startswith("ok")
        assert probe(host, "attach", as_user=NOBODY)[0].startswith(f"error {errno.EACCES}")


# ---- one per namespace ----


@needs_root
def test_two_daemons__second_says_why_it_stops() -> None:
    """With the same socket, and with another one (then the network is taken)."""
    with one_host() as host:
        for folder in (host.homad.folder, None):
            second = Homad(host.space, folder=folder)
            second.log_file = host.homad.folder / "second.log"
            second.log_file.unlink(missing_ok=True)
            with finishing(second):
                second.start(wait=False)
                assert second.wait(30) == 1
                log = second.log()
                assert re.search(
                    "one homad per network namespace|already runs|already serves|in use", log
                ), log
                assert len(log.splitlines()) < 8, log
        assert probe(host, "attach")[0].startswith("ok")
        host.homad.check()


# ---- ways out that are missing ----


@needs_root
def test_no_afxdp__falls_back_to_udp_and_says_so() -> None:
    """Without the right to load an XDP program."""
    prefix = ["setpriv", "--bounding-set=-bpf,-sys_admin,-net_admin,-net_raw", "--inh-caps=-all", "--reuid=65534",
              "--regid=65534", "--clear-groups"]  # fmt: skip
    with Net() as net:
        a, b = net.pair()
        hosts = [Host(s, Homad(s, protocol(PATIENT), prefix=prefix)) for s in (a, b)]
        for host in hosts:
            host.homad.folder.chmod(0o777)
        with finishing(*(h.homad for h in hosts)):
            for host in hosts:
                host.homad.start()
                assert "UDP" in host.homad.await_log("AF_XDP")
            echo_server(hosts[1], 4000)
            for check in ("async", "sizes"):
                hosts[0].run([CLIENT, check, hosts[0].address(hosts[1], 4000)], timeout=120)


@needs_root
def test_afxdp_demanded__is_an_error() -> None:
    with one_host(config={"network": {"afxdp": "on"}}, start=False, prefix=NOBODY) as host:
        host.homad.folder.chmod(0o777)
        host.homad.start(wait=False)
        assert host.homad.wait(30) == 1
        assert re.search("(?i)xdp", host.homad.log()), host.homad.log()


def test_rootless__in_a_user_namespace() -> None:
    """What anybody can start: a user and a network namespace of their own."""
    unshare = ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("user namespaces are not allowed here")
    script = 'ip link set lo up; exec "$@"'
    homad = Homad(None, protocol(PATIENT), prefix=[*unshare, "sh", "-c", script, "sh"])
    with finishing(homad):
        homad.start()
        enter = ["nsenter", "--preserve-credentials", "-U", "-n", "-t", str(homad.pid)]
        env = os.environ | {"HOMA_VIA": "service", "HOMA_SERVICE_SOCKET": str(homad.socket)}
        server = subprocess.Popen([*enter, API_PROGRAMS / "api_server", "4000"], env=env, stdout=subprocess.PIPE,
                                  text=True)  # fmt: skip
        try:
            assert server.stdout and server.stdout.readline().startswith("ready service")
            subprocess.run([*enter, CLIENT, "async", "127.0.0.1:4000"], env=env, check=True, timeout=60,
                           capture_output=True)  # fmt: skip
        finally:
            server.terminate()
            server.wait(60)


@needs_root
def test_device__comes_and_goes() -> None:
    """The link goes down and up again: RPCs go on."""
    with one_host(config=protocol(PATIENT)) as host:
        assert host.peer
        peer = Host(host.peer, Homad(host.peer, protocol(PATIENT)))
        with finishing(peer.homad):
            peer.homad.start()
            echo_server(peer, 4000)
            steady = going(host.start([STEADY, host.address(peer, 4000)]))
            for _ in range(2):
                host.peer.ip("link", "set", "eth0", "down")
                time.sleep(0.3)
                host.peer.ip("link", "set", "eth0", "up")
                time.sleep(0.3)
            ended_well(steady)


# ---- no space ----


@needs_root
def test_full_disk__log_loses_lines_and_nothing_else(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)], check=True)
    try:
        with one_host(config={**protocol(PATIENT), "log": {"level": "debug"}}, start=False) as host:
            host.homad.log_file = disk / "log"
            (disk / "ballast").write_bytes(b"x" * 60000)
            host.homad.start()
            echo_server(host, 4000)
            for _ in range(150):
                probe(host, "attach")
            host.run([CLIENT, "async", host.address(host, 4000)])
            host.homad.check()
            assert os.statvfs(disk).f_bavail == 0
            (disk / "ballast").unlink()
            before = len(host.homad.log())
            # Not one more attachment: of those there were so many lines that the next may be held back.
            host.homad.send_signal(signal.SIGHUP)
            eventually(lambda: len(host.homad.log()) > before)
            host.homad.stop()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@needs_root
def test_log_pipe_that_nobody_reads__does_not_stop_it() -> None:
    """A full pipe blocks who writes to it; the fast path may not be that."""
    with one_host(config={**protocol(PATIENT), "log": {"level": "debug"}}, start=False) as host:
        read_end, write_end = os.pipe()
        host.homad.log_file = Path(f"/proc/self/fd/{write_end}")
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Homad, "log", lambda self: "(in a pipe)")
                host.homad.start()
                echo_server(host, 4000)
                for _ in range(30):
                    # Each leaves a line or more.
                    probe(host, "attachments", "20")
                host.run([CLIENT, "async", host.address(host, 4000)])
                os.set_blocking(read_end, False)
                assert len(os.read(read_end, 1 << 20)) > 1000
                assert host.homad.stop() == 0
        finally:
            os.close(read_end)
            os.close(write_end)


# ---- its end, and its rest ----


@needs_root
def test_sigterm__with_applications_attached() -> None:
    with one_host(config=protocol(PATIENT)) as host:
        server = host.start([API_PROGRAMS / "api_server", "4000"])
        server.line()
        steadies = [
            going(host.start([STEADY, host.address(host, 4000), "0", "32"])) for _ in range(3)
        ]
        held = host.start([PROBE, "hold"])
        assert held.line() == "held"
        assert host.homad.stop(timeout=20) == 0
        assert not host.homad.socket.exists() and not host.homad.monitor.exists()
        for each in steadies:
            assert each.wait(30)[0] == 1
        assert held.running()


@needs_root
@pytest.mark.skipif(SANITIZED, reason="a sanitizer has threads of its own")
def test_idle__no_wake_ups() -> None:
    """Nothing attached: no thread of the daemon runs at all; nor with a quiet application attached."""
    with one_host() as host:

        def rests() -> bool:
            before = host.homad.switches()
            time.sleep(2.5)
            return host.homad.switches() == before

        # Work at the start, and neighbour discovery of the link, come to an end.
        eventually(rests, 20)
        echo_server(host, 4000)
        host.run([CLIENT, "receive_id", host.address(host, 4000)])
        held = host.start([PROBE, "hold"])
        held.line()
        eventually(rests, 30)


@needs_root
def test_check_config__and_help() -> None:
    with one_host(start=False) as host:
        file = host.homad.config_file
        file.write_text("[quota]\nrpcs = 10\nnonsense = 1\n")
        done = subprocess.run(
            [HOMAD, "--check-config", "--config", file], capture_output=True, text=True, check=False
        )
        assert done.returncode != 0 and f"{file}:3" in done.stderr + done.stdout, done
        file.write_text("[quota]\nrpcs = 10\n")
        done = subprocess.run(
            [HOMAD, "--check-config", "--config", file], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done
        host.homad.was_stopped = True


@needs_root
def test_sighup__keeps_everybody() -> None:
    """Also with a file that has become wrong."""
    with one_host(config=protocol(PATIENT)) as host:
        echo_server(host, 4000)
        steady = going(host.start([STEADY, host.address(host, 4000)]))
        host.homad.configure({**protocol(PATIENT), "quota": {"attachments": 7}})
        host.homad.send_signal(signal.SIGHUP)
        eventually(lambda: probe(host, "attachments", "30")[0].split()[0] in ("5", "6", "7"))
        host.homad.configure("[quota]\nattachments = many\n")
        host.homad.send_signal(signal.SIGHUP)
        host.homad.await_log(":2")
        assert int(probe(host, "attachments", "30")[0].split()[0]) < 8
        ended_well(steady)
        host.homad.check()
