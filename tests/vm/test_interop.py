# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa.ko and others: another guest, homad and the protocol in a process, on this machine.

The guest's device is a tap in a network namespace of this machine, where homad or a program with
the protocol in itself takes the packets; both IP versions, both directions, all sizes.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import program, with_module
from taps import options

from lab.vm import Guest, Kernel, Options, wire

ROOT = Path(__file__).resolve().parents[2]
for folder in ("net", "homad"):
    sys.path.insert(0, str(ROOT / "tests" / folder))

from homad import HOMAD, Homad, Host, finishing  # noqa: E402
from netns import Namespace, Net  # noqa: E402
from preloadtool import LIBRARY, under  # noqa: E402

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes a namespace and a tap device")
needs_host = pytest.mark.skipif(
    not (HOMAD.exists() and LIBRARY.exists()), reason="homad or libhoma-preload is not built"
)
UP = """cd /proc/sys/net/homa
echo 20000 >timeout_ticks && echo 30000 >tombstone_ms && echo 1 >restart_guard_us
"""
# What a packet takes in a slow kernel is no loss yet (calm() in guest/tap.sh).
CALM = "echo 300 >/proc/sys/net/homa/resend_ticks"


def address(guest: Guest, number: int) -> None:
    guest.run(
        f"ip link set eth0 up && ip addr add 10.7.0.{number}/24 dev eth0 && "
        f"ip addr add fd07::{number}/64 dev eth0 nodad\n{UP}"
    ).check()
    if guest.kernel.is_slow:
        guest.run(CALM).check()


@pytest.mark.parametrize("offload", ["on", pytest.param("off", marks=pytest.mark.once)])
def test_two_guests__on_one_wire(
    kernel: Kernel, module: Path, tmp_path: Path, offload: str
) -> None:
    left, right = wire(tmp_path)
    made = options(with_module(module, None, ("rpc",)))
    one = Options(**{**vars(made), "smp": 1, "netdevs": (left,)})
    two = Options(**{**vars(made), "smp": 1, "netdevs": (right,)})
    with Guest(kernel, one) as a, Guest(kernel, two) as b:
        for number, guest in ((1, a), (2, b)):
            address(guest, number)
            guest.run(
                f"ethtool -K eth0 gro {offload} gso {offload} tso {offload} 2>/dev/null; true"
            )
        b.run("rpc serve 4 4004 2 >/dev/null 2>&1 & rpc serve 6 4006 >/dev/null 2>&1 &").check()
        for version, ip in ((4, "10.7.0.2"), (6, "fd07::2")):
            server = f"{version} {ip} 400{version}"
            script = f"rpc wait {server} 60 && rpc edges {server} 1500 && rpc load {server} 3 60 8 60000 1"
            assert "ok" in a.run(script, 180).check()
        b.run("killall -9 rpc; sleep 0.3; true")


@pytest.fixture
def bed(kernel: Kernel, module: Path) -> Iterator[tuple[Guest, Namespace]]:
    """A guest at 10.7.0.2 and fd07::2, and this machine's namespace at .1 on its tap."""
    with Net() as net:
        space = net.namespace("host")
        space.ip("tuntap", "add", "eth0", "mode", "tap")
        space.v4, space.v6 = "10.7.0.1", "fd07::1"
        space.address("10.7.0.1/24", "fd07::1/64")
        space.ip("link", "set", "eth0", "up")
        made = options(with_module(module, None, ("rpc",)))
        tap_device = ("tap,ifname=eth0,script=no,downscript=no",)
        made = Options(**{**vars(made), "netdevs": tap_device, "netns": space.name})
        with Guest(kernel, made) as guest:
            address(guest, 2)
            yield guest, space


def both_ways(guest: Guest, start, version: int) -> None:
    """All sizes and many at once, asked by the guest and asked by the host."""
    rpc = shutil.which(str(program("rpc")))
    assert rpc
    host, inside = (("10.7.0.1", "10.7.0.2"), ("fd07::1", "fd07::2"))[version == 6]
    server = start(under(rpc, "serve", str(version), "4004"))
    assert server.line(60) == "ready"
    asked = f"{version} {host} 4004"
    script = f"rpc wait {asked} 60 && rpc edges {asked} 1500 && rpc load {asked} 3 60 8 60000 1"
    assert "ok" in guest.run(script, 180).check()
    server.stop()
    guest.run(
        f"rpc serve {version} 4005 >/dev/null 2>&1 & rpc wait {version} {inside} 4005 60"
    ).check()
    for words in (["edges", "1500"], ["load", "4", "60", "8", "60000", "1"]):
        argv = under(rpc, words[0], str(version), inside, "4005", *words[1:])
        status, out, err = start(argv).wait(240)
        assert (status, out) == (0, "ok\n"), err
    guest.run("killall -9 rpc; sleep 0.3; true")


@needs_root
@needs_host
@pytest.mark.once
def test_guest__and_homad(bed: tuple[Guest, Namespace]) -> None:
    guest, space = bed
    protocol = {"timeout_us": 20000000, "tombstone_ms": 30000, "restart_guard_us": 1}
    homad = Homad(space, {"protocol": protocol})
    with finishing(homad):
        homad.start()
        host = Host(space, homad)
        for version in (4, 6):
            both_ways(guest, host.start, version)


@needs_root
@needs_host
@pytest.mark.once
@pytest.mark.parametrize("via", ["afxdp", "udp"])
def test_guest__and_the_protocol_in_a_process(bed: tuple[Guest, Namespace], via: str) -> None:
    guest, space = bed
    config = "timeout_us=20000000,tombstone_ms=30000,restart_guard_us=1"
    if via == "udp":
        guest.run("echo 1 >/proc/sys/net/homa/hijack_udp").check()

    def start(argv: list[str]):
        device = ["HOMA_INTERFACE=eth0"] if via == "afxdp" else []
        return space.start(["env", f"HOMA_VIA={via}", f"HOMA_CONFIG={config}", *device, *argv])

    for version in (4, 6):
        both_ways(guest, start, version)


@needs_root
@needs_host
@pytest.mark.once
def test_guest__segments_that_virtio_has_no_name_for(bed: tuple[Guest, Namespace]) -> None:
    """Asked to give segments to the card (max_gso_size), homa.ko keeps them from one whose other
    end takes only TCP's and UDP's."""
    guest, space = bed
    protocol = {"timeout_us": 20000000, "tombstone_ms": 30000, "restart_guard_us": 1}
    homad = Homad(space, {"protocol": protocol})
    with finishing(homad):
        homad.start()
        guest.run(
            "ethtool -K eth0 tso on gso on && echo 60000 >/proc/sys/net/homa/max_gso_size"
        ).check()
        rpc = shutil.which(str(program("rpc")))
        assert rpc
        server = Host(space, homad).start(under(rpc, "serve", "4", "4004"))
        assert server.line(60) == "ready"
        asked = "4 10.7.0.1 4004"
        script = f"rpc wait {asked} 60 && rpc edges {asked} 1500"
        assert "ok" in guest.run(script, 60).check()
        server.stop()
