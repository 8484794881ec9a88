# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What packaging/homad.service promises and forbids fits what homad does; systemd itself is not there."""

from __future__ import annotations

import errno
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from homad import needs_homad, needs_root, one_host, two_hosts
from netns import ROOT, eventually
from ops_tools import ask, serving, tool

UNIT = ROOT / "packaging/homad.service"
pytestmark = [needs_homad, needs_root]


def values(name: str) -> list[str]:
    """All values of a setting of the unit, in order."""
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.M)


def filtered() -> set[str]:
    """System calls that the unit's SystemCallFilter lets through, by systemd's own lists."""
    text = subprocess.run(
        ["systemd-analyze", "syscall-filter"], capture_output=True, text=True, check=True
    ).stdout
    groups: dict[str, set[str]] = {}
    for line in text.splitlines():
        word = line.strip()
        if line.startswith("@"):
            groups[word] = set()
            last = groups[word]
        elif word and not word.startswith("#"):
            last.add(word)

    def expand(name: str) -> set[str]:
        return set().union(*map(expand, groups[name])) if name in groups else {name}

    allowed: set[str] = set()
    for value in values("SystemCallFilter"):
        names = set().union(*map(expand, value.lstrip("~").split()))
        allowed = allowed - names if value.startswith("~") else allowed | names
    return allowed


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_unit__allows_all_system_calls_of_a_life(tmp_path: Path) -> None:
    """AF_XDP, UDP, applications, tools, reload, end: nothing that the unit's filter would refuse."""
    allowed = filtered()
    assert "bpf" in allowed and "reboot" not in allowed and "ptrace" not in allowed
    record = tmp_path / "calls"
    with two_hosts() as (a, b):
        b.homad.stop()
        b.homad.prefix = ["strace", "-f", "-c", "-qq", "-U", "name", "-o", str(record)]
        b.homad.start()
        with serving(b):
            ask(a, b, 20, 100_000)
            ask(a, b, 20)
            tool(b.homad, "ss", "--all")
            tool(b.homad, "trace", "--duration", "0.2", "--pcap", str(tmp_path / "c.pcapng"))
        children = Path(f"/proc/{b.homad.pid}/task/{b.homad.pid}/children").read_text().split()
        subprocess.run(["kill", "-HUP", *children], check=True)
        b.homad.await_log("configuration read again")
        subprocess.run(["kill", "-TERM", *children], check=True)
        assert b.homad.wait() == 0
    used = {
        w
        for w in re.findall(r"^\s*(\w+)\s*$", record.read_text(), re.M)
        if w not in ("syscall", "total", "name")
    }
    assert {"bpf", "memfd_create", "accept4", "epoll_wait"} <= used | {"epoll_wait"}
    assert not used - allowed, f"the unit forbids {', '.join(sorted(used - allowed))}"


# argv: the numbers of the system calls that are let through, the status of all others, a program
# and its arguments. Each instruction of the filter is a struct sock_filter.
SECCOMP = """
import ctypes, os, struct, sys
numbers, refuse, program = sys.argv[1].split(","), int(sys.argv[2]), sys.argv[3:]
code = struct.pack("=HBBI", 0x20, 0, 0, 0)  # load the number
for number in numbers:  # is it this one? then allow
    code += struct.pack("=HBBI", 0x15, 0, 1, int(number)) + struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000)
code += struct.pack("=HBBI", 6, 0, 0, 0x00050000 | refuse)
place = ctypes.create_string_buffer(code)
text = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(place))
if ctypes.CDLL(None, use_errno=True).prctl(22, 2, text, 0, 0):
    sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
os.execv(program[0], program)
"""


def in_the_unit(user: str) -> list[str]:
    """The words before a program that give it what the unit gives homad: user, rights, and filter."""
    text = subprocess.run(
        ["gcc", "-E", "-dM", "-x", "c", "-"], input="#include <sys/syscall.h>\n",
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    numbers = dict(re.findall(r"^#define __NR_(\w+) (\d+)$", text, re.M))
    allowed = ",".join(numbers[name] for name in sorted(filtered()) if name in numbers)
    rights = [
        name.removeprefix("CAP_").lower() for name in values("AmbientCapabilities")[0].split()
    ]
    # This has the effect of the unit's limit, which root of a container may not raise.
    assert values("LimitMEMLOCK") == ["infinity"]
    caps = ",".join(f"+{name}" for name in [*rights, "ipc_lock"])
    assert values("SystemCallErrorNumber") == ["EPERM"] and values("NoNewPrivileges") == ["yes"]
    return ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--inh-caps", f"-all,{caps}",
            "--ambient-caps", caps, "--bounding-set", f"-all,{caps}", "--no-new-privs",
            "/usr/bin/python3", "-c", SECCOMP, allowed, str(errno.EPERM)]  # fmt: skip


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
@pytest.mark.parametrize("more", ["", "[monitor]\ngroup = 'daemon'\n"], ids=["packaged", "monitor"])
def test_unit__homad_starts_with_the_packaged_configuration(more: str) -> None:
    """Under the unit's own filter, as its user: it may give its sockets to the group that the file names."""
    text = (ROOT / "packaging/homad.toml").read_text()
    assert 'group = "homa"' in text
    # "daemon" is a user and a group everywhere.
    text = text.replace('"homa"', '"daemon"').replace("[monitor]\n", more or "[monitor]\n")
    with one_host(config=text, prefix=in_the_unit("daemon"), start=False) as host:
        host.homad.folder.chmod(0o777)
        host.homad.start()
        assert " serving a device " in host.homad.log(), host.homad.log()
        assert host.homad.socket.group() == "daemon"
        assert host.homad.socket.stat().st_mode & 0o777 == 0o660
        assert host.homad.monitor.stat().st_mode & 0o777 == (0o660 if more else 0o600)
        with serving(host, port=4001):
            ask(host, host, 3, port=4001)
        tool(host.homad, "ss", "--all")


def test_unit__address_families_are_enough() -> None:
    families = set(values("RestrictAddressFamilies")[0].split())
    with one_host() as host:
        text = subprocess.run(
            ["ip", "netns", "exec", host.space.name, "ss", "-aepn", "--packet", "--raw", "--udp", "--unix", "--xdp"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        mine = [line for line in text.splitlines() if f"pid={host.homad.pid}," in line]
    kinds = {line.split()[0].split("_")[0] for line in mine}
    assert mine and {"u", "udp", "xdp"} & kinds
    known = {
        "u": "AF_UNIX",
        "udp": "AF_INET",
        "raw": "AF_INET",
        "xdp": "AF_XDP",
        "nl": "AF_NETLINK",
        "p": "AF_PACKET",
    }
    assert {known.get(kind, kind) for kind in kinds} <= families | {"AF_INET6"}


def test_notify__a_manager_that_does_not_read_does_no_harm(tmp_path: Path) -> None:
    """Its socket is full after some ten messages; homad reloads and ends all the same."""
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        with one_host(
            arguments=["--udp-only"], start=False, env={"NOTIFY_SOCKET": str(path)}
        ) as host:
            host.homad.start(wait=False)
            host.homad.await_log(" ready ")
            for count in range(1, 16):
                host.homad.send_signal(signal.SIGHUP)
                eventually(
                    lambda count=count: host.homad.log().count("configuration read again") >= count
                )
            assert host.homad.stop() == 0
