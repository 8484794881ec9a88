# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Homa's sockets by NETLINK_SOCK_DIAG, as ss and others ask for those of TCP: homa_diag.ko."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import with_module

from lab.vm import Guest, Kernel, Options
from lab.vm.kernels import BUILT

LOAD = "insmod /t/homa_diag.ko"


@pytest.fixture(scope="module")
def guest(kernel: Kernel, module: Path) -> Iterator[Guest]:
    diag = module.with_name("homa_diag.ko")
    if kernel.name in BUILT and not diag.exists():
        pytest.skip(f"kernel {kernel.name} has no inet_diag")
    made = with_module(module, Options(load=("inet_diag",)), ("rpc", "look", "inet_diag"))
    made = replace(made, files={**made.files, "t/homa_diag.ko": diag})
    with Guest(kernel, made) as machine:
        machine.run(LOAD).check()
        yield machine


def sockets(guest: Guest, what: str, around: str = "{}") -> list[dict[str, str]]:
    said = guest.run(around.format(f"vm_inet_diag {what}")).check()
    assert "answers=" in said
    lines = re.findall(r"^socket (.*)$", said, re.M)
    return [dict(word.split("=", 1) for word in line.split()) for line in lines]


# Ends what start() has started. A port is free when its process has ended, which is after it was killed.
END = """[ -e /run/pids ] || exit 0
kill -9 $(cat /run/pids)
for pid in $(cat /run/pids); do
    for i in $(seq 400); do grep -q '^State:.[^ZX]' /proc/$pid/status 2>/dev/null || break; sleep 0.05; done
done
rm -f /run/pids /run/said"""


def start(guest: Guest, command: str) -> None:
    guest.run(
        f"""rm -f /run/said; {command} >/run/said & echo $! >>/run/pids
        for i in $(seq 200); do grep -q ready /run/said && exit; sleep 0.05; done; exit 1"""
    ).check()


@pytest.fixture(autouse=True)
def end(guest: Guest) -> Iterator[None]:
    yield
    guest.run(END).check()


def test_alias__by_which_the_kernel_finds_it(module: Path) -> None:
    diag = module.with_name("homa_diag.ko").read_bytes()
    assert b"\0alias=net-pf-16-proto-4-type-2-146\0" in diag
    # What most people load needs no other module.
    assert b"\0depends=\0" in module.read_bytes()


def test_dump__families_ports_users_and_inodes(guest: Guest) -> None:
    start(guest, "vm_look as 1234 vm_inet_diag open 1 4000")
    start(guest, "vm_rpc serve 6 4006")
    four, six = sockets(guest, "4"), sockets(guest, "6")
    (one,) = four
    assert one["from"] == "0.0.0.0:4000" and one["family"] == "4"
    assert one["uid"] == "1234" and int(one["inode"]) > 0 and "rmem" in one
    assert [s["from"] for s in six] == [":::4006"]
    assert sockets(guest, "4 4001") == []
    assert sockets(guest, "4 4000") == four


def test_dump__filter_programs_and_connected_peers(guest: Guest) -> None:
    start(guest, "vm_inet_diag open 3 4000")
    start(guest, "vm_inet_diag connected 4010 4777")
    assert [s["from"] for s in sockets(guest, "filter 4 4001")] == ["0.0.0.0:4001"]
    (one,) = sockets(guest, "filter 4 4010")
    assert one["to"] == "127.0.0.1:4777"


def test_dump__memory_that_waits(guest: Guest) -> None:
    start(guest, "vm_look pending 4 127.0.0.1 4000 100000 3")
    waits = {s["from"]: s for s in sockets(guest, "4")}
    server = waits.pop("0.0.0.0:4000")
    (client,) = waits.values()
    assert int(server["rqueue"]) >= 100000 and server["rqueue"] == server["rmem"]
    assert int(client["wqueue"]) >= 300000


def test_dump__of_one_namespace(guest: Guest) -> None:
    start(guest, "vm_inet_diag open 2 4000")
    guest.run("ip netns add other").check()
    start(guest, "ip netns exec other vm_inet_diag open 1 4100")
    assert [s["from"][-4:] for s in sockets(guest, "4")] == ["4000", "4001"]
    there = sockets(guest, "4", "ip netns exec other {}")
    assert [s["from"][-4:] for s in there] == ["4100"]


def test_dump__goes_on_where_a_full_answer_ended(guest: Guest) -> None:
    start(guest, "ulimit -n 2000; vm_inet_diag open 1500 4000")
    said = guest.run("vm_inet_diag 4 0 4096").check()
    ports = [int(p) for p in re.findall(r"from=0\.0\.0\.0:(\d+)", said)]
    assert sorted(ports) == list(range(4000, 5500)) and len(set(ports)) == len(ports)
    (answers,) = re.findall(r"^answers=(\d+)$", said, re.M)
    assert int(answers) > 20
    # Behind more sockets than one walk looks at, which are not wanted.
    assert [s["from"][-4:] for s in sockets(guest, "4 5499")] == ["5499"]


def test_exact__is_refused(guest: Guest) -> None:
    start(guest, "vm_inet_diag open 1 4000")
    assert "refused 95" in guest.run("vm_inet_diag exact 4000").check()


def test_unload__and_load_again(guest: Guest) -> None:
    start(guest, "vm_inet_diag open 1 4000")
    assert len(sockets(guest, "4")) == 1
    guest.run("rmmod homa_diag").check()
    assert sockets(guest, "4") == []
    guest.run(LOAD).check()
    assert len(sockets(guest, "4")) == 1


def test_load__by_who_asks_for_the_protocol(guest: Guest) -> None:
    """The kernel starts a program that loads modules; guests have none, so here is one."""
    start(guest, "vm_inet_diag open 1 4000")
    script = f"""rmmod homa_diag
    was=$(cat /proc/sys/kernel/modprobe)
    printf '%s\\n' '#!/bin/sh' 'export PATH=/bin:/sbin:/usr/bin' 'echo "$@" >>/run/asked' \
        'case "$*" in *-proto-4-type-2-146) {LOAD} ;; esac' >/run/loader
    chmod +x /run/loader
    echo /run/loader >/proc/sys/kernel/modprobe
    vm_inet_diag 4; cat /run/asked
    echo "$was" >/proc/sys/kernel/modprobe"""
    said = guest.run(script).check()
    assert "from=0.0.0.0:4000" in said, said
    assert "net-pf-16-proto-4-type-2-146" in said
