# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The switch: its sizes, and on real namespaces its priorities and its shared buffer."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import needs_root

from lab.net import bpf, switch, uplink
from lab.net.hosts import Lab, run
from lab.net.runner import Job, run_jobs


def test_buffer__grows_with_the_rate_and_has_a_floor() -> None:
    assert switch.buffer_bytes(10**7) == switch.MIN_BUFFER
    assert switch.buffer_bytes(200 * 10**6) == switch.MIN_BUFFER
    big = switch.buffer_bytes(10**10)
    bdp = 10**10 / 8 * switch.nominal_rtt(10**10)
    assert big % 1024 == 0
    assert switch.BUFFER_BDPS * bdp - 1024 <= big <= switch.BUFFER_BDPS * bdp


def test_port_commands__one_class_per_level() -> None:
    lines = switch.port_commands("p", 10**8, 5000).splitlines()
    assert sum("bfifo limit 5000" in line for line in lines) == 8
    assert any("classid 1:17" in line and "prio 0" in line for line in lines)
    assert any("classid 1:10" in line and "prio 7" in line for line in lines)
    assert len(switch.u32_commands("p").splitlines()) == 16


SPREAD = """
import socket, sys
for _ in range(int(sys.argv[1])):
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(40):
        out.sendto(bytes(100), ("10.9.0.2", 4000))
"""

SEND = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
out = socket.socket(family, socket.SOCK_DGRAM)
for group in sys.argv[2:]:
    level, count = map(int, group.split("x"))
    if family == socket.AF_INET:
        out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, level << 5)
    else:
        out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, level << 5)
    for n in range(count):
        out.sendto(bytes([level]) * 1400, (sys.argv[1], 9))
"""

# Reports the level of every packet in the order of arrival.
RECEIVE = """
import json, socket, sys
inlet = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
inlet.bind(("::", 9))
inlet.settimeout(20)
order = [inlet.recv(2000)[0] for n in range(int(sys.argv[1]))]
json.dump(order, open(sys.argv[2], "w"))
"""


def _send(net: switch.Switch, address: str, *groups: str) -> Job:
    return Job("sender", [sys.executable, "-c", SEND, address, *groups], net.hosts[0])


needs_clang = pytest.mark.skipif(
    not (shutil.which("clang") and Path("/usr/include/bpf/bpf_helpers.h").exists()),
    reason="clang and libbpf-dev compile programs for BPF",
)


@needs_clang
@pytest.mark.parametrize("name", ["loss_port.bpf.c", "switch_port.bpf.c", "uplink.bpf.c"])
def test_bpf__programs_can_be_compiled(name: str) -> None:
    assert bpf.compiled(name)


@needs_root
@needs_clang
def test_switch__packets_of_a_host_are_spread_over_its_queues() -> None:
    """By connection: those of one have the same queue, those of forty do not."""
    used = []
    with Lab() as lab:
        net = switch.build_switch(lab, 2, 10**8, 256 * 1024, uplinks=True)
        host = net.hosts[0]
        for sockets in (1, 40):
            net.set_buffer(256 * 1024)
            assert net.queues == uplink.QUEUES
            run_jobs([Job("send", [sys.executable, "-c", SPREAD, str(sockets)], host)], 30)
            words = ["tc", "-n", host.namespace, "-s", "-j", "qdisc", "show", "dev", host.device]
            used.append(sum(q["packets"] > 9 for q in json.loads(run(words)) if not q.get("root")))
    assert used[0] == 1 and used[1] > 5


@needs_root
@pytest.mark.parametrize("with_bpf", [True, False])
def test_switch__buffer_in_bytes(with_bpf: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not with_bpf:
        monkeypatch.setattr(switch, "port_program", lambda: None)
    size, frame = 64 * 1024, 1400 + 42
    with Lab() as lab:
        # So slow a port that what is sent at once is still queued when it is counted.
        net = switch.build_switch(lab, 2, 10**6, size)
        assert net.shared == with_bpf
        run_jobs([_send(net, "10.9.0.2", "0x80", "7x80")], 30)
        port = net.counters()[1]
        full = size if with_bpf else 2 * size
        assert port.backlog <= full
        if with_bpf:
            assert full - frame <= port.peak_backlog <= full
        assert port.drops >= 160 - full // frame - 10  # ten may have left in the meantime
        net.set_buffer(4 * size)
        assert all(port.drops == 0 and port.backlog == 0 for port in net.counters())


@needs_root
@pytest.mark.parametrize("with_bpf", [True, False])
@pytest.mark.parametrize("address", ["10.9.0.2", "fd09::2"])
def test_switch__strict_priorities(
    with_bpf: bool, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_bpf:
        monkeypatch.setattr(switch, "port_program", lambda: None)
    with Lab() as lab:
        net = switch.build_switch(lab, 2, 10**6, 256 * 1024)
        for number, host in enumerate(net.hosts, 1):
            run(
                [
                    "ip",
                    "-n",
                    host.namespace,
                    "addr",
                    "add",
                    f"fd09::{number}/64",
                    "dev",
                    host.device,
                    "nodad",
                ]
            )
        receiver = Job("receiver", [sys.executable, "-c", RECEIVE, "35", "{json}"], net.hosts[1])
        listening = f"ip netns exec {net.hosts[1].namespace} ss -Huln | grep -q :9"
        waiting = f'while ! {listening}; do sleep 0.05; done; exec "$@"'
        sender = _send(net, address, "0x15", "3x10", "7x10")
        sender = replace(sender, argv=["sh", "-c", waiting, "sh", *sender.argv], host=None)
        sender = replace(sender, argv=[*sender.argv[:4], *net.hosts[0].command(sender.argv[4:])])
        order = run_jobs([receiver, sender], 60)[0]
        assert sorted(order) == [0] * 15 + [3] * 10 + [7] * 10
        # A level waits for all above it: only what left before the others came may be ahead.
        last = {
            level: max(i for i, seen in enumerate(order) if seen == level) for level in (0, 3, 7)
        }
        assert last[7] < last[3] < last[0]
        assert order[-5:] == [0] * 5


@needs_root
@pytest.mark.parametrize("through", ["the host's queues", "the ifb alone"])
def test_switch__a_host_sends_no_faster_than_its_link(through: str) -> None:
    frame = 1400 + 42
    with Lab() as lab:
        net = switch.build_switch(lab, 2, 10**6, 256 * 1024, uplinks=True)
        host = net.hosts[0]
        if through == "the ifb alone":  # as packets of AF_XDP, which pass the host's queues
            run(["tc", "-n", host.namespace, "qdisc", "del", "dev", host.device, "root"])
        run_jobs([_send(net, "10.9.0.2", "7x60")], 30)
        port = net.counters()[1]
        assert port.drops == 0 and 0 < port.peak_backlog <= 4 * frame
        # The rest waits for the link: so slow a one that most of it is still there.
        where = (host.namespace, host.device) if through != "the ifb alone" else None
        space, device = where or (net.namespace, net.uplinks[0])
        rows = json.loads(run(["tc", "-n", space, "-s", "-j", "qdisc", "show", "dev", device]))
        assert next(row for row in rows if row.get("root"))["backlog"] > 20 * frame
