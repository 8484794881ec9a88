# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""libhoma on the kernel's Homa: the other hosts' API tests, between two namespaces of a guest.

One guest for all. tests/homad/test_kernel_backend.py runs the same programs without a module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import BUILD, with_module

from lab.vm import Guest, Kernel, Options

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "net"))
from apitool import CHECKS

FOLDER = BUILD.resolve()
PROGRAMS = tuple(
    FOLDER / path
    for path in (
        "tests/net/api_client", "tests/net/api_server", "tests/homad/kernel_backend",
        "tests/preload/sock_client", "tests/preload/sock_server", "bench/homa-bench",
    )
)  # fmt: skip
PRELOAD = FOLDER / "lib/preload/libhoma-preload.so"
MISSING = [str(path) for path in (*PROGRAMS, PRELOAD) if not path.exists()]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not built: {', '.join(MISSING)}")

OWN_CHECKS = ["kinds", "timeouts", "close", "kept", "starved", "pieces", "addresses"]
PATH_CHECKS = ["sizes", "async", "abort", "no_buffers"]
# What looks most different in another kernel; the rest runs in one.
EVERYWHERE = {"sizes", "async", "private", "abort", "no_buffers", "fork", "kinds", "close"}
# RPCs may wait as long as over the other hosts: the emulator stands still now and then.
SET_UP = """
ip netns add a; ip netns add b
ip link add va netns a type veth peer name vb netns b
for n in a b; do
    [ $n = a ] && i=1 || i=2
    ip -n $n addr add 10.9.0.$i/24 dev v$n; ip -n $n addr add fd09::$i/64 dev v$n nodad
    ip -n $n link set v$n up; ip -n $n link set lo up
    echo 20000 | ip netns exec $n tee /proc/sys/net/homa/timeout_ticks >/run/null
done
"""
SERVE = """
HOMA_VIA=kernel ip netns exec b api_server 4000 2 >/run/server 2>&1 & echo $! >/run/pid
for i in $(seq 100); do grep -q ready /run/server && break; sleep 0.1; done
cat /run/server
"""
END = """
kill -TERM $(cat /run/pid)
for i in $(seq 400); do [ -d /proc/$(cat /run/pid) ] || break; sleep 0.1; done
cat /run/server
"""


def checks(names: list[str]) -> list[object]:
    return [
        pytest.param(name, marks=[] if name in EVERYWHERE else [pytest.mark.once]) for name in names
    ]


@pytest.fixture(scope="module")
def guest(kernel: Kernel, module: Path) -> Iterator[Guest]:
    options = Options(files={"/usr/lib/libhoma-preload.so": PRELOAD})
    with Guest(kernel, with_module(module, options, PROGRAMS)) as machine:
        machine.run(SET_UP).check()
        yield machine


@pytest.fixture(scope="module")
def server(guest: Guest) -> Iterator[None]:
    """An api_server in namespace b; at its end nothing of its RPCs is left."""
    assert guest.run(SERVE, timeout=60).check() == "ready kernel 0\n"
    yield
    said = guest.run(END, timeout=90).output.splitlines()
    assert said and "requests_received" in "".join(said), said
    left = [line for line in said if line.startswith(("rpcs=", "host_out_bytes="))]
    assert not left, said


def ok(guest: Guest, command: str, timeout: float = 120) -> None:
    done = guest.run(f"HOMA_VIA=kernel ip netns exec a {command}", timeout=timeout)
    assert (done.status, done.output) == (0, "ok\n"), done.output[-3000:]


@pytest.mark.parametrize("check", checks(CHECKS))
def test_api(guest: Guest, server: None, check: str) -> None:
    ok(guest, f"api_client {check} 10.9.0.2:4000")


@pytest.mark.once
@pytest.mark.parametrize("check", PATH_CHECKS)
def test_api__v6(guest: Guest, server: None, check: str) -> None:
    ok(guest, f"api_client {check} [fd09::2]:4000")


@pytest.mark.parametrize("check", checks(OWN_CHECKS))
def test_kernel_backend(guest: Guest, check: str) -> None:
    ok(guest, f"kernel_backend {check}")


@pytest.mark.once
def test_nobody__is_said_at_once(guest: Guest) -> None:
    ok(guest, "api_client nobody 10.9.0.2:4999 107")
    ok(guest, "api_client nobody [fd09::2]:4999 107")


@pytest.mark.once
def test_auto__takes_the_kernel(guest: Guest) -> None:
    """Unless something is asked for that is not the kernel's to give."""
    script = """
    api_server 4321 >/run/auto 2>&1 & p=$!
    HOMA_ADDRESS=127.0.0.1 api_server 4322 >/run/udp 2>&1 & q=$!
    for i in $(seq 100); do
        grep -q ready /run/auto && grep -q ready /run/udp && break; sleep 0.1
    done
    head -1 /run/auto; head -1 /run/udp; kill -9 $p $q"""
    assert guest.run(script).output.split() == ["ready", "kernel", "0", "ready", "udp", "54321"]


@pytest.mark.once
def test_preload__steps_aside(guest: Guest) -> None:
    """The socket is the kernel's own, and all that a program does with it, too."""
    script = """
    export LD_PRELOAD=/usr/lib/libhoma-preload.so HOMA_PRELOAD_DEBUG=1
    sock_server 4 4005 block >/run/pre 2>&1 & p=$!
    for i in $(seq 100); do grep -q ready /run/pre && break; sleep 0.1; done
    for c in sizes private_rpc polls epoll_level dups forks failures; do
        sock_client 4 127.0.0.1 4005 $c 2>&1 || echo "$c ended with $?"
    done
    cat /run/pre; ls -l /proc/$p/fd | grep -c socket:; kill -9 $p"""
    said = guest.run(script, timeout=200).output.split()
    assert said[:7] == ["ok"] * 7, said
    assert said[7:] == ["ready", "1"], said


@pytest.mark.once
def test_bench(guest: Guest) -> None:
    script = """
    ip netns exec b homa-bench server --transport homa --via kernel --bind :4100 >/run/bs 2>&1 & p=$!
    ip netns exec a homa-bench client --transport homa --via kernel --peer 10.9.0.2:4100 \\
        --size 100 --outstanding 4 --duration 1 --json /run/json --quiet; echo status $?
    kill $p; tr -d ' \\t' </run/json | grep -o '"via":"[a-z]*"\\|"via_reason":"[^"]*"' | sort -u"""
    said = guest.run(script, timeout=60).output.split()
    assert said == ["status", "0", '"via":"kernel"', '"via_reason":""'], said


@pytest.mark.once
def test_unloaded__says_what_to_do(live: Callable[..., Guest]) -> None:
    script = """
    rmmod homa || exit 1
    HOMA_VIA=kernel api_server 4323; echo status $?
    api_server 4324 >/run/auto 2>&1 & p=$!
    for i in $(seq 100); do grep -q ready /run/auto && break; sleep 0.1; done
    head -1 /run/auto; kill -9 $p"""
    with live(*PROGRAMS[:2]) as machine:
        said = machine.run(script, timeout=60).output
    assert "the kernel has no Homa" in said and "status 1" in said, said
    assert "ready udp" in said, said
