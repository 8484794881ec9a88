# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the whole card is tested with: the benches of segmentation and of large receive at its two
sides, and a host that reads and writes registers meanwhile."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from cocotb.triggers import RisingEdge

from hw.tb import bench_lro, bench_lso
from hw.tb import hash as rss
from hw.tb.axil import Axil
from hw.tb.layout import constants
from hw.tb.stream import reset

QUEUES = 16
STREAM = ("valid", "ready", "data", "keep", "last")


def _view(dut: Any, prefixes: dict[str, str], **more: Any) -> SimpleNamespace:
    """The card as a block: signals with other prefixes."""
    signals = {
        f"{short}_{name}": getattr(dut, f"{long}_{name}")
        for short, long in prefixes.items()
        for name in STREAM
    }
    return SimpleNamespace(clk=dut.clk, **signals, **more)


class Receive(bench_lro.Bench):
    """Large receive's bench, which also looks at what the card says beside each frame. `queue`:
    which one a frame of this hash goes to, or None if that is not known."""

    def __init__(self, dut: Any, rng: random.Random, width: int, steady: bool) -> None:
        view = _view(
            dut,
            {"s": "ps", "m": "hm"},
            **{f"m_{n}": getattr(dut, f"hm_{n}") for n in ("bad", *self.SIDE)},
            **{f"l_{n}": getattr(dut, f"hl_{n}") for n in ("valid", "ready")},
            **{f"l_{n}": getattr(dut, f"hl_{n}") for n in ("offset", "length", "last")},
            events=dut.receive.lro_events,
            store=dut.receive.lro.store,
            limit=SimpleNamespace(value=65_535),
        )
        super().__init__(view, rng, width, steady, ("queue", "hash", "class", "at", "time"))
        self.source.begun = self._arrives
        self.time = dut.now
        self.queue: Any = lambda said: said % QUEUES
        self.queues: list[int] = []
        self.classes: list[int] = []
        self.undecoded = 0

    SIDE = ("pieces", "seg", "queue", "hash", "class", "at", "time")

    def _arrives(self) -> None:
        self.coming.popleft().arrived = int(self.time.value)

    def check(self, frame: bytes, said: list[dict[str, int]]) -> None:
        for name in self.SIDE:
            assert len({beat[name] for beat in said}) == 1, f"{name} changes inside a frame"
        super().check(frame, said)
        one = said[0]
        arrived = self.units[-1][0][1].arrived
        assert one["time"] == arrived, f"it came at {arrived}, not {one['time']}"
        self.queues.append(one["queue"])
        self.classes.append(one["class"])
        want, verdict = rss.of_frame(frame)
        if said[-1]["bad"] or verdict.bad:
            return
        assert one["hash"] == want, f"hash {one['hash']:08x}, not {want:08x}: {frame[:200].hex()}"
        assert one["class"] == verdict.said["class_"], frame[:200].hex()
        self.undecoded += bool(verdict.said.get("error"))
        if one["class"] >= constants()["CLASS_HOMA"]:
            assert one["at"] == verdict.said["at"], frame[:200].hex()
        queue = self.queue(want)
        assert queue is None or one["queue"] == queue, f"queue {one['queue']}, not {queue}"


class Port:
    """Says how many bytes have left it, by default all that were in it before, and takes what the
    card says of each frame that has."""

    def __init__(self, dut: Any, transmit: bench_lso.Bench) -> None:
        self.dut, self.transmit = dut, transmit
        self.most = 127
        self.told = self.left = self.longest = 0
        self.departures: list[tuple[int, int, int]] = []

    def edge(self) -> None:
        dut = self.dut
        if dut.hd_valid.value:
            said = dut.hd_other, dut.hd_number, dut.hd_time
            self.departures.append(tuple(int(s.value) for s in said))  # type: ignore[arg-type]
        inside = self.transmit.sink.bytes - self.told
        self.longest = max(self.longest, inside)
        left = min(self.most, inside)
        self.told += left
        if left != self.left:
            dut.pm_left.value = left
            self.left = left


class Card:
    """All of it. `step` is a cycle of everything."""

    def __init__(self, dut: Any, rng: random.Random, width: int, steady: bool = False) -> None:
        self.dut = dut
        more = {f"s_{n}": getattr(dut, f"hs_{n}") for n in ("split", "seg", "tag")}
        names = ("valid", "ready", "tag", "status", "packets")
        more |= {f"c_{n}": getattr(dut, f"hc_{n}") for n in names}
        view = _view(dut, {"s": "hs", "b": "hb", "m": "pm"}, **more)
        self.transmit = bench_lso.Bench(view, rng, width)
        if steady:
            for end in ("long", "short", "sink"):
                getattr(self.transmit, end).pauses.ready = lambda: True
            self.transmit.host.ready = lambda: True  # type: ignore[method-assign]
        self.receive = Receive(dut, rng, width, steady)
        self.port = Port(dut, self.transmit)
        dut.hd_ready.value = 1
        self.registers = Axil(dut, rng, self.step)

    async def step(self) -> bool:
        """A cycle; did anything leave?"""
        await RisingEdge(self.dut.clk)
        sent = self.transmit.edge()
        self.port.edge()
        return self.receive.edge() or sent

    def stalled(self) -> dict[str, int]:
        """What the counters of stalls should be: cycles in which something was there and was not
        taken."""
        return {
            "TX_STALLED": self.transmit.sink.stalled,
            "RX_STALLED": self.receive.source.stalled,
            "HOST_STALLED": self.receive.sink.stalled,
            "LSO_WAITED": self.transmit.waited,
        }

    async def idle(self, cycles: int) -> None:
        for _ in range(cycles):
            await self.step()


async def start(dut: Any) -> None:
    """A reset with everybody silent."""
    for name in ("awvalid", "wvalid", "bready", "arvalid", "rready", "awaddr", "wdata", "wstrb"):
        getattr(dut, f"reg_{name}").value = 0
    for name in ("hs_valid", "hb_valid", "hc_ready", "hm_ready", "hl_ready", "pm_ready"):
        getattr(dut, name).value = 0
    for name in ("pm_left", "hd_ready"):
        getattr(dut, name).value = 0
    for name in ("ps_valid", "taken", "taken_queue", "hs_split", "hs_seg", "hs_tag", "reg_araddr"):
        getattr(dut, name).value = 0
    await reset(dut)
