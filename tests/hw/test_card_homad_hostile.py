# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A device that writes anything into the memory that it shares with homad. What goes over it fails as
any RPC that is not answered; homad lives, and serves the rest of its host."""

from __future__ import annotations

import pytest
from homad import PROGRAMS, Homad, Host, finishing, protocol

from tests.hw.cards import echo, serve
from tests.hw.test_card import built  # noqa: F401
from tests.hw.test_card_homad import NETWORK
from tests.hw.test_card_hostile import program, with_tap
from tests.net.netns import Net


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_homad__survives_a_hostile_device(seed: int) -> None:
    with Net() as net:
        space = net.namespace("a")
        with_tap(space)
        space.v4 = "10.9.0.9"
        device = space.start(program(space, "hostile_device", str(seed), "True"))
        assert device.line() == "ready"
        host = Host(space, Homad(space, {"network": NETWORK, **protocol("timeout_us=1000000")}))
        with finishing(host.homad):
            host.homad.start()
            # Ten times a second homad looks for the device that it has left.
            for _ in range(3):
                wrong = echo(space, host.words([]), "10.9.0.2", 20_000)
                assert wrong.startswith("echo_client: "), wrong
            host.homad.check()
            assert device.running()
            # Messages within the host do not need the device.
            server = serve(space, host.words([]))
            argv = [PROGRAMS / "steady", f"{space.v4}:4000", "0.001", "1", "20000"]
            status, out, err = host.start(argv).wait(120)
            assert status == 0, f"{out}{err}"
            server.stop()
