# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Real programs through homad: both sides, the server alone, the client alone; over a wire that loses; and killed.

A usual run has few of the pairings; HOMA_TCP_WAYS=homad,server,client all of those ways.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from homad import HOMAD, Homad, finishing
from loads import LOADS, PYTHON, missing
from netns import Net, Process, eventually
from ways import ACCELERATED, CONFIG, PATIENCE, Side, opened, port, two_sides

HERE = Path(__file__).resolve().parent
CHOSEN = [
    w
    for w in (os.environ.get("HOMA_TCP_WAYS") or "").split(",")
    if w in ACCELERATED and w != "kernel"
]
SMALL = {"homad": list(LOADS),
         "server": ["redis", "nginx", "asyncio"],
         "client": ["curl", "postgresql", "asyncio"]}  # fmt: skip
PAIRINGS = [(way, load) for way in (CHOSEN or SMALL) for load in (LOADS if CHOSEN else SMALL[way])]

pytestmark = pytest.mark.skipif(not HOMAD.exists(), reason=f"{HOMAD} is not built")


def skip_unless_installed(load: str) -> None:
    if missing(load):
        pytest.skip(f"not installed: {missing(load)}")


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[str, Side, Side]]:
    """A way, its server's side and its client's."""
    with two_sides(request.param) as (server, client):
        yield request.param, server, client


@pytest.mark.parametrize(
    ("pair", "load"), PAIRINGS, indirect=["pair"], ids=[f"{w}-{n}" for w, n in PAIRINGS]
)
def test_program(pair: tuple[str, Side, Side], load: str, tmp_path: Path) -> None:
    """The right bytes; and the kernel of an accelerated side took no part in it."""
    skip_unless_installed(load)
    way, server, client = pair
    before = [opened(side) for side in (server, client)]
    LOADS[load](server, client, tmp_path)
    accepted = opened(server)[1] - before[0][1]
    connected = opened(client)[0] - before[1][0]
    assert (accepted == 0) == ACCELERATED[way][0], f"the server's kernel accepted {accepted}"
    assert (connected == 0) == ACCELERATED[way][1], f"the client's kernel opened {connected}"


@contextmanager
def lossy_sides() -> Iterator[tuple[Side, Side, Process]]:
    """Two sides with homad at the ends of a wire that loses and reorders (lossy.py)."""
    with Net() as net:
        wire = net.namespace("wire")
        homads = []
        for number, name in enumerate(("left", "right")):
            space = net.namespace("ab"[number])
            net.veth(space, wire, b_device=name)
            space.v4 = f"10.9.0.{number + 1}"
            space.address(f"{space.v4}/24")
            # The wire takes packets of the MTU only, so the devices cut nothing.
            space.run(["ethtool", "-K", space.device, "tx", "off", "tso", "off", "gso", "off"])
            homads.append(Homad(space, CONFIG))
        forwarder = wire.start([PYTHON, str(HERE / "lossy.py"), "left", "right"])
        assert forwarder.line(PATIENCE) == "ready"
        with finishing(*homads):
            sides = [Side(homad.start().space, homad) for homad in homads]  # type: ignore[arg-type]
            yield sides[0], sides[1], forwarder


def test_loss(tmp_path: Path) -> None:
    """1 % of the packets lost and 2 % late, both ways: the same bytes, only later."""
    skip_unless_installed("redis")
    with lossy_sides() as (server, client, wire):
        for name in LOADS if CHOSEN else ("redis", "memcached", "asyncio"):
            if not missing(name):
                (tmp_path / name).mkdir()
                LOADS[name](server, client, tmp_path / name)
        _, said, _ = wire.stop()
        forwarded, lost, late = map(int, said.split())
        assert forwarded > 1000 and lost > 10 and late > 20, said


STREAM = """
import socket, sys
family, address, number = socket.AF_INET, sys.argv[2], int(sys.argv[3])
if sys.argv[1] == "serve":
    listener = socket.create_server((address, number))
    print("ready", flush=True)
    one, _ = listener.accept()
else:
    one = socket.create_connection((address, number), 60)
one.settimeout(60)
print("open", flush=True)
at = 0
try:
    while True:
        if sys.argv[4] == "sends":
            one.sendall(bytes((at + i) % 251 for i in range(5020)))
            at += 5020
        else:
            data = one.recv(65536)
            if not data:
                print("end", flush=True)
                break
            assert data == bytes((at + i) % 251 for i in range(len(data))), "other bytes"
            at += len(data)
except OSError as error:
    print(type(error).__name__, flush=True)
"""


@pytest.mark.parametrize("way", CHOSEN or ["homad"])
@pytest.mark.parametrize("victim", ["server", "client", "homad"])
def test_killed(victim: str, way: str, tmp_path: Path) -> None:
    """kill -9 in the middle of a stream: the other end hears of it, no byte is wrong, nothing stays.

    The homad that is killed is the receiver's: who only waits for a host that is gone hears nothing, as ever."""
    with two_sides(way) as (server, client):
        before = [(side.homad, side.homad.resources()) for side in (server, client) if side.homad]
        number = port()
        roles = ["receives", "sends"] if before[-1][0] is server.homad else ["sends", "receives"]
        serving = server.start([PYTHON, "-c", STREAM, "serve", server.v4, number, roles[0]])
        assert serving.line(PATIENCE) == "ready"
        calling = client.start([PYTHON, "-c", STREAM, "call", server.v4, number, roles[1]])
        both = {"server": serving, "client": calling}
        assert [p.line(PATIENCE) for p in both.values()] == ["open"] * 2
        if victim == "homad":
            victims = before.pop()[0]
            victims.kill()
        else:
            victims = None
            both.pop(victim).stop(signal.SIGKILL)
        for process in both.values():
            assert process.line(PATIENCE) in ("ConnectionResetError", "BrokenPipeError", "end")
            assert process.wait(PATIENCE)[0] == 0
        if victims:
            victims.start()
        for homad, resources in before:
            homad.await_resources(resources)
        # Whatever was killed, both hosts serve again.
        LOADS["asyncio"](server, client, tmp_path)
        eventually(lambda: server.established(number) + client.established(number) == 0, 30)
