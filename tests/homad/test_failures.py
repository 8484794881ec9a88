# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The failures of tests/net/test_libhoma_failures.py between two homads, and over one."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from apitool import CLIENT, PATIENT, Bed
from homad import Homad, Host, Settings, finishing, needs_homad, needs_root, protocol, two_hosts
from netns import Net, eventually
from ops_tools import RPCS, ask, serving, snapshot

# The same tests: this module's fixtures `bed`, `patient` and `via` are what they run on.
from test_libhoma_failures import (  # noqa: F401
    test_client_killed__server_leaks_nothing,
    test_no_host,
    test_no_listener__port_unreachable,
    test_no_route,
    test_server_exits__in_the_middle,
    test_server_killed__client_gets_its_error,
)

pytestmark = [
    needs_homad,
    needs_root,
    pytest.mark.skipif(not CLIENT.exists(), reason=f"{CLIENT} is not built"),
]


def bed_of(via: str, settings: str) -> Iterator[Bed]:
    with Net() as net:
        a, b = net.pair()
        if via == "machine":
            b = a
        daemons = {space: Homad(space, protocol(settings)) for space in dict.fromkeys((a, b))}
        with finishing(*daemons.values()):
            for daemon in daemons.values():
                daemon.start()
            before = {d: d.resources() for d in daemons.values()}
            yield Bed("service", "v4", a, b, sockets=(daemons[a].socket, daemons[b].socket))
            for space in (a, b):
                space.stop()
            for daemon, resources in before.items():
                daemon.await_resources(resources)


@pytest.fixture(params=["wire", "machine"])
def via(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def bed(via: str) -> Iterator[Bed]:
    """RPCs time out as soon as for anybody."""
    yield from bed_of(via, "restart_guard_us=1")


@pytest.fixture
def patient(via: str) -> Iterator[Bed]:
    yield from bed_of(via, PATIENT.replace("timeout_us=20000000", "timeout_us=3000000"))


def test_first_contact__more_than_is_kept_for_a_neighbour() -> None:
    """What finds neither a link address nor room to wait for one goes later, and not as a retransmission,
    which a young homad ignores."""
    config: Settings = {
        "protocol": {
            "restart_guard_us": 60_000_000,
            "timeout_us": 20_000_000,
            "tombstone_ms": 25_000,
        },
        "network": {"udp": False},
    }

    def failed() -> int:
        return int(snapshot(a.homad)["engine"]["tx_failed"])

    with two_hosts(config) as (a, b), serving(b):
        b.space.ip("link", "set", b.space.device, "arp", "off")
        asking = a.start([RPCS, "ask", b.v4, "4000", "48", "20000", "48"])
        eventually(lambda: failed() > 0)
        b.space.ip("link", "set", b.space.device, "arp", "on")
        status, out, err = asking.wait(60)
        assert (status, out.splitlines()[-1]) == (0, "done 48 failed 0"), err
        assert int(snapshot(b.homad)["engine"]["drop_restart"]) == 0


def test_narrow_path__is_remembered() -> None:
    """A router's error ends the RPC that met it; the next ones fit, also when the route has been asked for anew."""
    with Net() as net:
        config: Settings = {**protocol(PATIENT), "network": {"udp": False}}
        a, _, b = (Host(s, Homad(s, config)) for s in net.routed(far_mtu=1300))
        with finishing(a.homad, b.homad):
            a.homad.start()
            b.homad.start()
            with serving(b):
                words = [RPCS, "ask", b.v4, "4000", "2", "20000", "1"]
                eventually(lambda: a.run(words).stdout.splitlines()[-1] == "done 2 failed 0")
                for _ in range(3):
                    time.sleep(1.1)
                    ask(a, b, 4, 20_000)
