# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""libhoma's API through homad: the cases of tests/net/test_libhoma.py, with a daemon at one end or both.

Full beds run every check; the others those where the way of a packet, not libhoma, makes the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from apitool import CHECKS, CLIENT, PATIENT, SERVER, Bed, Server
from homad import Homad, finishing, needs_homad, needs_root, protocol
from netns import Namespace, Net, Process

pytestmark = [
    needs_homad,
    needs_root,
    pytest.mark.skipif(not CLIENT.exists(), reason=f"{CLIENT} is not built"),
]

PATH_CHECKS = ["sizes", "async", "borrow", "abort", "no_buffers"]
NOTHING_LEFT = ("rpcs", "host_out_bytes")


@dataclass(frozen=True)
class Way:
    """Who speaks to whom: hosts of client and server; `udp`: no AF_XDP; `one`: one daemon for both."""

    name: str
    client: str = "service"
    server: str = "service"
    family: str = "v4"
    full: bool = False
    udp: bool = False
    one: bool = False


WAYS = [
    Way("wire", full=True),
    Way("wire-v6", family="v6"),
    Way("machine", full=True, one=True),
    Way("machine-v6", family="v6", one=True),
    Way("udp-wire", udp=True),
    Way("udp-wire-v6", udp=True, family="v6"),
    Way("from-embedded-udp", client="udp"),
    Way("to-embedded-udp", server="udp"),
    Way("from-embedded-afxdp", client="afxdp"),
    Way("to-embedded-afxdp-v6", server="afxdp", family="v6"),
]


def daemon(space: Namespace, way: Way, settings: str) -> Homad:
    config = dict(protocol(settings))
    if way.udp:
        config["network"] = {"afxdp": "off"}
    return Homad(space, config)


def occupy_usual_port(space: Namespace) -> Process:
    """Take UDP port 54321: an encapsulation port that an address does not mention could not be meant."""
    code = "import socket,time; s=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM); s.bind(('::',54321)); " \
           "print('taken',flush=True); time.sleep(10000)"  # fmt: skip
    process = space.start(["/usr/bin/python3", "-c", code])
    assert process.line() == "taken"
    return process


@pytest.fixture(scope="module")
def between(request: pytest.FixtureRequest) -> Iterator[tuple[Bed, Server]]:
    way: Way = request.param
    with Net() as net, ExitStack() as stack:
        a, b = net.pair()
        if way.one:
            b = a
        daemons = {}
        if way.client == "service":
            daemons[a] = daemon(a, way, PATIENT)
        if way.server == "service" and b not in daemons:
            daemons[b] = daemon(b, way, SERVER)
        stack.enter_context(finishing(*daemons.values()))
        for each in daemons.values():
            each.start()
        if way.server == "udp":
            occupy_usual_port(b)
        sockets = tuple(daemons[s].socket if s in daemons else "" for s in (a, b))
        bed = Bed(way.client, way.family, a, b, server_via=way.server, sockets=sockets)
        before = {d: d.resources() for d in daemons.values()}
        server = bed.server()
        yield bed, server
        counters = server.stop()
        assert not [name for name in NOTHING_LEFT if name in counters], counters
        for each, resources in before.items():
            each.check()
            each.await_resources(resources)


# Not every check over every way; some once more with a sanitized daemon.
SANITIZED_WAYS = ("wire", "machine-v6", "from-embedded-udp")
CASES = [
    pytest.param(
        way, check, id=f"{way.name}-{check}",
        marks=[pytest.mark.sanitized] if way.name in SANITIZED_WAYS and check in PATH_CHECKS else [],
    )
    for way in WAYS
    for check in (CHECKS if way.full else PATH_CHECKS)
]  # fmt: skip


@pytest.mark.parametrize(
    "between", [pytest.param(way, id=way.name) for way in WAYS], indirect=True, scope="module"
)
def test_ids__are_those_in_the_packets(between: tuple[Bed, Server]) -> None:
    """A host that is no homad has them from the packets, so what holds for both holds for the packets."""
    bed, server = between
    bed.check_ids(server.address)


@pytest.mark.parametrize(("between", "check"), CASES, indirect=["between"], scope="module")
def test_api(between: tuple[Bed, Server], check: str) -> None:
    bed, server = between
    assert server.via == bed.server_via
    bed.check(check, server.address)
