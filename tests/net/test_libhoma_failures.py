# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What libhoma does when the network or the other side fails: nothing is lost silently, nothing leaks."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from apitool import CLIENT, PATIENT, Bed
from netns import Namespace, Net, Process, run

HERE = Path(__file__).resolve().parent

pytestmark = pytest.mark.skipif(not CLIENT.exists(), reason=f"{CLIENT} is not built")
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="makes network namespaces, so it needs root"
)


@pytest.fixture(params=["afxdp", "udp"])
def via(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def bed(via: str) -> Iterator[Bed]:
    """RPCs time out as soon as for anybody; see `patient` for what has to succeed."""
    if os.geteuid() != 0:
        pytest.skip("makes network namespaces, so it needs root")
    with Net() as net:
        yield Bed(via, "v4", *net.pair(), config="restart_guard_us=1")


@pytest.fixture
def patient(bed: Bed) -> Bed:
    bed.config = PATIENT
    return bed


def test_no_listener__port_unreachable(bed: Bed) -> None:
    """The host lives, nobody serves the Homa port: the engine at the other end says so."""
    server = bed.server()
    address = server.address.replace(":4000", ":4001")
    bed.check("nobody", address, str(errno.ENOTCONN))
    server.stop()


def test_no_process__icmp(bed: Bed) -> None:
    """No process at all: the kernel says so, in the way of the protocol."""
    code = errno.EPROTONOSUPPORT if bed.via == "afxdp" else errno.ENOTCONN
    bed.check("nobody", f"{bed.server_ip}:4000", str(code))


def test_no_host(bed: Bed) -> None:
    """Nobody has the address: silence, because neighbour discovery takes longer to give up."""
    bed.check("nobody", "10.9.0.77:4000", str(errno.ETIMEDOUT))


def test_no_route(bed: Bed) -> None:
    process = bed.start("nobody", "192.0.2.1:4000", "0")
    status, _, err = process.wait()
    assert status == 1 and "no route" in err


def test_server_exits__in_the_middle(bed: Bed) -> None:
    server = bed.server()
    bed.check("fails", server.address)
    assert server.process.wait()[0] == 3


def test_server_killed__client_gets_its_error(bed: Bed) -> None:
    server = bed.server()
    client = bed.start("fails", server.address.replace(":4000", ":4000"))
    server.process.send_signal(signal.SIGKILL)
    status, out, err = client.wait(60)
    assert (status, out) == (0, "ok\n"), err


def test_server_stopped__client_times_out(bed: Bed) -> None:
    """It hangs rather than dies: nobody says anything, so only the timeout ends the RPC."""
    server = bed.server()
    server.process.send_signal(signal.SIGSTOP)
    bed.check("nobody", server.address, str(errno.ETIMEDOUT))
    server.process.send_signal(signal.SIGCONT)
    server.stop()


def test_client_killed__server_leaks_nothing(patient: Bed) -> None:
    server = patient.server()
    client = patient.start("async", server.address)
    time.sleep(0.05)
    client.send_signal(signal.SIGKILL)
    client.wait()
    # A queue is free again, and the server as good as new.
    patient.check("async", server.address)
    counters = server.stop()
    assert "rpcs" not in counters and "host_out_bytes" not in counters, counters


def test_restarted_server__serves_on(patient: Bed) -> None:
    for _ in range(3):
        server = patient.server()
        patient.check("async", server.address)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()


def lossy(space: Namespace, device: str, percent: int, folder: Path) -> None:
    """Drop Homa packets that come in at `device`."""
    program = folder / f"loss{percent}.o"
    multiarch = subprocess.run(
        ["gcc", "-print-multiarch"], capture_output=True, text=True, check=True
    ).stdout.strip()
    run(["clang", "-target", "bpf", "-O2", "-g", f"-I/usr/include/{multiarch}", f"-DLOSS_PERCENT={percent}",
         "-c", str(HERE / "loss.bpf.c"), "-o", str(program)])  # fmt: skip
    space.run(["tc", "qdisc", "add", "dev", device, "clsact"])
    space.run(
        [
            "tc",
            "filter",
            "add",
            "dev",
            device,
            "ingress",
            "bpf",
            "da",
            "obj",
            str(program),
            "sec",
            "tc",
        ]
    )


@needs_root
@pytest.mark.parametrize("percent", [1, 10])
@pytest.mark.parametrize("check", ["async", "sizes"])
def test_loss__everything_arrives(via: str, percent: int, check: str, tmp_path: Path) -> None:
    if check == "sizes" and percent == 10:
        pytest.skip("one RPC at a time pays every timeout in full")
    with Net() as net:
        a, router, b = net.routed()
        bed = Bed(via, "v4", a, b)
        server = bed.server()
        lossy(router, "left", percent, tmp_path)
        lossy(router, "right", percent, tmp_path)
        bed.check(check, server.address, timeout=180)
        counters = server.stop()
        assert counters["tx_retransmits"] > 0
        assert "rpcs" not in counters, counters


@needs_root
def test_path_mtu__smaller_on_the_way(via: str) -> None:
    """The near link is wider than the far one: the first message may fail, later ones fit."""
    with Net() as net:
        a, _, b = net.routed(mtu=3000, far_mtu=1400)
        bed = Bed(via, "v4", a, b)
        server = bed.server()

        bed.check("path_mtu", server.address)
        server.stop()


@needs_root
def test_second_afxdp__falls_back_and_says_so() -> None:
    with Net() as net:
        a, b = net.pair()
        first = Bed("afxdp", "v4", a, b).server()
        second = Bed("auto", "v4", a, b).server(port=4001)
        assert (first.via, second.via) == ("afxdp", "udp")
        forced = Process(
            b.command(Bed("afxdp", "v4", a, b).argv(b.v4, str(CLIENT), "idle", "10.9.0.1:4000"))
        )
        status, _, err = forced.wait()
        assert status == 1 and "in use" in err
        second.stop()
        first.stop()


@needs_root
def test_afxdp__without_privilege() -> None:
    with Net() as net:
        a, b = net.pair()
        argv = Bed("afxdp", "v4", a, b).argv(a.v4, str(CLIENT), "idle", f"{b.v4}:4000")
        status, _, err = a.start(["setpriv", "--reuid=65534", "--clear-groups", *argv]).wait()
        assert status == 1 and "root" in err and err.count("\n") <= 2
