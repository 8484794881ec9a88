# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The whole API: over UDP on loopback without any privilege, over AF_XDP and UDP between namespaces."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from apitool import CHECKS, CLIENT, Bed, Server, run_local
from netns import Net

pytestmark = pytest.mark.skipif(not CLIENT.exists(), reason=f"{CLIENT} is not built")
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="makes network namespaces, so it needs root"
)


@pytest.fixture(scope="module", params=["v4", "v6"])
def loopback(request: pytest.FixtureRequest) -> Iterator[tuple[Bed, Server]]:
    bed = Bed("udp", request.param)
    server = bed.server()
    yield bed, server
    counters = server.stop()
    assert "rpcs" not in counters and "host_out_bytes" not in counters, counters


@pytest.mark.parametrize("check", CHECKS)
def test_loopback__rootless(loopback: tuple[Bed, Server], check: str) -> None:
    bed, server = loopback
    assert server.via == "udp"
    bed.check(check, server.address)


def test_loopback__ids(loopback: tuple[Bed, Server]) -> None:
    bed, server = loopback
    bed.check_ids(server.address)


@pytest.fixture(scope="module", params=["afxdp-v4", "afxdp-v6", "udp-v4", "udp-v6"])
def between(request: pytest.FixtureRequest) -> Iterator[tuple[Bed, Server]]:
    via, family = request.param.split("-")
    with Net() as net:
        a, b = net.pair()
        bed = Bed(via, family, a, b)
        server = bed.server()
        yield bed, server
        counters = server.stop()
        assert "rpcs" not in counters and "host_out_bytes" not in counters, counters


@needs_root
@pytest.mark.parametrize("check", CHECKS)
def test_namespaces(between: tuple[Bed, Server], check: str) -> None:
    bed, server = between
    assert server.via == bed.server_via
    bed.check(check, server.address)


@needs_root
@pytest.mark.parametrize("mtu", [1280, 3000, 9000])
@pytest.mark.parametrize("via", ["afxdp", "udp"])
def test_namespaces__mtu(via: str, mtu: int) -> None:
    with Net() as net:
        bed = Bed(via, "v4", *net.pair(mtu=mtu))
        bed.check("sizes", bed.server().address)


def test_any_address__means_this_host() -> None:
    """Bound to no address, a handle names itself 0.0.0.0 or ::, and finds itself there."""
    run_local("api_client", "self", "127.0.0.1:1", env={"HOMA_VIA": "udp"})


@pytest.mark.parametrize("threads", ["1", "4"])
def test_server_threads(threads: str) -> None:
    bed = Bed("udp", "v4")
    server = bed.server(threads)
    bed.check("async", server.address)
    bed.check("slow_server", server.address)
    server.stop()


def test_client_threads() -> None:
    run_local("api_threads")


def test_misuse__each_mistake_has_its_sentence() -> None:
    run_local("api_misuse")


def test_two_servers__one_machine() -> None:
    """The second takes an ephemeral encapsulation port; both answer."""
    bed = Bed("udp", "v4")
    first, second = bed.server(), bed.server()
    assert first.address != second.address
    for server in (first, second):
        bed.check("async", server.address)
        server.stop()


def test_shared_library__opens_its_plug_in() -> None:
    bed = Bed("udp", "v4")
    server = bed.server(program="api_shared")
    bed.check("async", server.address)
    server.stop()
