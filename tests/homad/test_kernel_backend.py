# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""libhoma's kernel backend, on the sockets of libhoma-preload, which behave as those of homa.ko do.

So it is tested where no module can be loaded; tests/vm runs the same programs on the module.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from apitool import CHECKS, CLIENT, PATIENT, PORT, SERVER
from homad import (
    API_PROGRAMS,
    PROGRAMS,
    Host,
    needs_homad,
    needs_root,
    one_host,
    protocol,
    two_hosts,
)
from netns import Process
from preloadtool import LIBRARY, under

pytestmark = [
    needs_homad,
    needs_root,
    pytest.mark.skipif(
        not CLIENT.exists() or not LIBRARY.exists(), reason="libhoma-preload is not built"
    ),
]
PATH_CHECKS = ["sizes", "async", "abort", "no_buffers"]
OWN_CHECKS = ["kinds", "timeouts", "close", "kept", "starved", "pieces", "addresses"]


def serve(host: Host, *words: str) -> Process:
    process = host.start(under(str(API_PROGRAMS / "api_server"), str(PORT), *words), via="kernel")
    assert process.line().split() == ["ready", "kernel", "0"]
    return process


def stop(server: Process) -> None:
    """It ends well, and nothing of its RPCs is left."""
    status, out, err = server.stop(timeout=60)
    assert status == 0, err
    left = [line for line in out.splitlines() if line.startswith(("rpcs=", "host_out_bytes="))]
    assert not left, out


def check(host: Host, name: str, address: str) -> None:
    done = host.run(under(str(CLIENT), name, address), timeout=90, via="kernel")
    assert done.stdout == "ok\n", done.stderr


@pytest.fixture(scope="module")
def machine() -> Iterator[Host]:
    with one_host(config=protocol(SERVER)) as host:
        yield host


@pytest.fixture(scope="module")
def server(machine: Host) -> Iterator[Process]:
    process = serve(machine)
    yield process
    stop(process)


@pytest.mark.parametrize("name", CHECKS)
def test_api(machine: Host, server: Process, name: str) -> None:
    check(machine, name, f"{machine.v4}:{PORT}")


@pytest.mark.parametrize("name", OWN_CHECKS)
def test_kernel_backend(machine: Host, name: str) -> None:
    done = machine.run(under(str(PROGRAMS / "kernel_backend"), name), timeout=90, via="kernel")
    assert done.stdout == "ok\n", done.stderr


@pytest.mark.parametrize("family", ["v4", "v6"])
def test_api__over_the_wire(family: str) -> None:
    with two_hosts(config=protocol(PATIENT)) as (a, b):
        process = serve(b, "4")
        for name in PATH_CHECKS:
            check(a, name, a.address(b, PORT, family))
        stop(process)


def test_auto__no_module_and_then_homad(machine: Host) -> None:
    """The preload library's sockets are no module: who leaves the choice to libhoma gets homad."""
    process = machine.start(under(str(API_PROGRAMS / "api_server"), "4001"), via="auto")
    assert process.line().split()[:2] == ["ready", "service"]
    process.stop()


def test_forced__no_sockets_no_handle(machine: Host) -> None:
    done = machine.run([str(API_PROGRAMS / "api_server"), "4002"], via="kernel", check=False)
    assert done.returncode == 1 and "the kernel has no Homa" in done.stderr, done.stderr


def test_bench(machine: Host) -> None:
    """homa-bench as server and client over it."""
    bench = str(API_PROGRAMS.parents[1] / "bench" / "homa-bench")
    server = machine.start(
        under(
            bench,
            "server",
            "--transport",
            "homa",
            "--via",
            "kernel",
            "--bind",
            ":4100",
            "--duration",
            "60",
        )
    )
    assert "via kernel" in (server.stderr.line(30) or "")
    done = machine.run(
        under(bench, "client", "--transport", "homa", "--via", "kernel", "--peer", f"{machine.v4}:4100", "--size",
              "100", "--outstanding", "16", "--duration", "0.5", "--json", "-")
    )  # fmt: skip
    assert '"via":' in done.stdout and '"kernel"' in done.stdout, done.stdout[:2000]
    server.stop()
