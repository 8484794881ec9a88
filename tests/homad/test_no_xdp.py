# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A homad that gets no AF_XDP, among peers that have it: they send natively, which UDP does not hear."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from apitool import CLIENT
from homad import PATIENT, Homad, Host, Settings, finishing, needs_homad, needs_root
from netns import Net
from nictool import Tool, xdp_on
from ops_tools import snapshot
from test_fast_ways import of_port
from test_hostile import echo_server

pytestmark = [needs_homad, needs_root]

# Root that may open packet sockets and AF_XDP sockets, but may not load programs into the kernel.
NO_BPF = ["setpriv", "--bounding-set=-bpf,-sys_admin"]


def backends(homad: Homad) -> list[str]:
    return sorted(port["backend"] for port in snapshot(homad)["ports"])


@contextmanager
def one_without(settings: Settings) -> Iterator[tuple[Host, Host]]:
    """Two hosts on a veth pair, of which the second may not load the XDP program."""
    with Net() as net:
        a, b = net.pair()
        hosts = [Host(a, Homad(a, settings)), Host(b, Homad(b, settings, prefix=NO_BPF))]
        with finishing(*(host.homad for host in hosts)):
            for host in hosts:
                host.homad.start()
            yield hosts[0], hosts[1]


@pytest.mark.parametrize("family", ["v4", "v6"])
@pytest.mark.parametrize("udp", [True, False])
def test_native__peers_with_afxdp_reach_a_host_without_it(family: str, udp: bool) -> None:
    """Both ask and both answer, short messages and long ones, with UDP beside it and alone."""
    with one_without({**PATIENT, "network": {"udp": udp}}) as (a, b):
        assert "packet socket" in b.homad.await_log("no AF_XDP")
        assert backends(a.homad) == sorted(["afxdp", "memory"] + ["udp"] * udp)
        assert backends(b.homad) == sorted(["packet", "memory"] + ["udp"] * udp)
        for asking, asked in ((a, b), (b, a)):
            server = echo_server(asked, 4000)
            for check in ("sizes", "async"):
                asking.run([CLIENT, check, asking.address(asked, 4000, family)], timeout=120)
            server.stop()
        assert of_port(b, "packet", "nic_rx_packets") > 0
        # The kernel of the host without AF_XDP does not say that it does not know the protocol.
        assert of_port(a, "afxdp", "nic_icmp_errors") == 0


def test_native__a_port_without_a_server_is_said_to_be_one() -> None:
    with one_without(PATIENT) as (a, b):
        done = a.run([CLIENT, "sizes", a.address(b, 4000)], check=False)
        assert done.returncode and "nobody serves" in done.stdout + done.stderr, done


def test_reasons__both_are_said() -> None:
    """Without the right to open raw sockets there is neither AF_XDP nor a packet socket."""
    with Net() as net:
        _, space = net.pair()
        homad = Homad(space, PATIENT, prefix=[NO_BPF[0], f"{NO_BPF[1]},-net_raw"])
        with finishing(homad):
            homad.start()
            said = homad.await_log("no AF_XDP on a device, Homa goes over UDP")
            assert backends(homad) == ["memory", "udp"]
            first, _, second = said.partition("; and no packet socket: ")
            assert "AF_XDP sockets need root (CAP_NET_RAW)" in first, said
            assert "packet sockets need root (CAP_NET_RAW)" in second, said


@pytest.mark.parametrize("prefix", [[], NO_BPF])
def test_queues__if_one_is_somebody_elses_none_is_taken(prefix: list[str]) -> None:
    """Half a device would lose what peers send to the other half; and nothing of us stays on it."""
    dedicated = {"threads": {"mode": "dedicated", "cores": [0, 1], "scale": False}}
    with Net() as net:
        _, space = net.pair(queues=2)
        other = Tool("afxdp").start(space, "--queue", "1", "--queues", "1", "echo")
        homad = Homad(space, {**PATIENT, **dedicated}, prefix=prefix)
        with finishing(homad):
            homad.start()
            said = homad.await_log("no AF_XDP")
            assert "UDP" in said and (prefix or "queue 1" in said), said
            assert backends(homad) == ["memory", "udp"]
            other.stop()
            assert not xdp_on(space)
