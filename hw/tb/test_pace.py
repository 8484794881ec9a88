# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa_pace against a model, cycle by cycle; and what it is for: a short queue in the port, a rate,
and the time at which each frame has left."""

from __future__ import annotations

import os
import random
from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from hw.tb.pace_model import Model, Offer, Settings
from hw.tb.stream import Pauses, beats, reset

WIDTH = int(os.environ.get("HW_WIDTH", "512"))
FRAMES = int(os.environ.get("HW_FRAMES", "1000"))
SEED = int(os.environ.get("HW_SEED", "1"))
BYTES = WIDTH // 8
INPUTS = ("on", "limit", "rate", "extra", "now", "left", "d_ready", "m_ready", "s_valid", "s_other")
EVENTS = ("waited", "lied", "untaken", "crowded")


class Bench:
    """The block, who sends, the port and the host. The port has a FIFO and lets so many bytes go in
    each cycle (`drain`, which may be a fraction); `tells`: which share of them it says at once."""

    def __init__(self, dut: Any, rng: random.Random) -> None:
        self.dut, self.rng = dut, rng
        self.model = Model(BYTES)
        self.settings = Settings()
        self.sending, self.port, self.host = Pauses(rng), Pauses(rng), Pauses(rng)
        self.queue: deque[Any] = deque()
        self.offer: Offer | None = None
        self.shown = False
        self.ready = self.taking = self.left = self.now = 0
        self.drain = float(BYTES)
        self.owed = self.room = 0.0
        self.inside = self.longest = self.sent = 0
        self.lie = 0.0
        self.cycles = 0
        self.departures: list[tuple[int, int, int]] = []
        self.ends: list[tuple[int, int]] = []
        self.seen = dict.fromkeys(EVENTS, 0)

    def send(self, frame: bytes, other: int = 0) -> None:
        self.queue.extend((beat, other) for beat in beats(frame, WIDTH))

    def set(self, **settings: int) -> None:
        for name, value in settings.items():
            setattr(self.settings, name, value)
            getattr(self.dut, name).value = value

    def idle(self) -> bool:
        return not self.queue and not self.offer and not self.inside

    async def step(self) -> None:
        """A cycle: what the block says is compared, then the inputs of the next one are set."""
        await RisingEdge(self.dut.clk)
        dut, model = self.dut, self.model
        offer = self.offer if self.shown else None
        go = model.go(self.settings)
        assert dut.m_valid.value == (offer is not None and go), f"cycle {self.cycles}"
        assert dut.s_ready.value == (self.ready and go), f"cycle {self.cycles}"
        assert int(dut.in_port.value) == model.inside
        if offer and go:
            assert dut.m_data.value == dut.s_data.value and dut.m_keep.value == dut.s_keep.value
            assert dut.m_last.value == offer.last
        self._stamp()
        for name in EVENTS:
            self.seen[name] += int(getattr(dut, name).value)
        taken = offer if offer and go and self.ready else None
        model.edge(self.settings, offer, self.ready, self.left, self.now, self.taking)
        assert self.seen == model.counted, f"{self.seen}, not {model.counted}"
        self._after(taken)
        self.cycles += 1

    def _stamp(self) -> None:
        assert self.dut.d_valid.value == bool(self.model.stamps)
        if self.model.stamps:
            said = tuple(
                int(getattr(self.dut, f"d_{n}").value) for n in ("other", "number", "time")
            )
            assert said == self.model.stamps[0], f"{said}, not {self.model.stamps[0]}"
            if self.taking:
                self.departures.append(said)  # type: ignore[arg-type]

    def _after(self, taken: Offer | None) -> None:
        dut, rng = self.dut, self.rng
        if taken:
            self.inside += taken.size
            self.sent += taken.size
            self.offer = None
            if taken.last:
                self.ends.append((taken.other, self.sent))
        self.longest = max(self.longest, self.inside)
        self.owed = min(self.owed + self.drain, float(self.inside))
        self.left = min(int(self.owed), 127)
        self.owed -= self.left
        self.inside -= self.left
        if rng.random() < self.lie:
            self.left = rng.randrange(128)
        if not self.offer and self.queue:
            beat, other = self.queue.popleft()
            self.offer = Offer(beat.count, beat.last, other)
            self.shown = False
            dut.s_data.value, dut.s_keep.value = beat.data, (1 << beat.count) - 1
            dut.s_last.value, dut.s_other.value = int(beat.last), other
        self.shown = self.offer is not None and (self.shown or self.sending.ready())
        dut.s_valid.value = int(self.shown)
        self.ready, self.taking = int(self.port.ready()), int(self.host.ready())
        self.now += rng.randrange(8)
        dut.m_ready.value, dut.d_ready.value = self.ready, self.taking
        dut.left.value, dut.now.value = self.left, self.now


async def start(dut: Any, rng: random.Random, steady: bool = False) -> Bench:
    for name in INPUTS:
        getattr(dut, name).value = 0
    await reset(dut)
    it = Bench(dut, rng)
    if steady:
        for end in (it.sending, it.port, it.host):
            end.ready = lambda: True  # type: ignore[method-assign]
    return it


def place(it: Bench, before: int, inside: int = 0) -> None:
    """Count on from `before` bytes before the end of the counters, with `inside` in the port."""
    handed = (1 << 24) - before
    for name in ("handed_3", "handed_4"):
        getattr(it.dut, name).value = handed
    it.dut.gone.value = handed - inside
    it.dut.stock.value = inside
    it.model.handed, it.model.gone, it.model.inside = handed, handed - inside, inside
    it.inside = it.sent = inside


def frame(rng: random.Random, longest: int = 1600) -> bytes:
    return rng.randbytes(rng.randint(1, rng.choice((64, longest))))


@cocotb.test()
async def random_frames(dut: Any) -> None:
    """Frames, pauses everywhere, settings that change, ports that lie: each cycle as the model."""
    rng = random.Random(SEED)
    cocotb.log.info("seed %d", SEED)
    it = await start(dut, rng)
    place(it, rng.randrange(20_000))
    for number in range(max(40, FRAMES // 100)):
        it.set(
            on=int(rng.random() < 0.8),
            limit=rng.choice((0, rng.randrange(3000), rng.randrange(1 << 17))),
            rate=rng.choice((0, rng.randrange(1 << 16), rng.randrange(1, BYTES << 16))),
            extra=rng.choice((0, 24, 255)),
        )
        it.drain = rng.choice((0.0, 1.0, BYTES / 3, float(BYTES)))
        it.lie = rng.choice((0.0, 0.0, 0.2))
        for _ in range(rng.randint(1, 8)):
            it.send(frame(rng), rng.randrange(2))
        for _ in range(rng.choice((1, 20, 20_000 // BYTES))):
            await it.step()
        if number % 10 == 0:
            it.set(on=0)
            it.queue.clear()
            it.drain = 4.0 * BYTES
            for _ in range(600):
                await it.step()
    assert all(it.seen[name] for name in ("waited", "lied")), it.seen
    assert it.departures


@cocotb.test()
async def short_queue(dut: Any) -> None:
    """A port slower than what comes never holds more than the limit and one frame, and is never
    without work; switched off, it holds all."""
    rng = random.Random(SEED)
    for on, limit in ((1, 3000), (1, 0), (0, 3000)):
        it = await start(dut, rng, steady=True)
        it.set(on=on, limit=limit)
        it.drain = BYTES / 2
        total = 0
        for _ in range(30):
            total += 1000
            it.send(rng.randbytes(1000))
        while not it.idle():
            await it.step()
        assert (it.longest <= limit + 1000 + BYTES) == bool(on), f"{it.longest} bytes"
        if limit:
            assert it.cycles < total / it.drain * 1.02 + 20, f"{it.cycles} cycles"


@cocotb.test()
async def every_cycle(dut: Any) -> None:
    """While the port has less than the limit, frames of one beat pass in each cycle."""
    rng = random.Random(SEED)
    it = await start(dut, rng, steady=True)
    it.set(on=1, limit=8 * BYTES, rate=(BYTES << 16) + (24 << 16), extra=24)
    it.drain = float(BYTES)
    for _ in range(500):
        it.send(rng.randbytes(BYTES))
    while it.queue or it.offer:
        await it.step()
    assert it.seen["waited"] <= 2, it.seen
    assert it.cycles <= 504, f"{it.cycles} cycles"


@cocotb.test()
async def rates(dut: Any) -> None:
    """In the long run what leaves has the rate, with what each frame takes besides: one that is sent
    without a pause is as fast as it may be and not faster."""
    rng = random.Random(SEED)
    for rate in (1 << 14, 12345, (4 << 16) - 1, BYTES << 15, (BYTES << 16) * 9 // 10):
        it = await start(dut, rng, steady=True)
        it.set(on=1, limit=1 << 16, rate=rate, extra=24)
        count, most = (10, 60) if rate < 1 << 16 else (100, 1500)
        for _ in range(count):
            it.send(rng.randbytes(rng.randint(20, most)))
        while it.queue or it.offer:
            await it.step()
        counted = sum(it.model.numbers) * 24 + it.sent
        last = most + 24  # the last frame is out before the rate has paid it
        assert counted - last <= it.cycles * rate / 65_536 + BYTES, f"{rate}: too fast"
        assert counted >= it.cycles * rate / 65_536 - 2 * BYTES, f"{rate}: too slow"


@cocotb.test()
async def departures(dut: Any) -> None:
    """Each frame's number and input come once, in order, when its last byte has left the port."""
    rng = random.Random(SEED)
    it = await start(dut, rng)
    it.host.ready = lambda: True  # type: ignore[method-assign]
    it.drain = BYTES / 2
    left: list[tuple[int, int]] = []
    want: list[tuple[int, int]] = []
    counts = [0, 0]
    for _ in range(60):
        other = rng.randrange(2)
        want.append((other, counts[other]))
        counts[other] += 1
        it.send(frame(rng), other)
    while not it.idle() or len(it.departures) < len(it.ends):
        await it.step()
        left.append((it.now, it.sent - it.inside))
    assert [(other, number) for other, number, _ in it.departures] == want
    for (_, _, time), (_, end) in zip(it.departures, it.ends, strict=True):
        # Six cycles for the count, one for each frame that left in the same one.
        first = next(now for now, gone in left if gone >= end)
        assert 0 <= time - first < 8 * 70, f"{time}, not {first}"


