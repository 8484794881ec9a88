# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The failures of tests/net/test_libhoma_failures.py between two homads, and over one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from apitool import CLIENT, PATIENT, Bed
from homad import Homad, finishing, needs_homad, needs_root, protocol
from netns import Net

# The same tests: this module's fixtures `bed`, `patient` and `via` are what they run on.
from test_libhoma_failures import (  # noqa: F401
    test_client_killed__server_leaks_nothing,
    test_no_host,
    test_no_listener__port_unreachable,
    test_no_route,
    test_server_exits__in_the_middle,
    test_server_killed__client_gets_its_error,
)

pytestmark = [needs_homad, needs_root, pytest.mark.skipif(not CLIENT.exists(), reason=f"{CLIENT} is not built")]


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