@cocotb.test()
async def forgotten(dut: Any) -> None:
    """A host that takes no departures, and more frames in the port than are remembered: both are
    counted, nothing stops, and numbers go on."""
    rng = random.Random(SEED)
    it = await start(dut, rng, steady=True)
    it.host.ready = lambda: False  # type: ignore[method-assign]
    it.drain = 0.0
    for _ in range(100):
        it.send(bytes(1))
    for _ in range(150):
        await it.step()
    assert it.seen["crowded"] == 100 - 65
    it.drain = float(BYTES)
    for _ in range(300):
        await it.step()
    assert it.seen["untaken"] == 65 - 16
    it.host.ready = lambda: True  # type: ignore[method-assign]
    it.send(bytes(1))
    for _ in range(100):
        await it.step()
    assert [number for _, number, _ in it.departures] == [*range(16), 100]


@cocotb.test()
async def full_port(dut: Any) -> None:
    """A port that never says that anything left: from 4 MiB on its bytes are not counted, its frames
    are not remembered, all of them pass if the block is off and none if it is on."""
    rng = random.Random(SEED)
    it = await start(dut, rng, steady=True)
    it.drain = 0.0
    place(it, 10_000, (1 << 22) - 3 * BYTES)
    for _ in range(20):
        it.send(rng.randbytes(2 * BYTES))
    for _ in range(60):
        await it.step()
    assert not it.queue and not it.offer
    assert 1 << 22 <= it.model.inside <= (1 << 22) + 4 * BYTES
    assert it.seen["crowded"] >= 17
    it.set(on=1, limit=(1 << 17) - 1)
    it.send(bytes(1))
    for _ in range(20):
        await it.step()
    assert it.offer and it.seen["waited"] >= 18
    it.drain = 127.0
    for _ in range(40_000):
        if not it.offer:
            break
        await it.step()
    assert not it.offer and it.model.inside <= 1 << 17


@cocotb.test()
async def reset_inside(dut: Any) -> None:
    """A reset in the middle of a frame, with bytes in the port: it is as new."""
    rng = random.Random(SEED)
    for _ in range(10):
        it = await start(dut, rng)
        it.set(on=1, limit=rng.randrange(5000), rate=rng.randrange(1 << 22), extra=24)
        it.drain = 3.0
        for _ in range(20):
            it.send(frame(rng))
        for _ in range(rng.randrange(300)):
            await it.step()
