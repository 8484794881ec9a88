# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa_grant: the engine's grants, in order, with their offsets and levels, for whatever comes."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from hw.tb.bench_grant import ANNOUNCE, COUNTERS, DATA, END, IDS, LONGEST, PEERS, Bench, Settings

DEPTH = int(os.environ.get("HW_DEPTH", "64"))
EVENTS = int(os.environ.get("HW_FRAMES", "1000"))
SEED = int(os.environ.get("HW_SEED", "1"))
ROUND = 700
# Cycles from bytes to their grant, and until the next event is taken.
LAG = 11
EVENT = 14
# From an end to the first grant of the message that takes its slot, with the usual settings.
FOLLOWS = 24
# Bytes of messages by share: roughly the five workloads of the papers.
WORKLOADS = {
    "w1": ((0.7, 300), (0.95, 1500), (1.0, 12_000)),
    "w2": ((0.6, 500), (0.95, 2000), (1.0, 60_000)),
    "w3": ((0.5, 800), (0.8, 5000), (1.0, 300_000)),
    "w4": ((0.5, 5000), (0.7, 30_000), (1.0, 1_000_000)),
    "w5": ((0.2, 10_000), (0.6, 500_000), (1.0, 1_000_000)),
}


def length(rng: random.Random, workload: str) -> int:
    if rng.random() < 0.1:
        return 50_000  # equal ones
    draw = rng.random()
    low = 1
    for share, high in WORKLOADS[workload]:
        if draw <= share:
            return rng.randint(low, high)
        low = high
    return LONGEST


def settings(rng: random.Random) -> Settings:
    total = rng.randint(2, 8)
    return Settings(
        rtt=rng.choice((9328, 9328, 60_000, 1000, 1, 300_000)),
        seg=rng.choice((1424, 1424, 8924, 200)),
        overcommit=rng.randint(1, 8),
        levels=(total, rng.randint(1, total - 1)),
    )


async def announce(it: Bench, rng: random.Random, size: int, peers: int) -> None:
    ident = rng.randrange(IDS)
    unscheduled = rng.choice((0, it.settings.rtt, it.settings.rtt, size, rng.randrange(1 << 32)))
    assert it.engine
    if rng.random() < 0.05 and it.engine.cutoffs:
        size, unscheduled = rng.choice(it.engine.cutoffs), 0
    await it.event(ANNOUNCE, ident, rng.randrange(peers), size, unscheduled)


async def data(it: Bench, rng: random.Random) -> None:
    """Mostly a packet of what was granted; sometimes all of that, or what was not."""
    ident = rng.choice(list(it.messages))
    message = it.messages[ident]
    may = message.granted - message.received
    draw = rng.random()
    if draw < 0.01:
        size = message.length - message.received + rng.choice((0, 1, 1 << 20, 1 << 31))
    elif draw < 0.02:
        size = rng.randint(0, message.length - message.received)
    elif may <= 0:
        return
    elif draw < 0.1:
        size = may
    else:
        assert it.engine
        sizes = (it.settings.seg, it.settings.seg, it.engine.step, rng.randint(1, 2000))
        size = min(may, rng.choice(sizes))
    await it.event(DATA, ident, size=size)


async def hostile(it: Bench, rng: random.Random) -> None:
    kind = rng.randrange(4)
    if kind == 0 and it.messages:
        await it.event(ANNOUNCE, rng.choice(list(it.messages)), 0, 1000, 0)
    elif kind == 1:
        size = rng.choice((0, LONGEST + 1, 1 << 31))
        await it.event(ANNOUNCE, rng.randrange(IDS), 0, size, rng.randrange(1 << 32))
    else:
        await it.event(rng.choice((DATA, END)), rng.randrange(IDS), size=rng.randrange(1 << 32))


@cocotb.test()
async def random_events(dut: Any) -> None:
    """Messages of each workload, from few peers and many, up to more than can wait."""
    rng = random.Random(SEED)
    cocotb.log.info("seed %d", SEED)
    it = Bench(dut, rng, DEPTH)
    left, number = EVENTS, 0
    while left > 0:
        await it.start(settings(rng) if number % 3 else Settings())
        it.steady = number % 2 == 0
        workload = f"w{1 + number % 5}"
        peers = rng.choice((1, 4, 40, PEERS))
        most = rng.choice((4, 20, DEPTH, DEPTH + 40))
        end = it.events + min(left, ROUND)
        while it.events < end:
            draw = rng.random()
            if draw < 0.02:
                await hostile(it, rng)
            elif draw < 0.03 and it.messages:
                await it.event(END, rng.choice(list(it.messages)))
            elif len(it.messages) < most and rng.random() < 0.5:
                await announce(it, rng, length(rng, workload), peers)
            elif it.messages:
                await data(it, rng)
        number += 1
        left -= ROUND
    cocotb.log.info("%d events, %d grants; %s", it.events, it.grants, it.seen)
    cocotb.log.info("cycles for an event: %.1f, at most %d", mean(it.cycles), max(it.cycles))
    for event in (ANNOUNCE, DATA, END):
        lags = [lag for what, who, lag in it.lags if what == event and who == 1]
        if lags:
            cocotb.log.info("event %d: the last grant after %d to %d", event, min(lags), max(lags))
    if EVENTS >= 10_000:
        # Another test fills it.
        assert all(it.seen[name] for name in COUNTERS if name != "crowded"), it.seen


def mean(values: list[int]) -> float:
    return sum(values) / max(1, len(values))


@cocotb.test()
async def full(dut: Any) -> None:
    """As many as may wait, and some that are refused; then all end, from the one or the other end,
    and each that follows takes a slot."""
    rng = random.Random(SEED)
    it = Bench(dut, rng, DEPTH)
    it.steady = True
    for backward in (False, True):
        await it.start(Settings())
        for ident in range(DEPTH + 7 + 5):
            size = 500_000 + rng.choice((0, rng.randrange(1000)))
            await it.event(ANNOUNCE, ident, rng.randrange(PEERS), size, 9328)
        assert it.seen["crowded"], it.seen
        for ident in sorted(it.messages, reverse=backward):
            await it.event(END, ident)
        assert not int(dut.granting.value)


@cocotb.test()
async def one_peer(dut: Any) -> None:
    """All messages of one peer: one at a time, the shortest first, to their last byte."""
    rng = random.Random(SEED)
    it = Bench(dut, rng, DEPTH)
    await it.start(Settings())
    for ident in range(20):
        await it.event(ANNOUNCE, ident, 5, rng.randint(10_000, 40_000), 9328)
    order = []
    while it.messages:
        assert int(dut.granting.value) <= 1
        ident = min(it.messages, key=lambda i: it.messages[i].granted <= it.messages[i].received)
        message = it.messages[ident]
        assert message.granted > message.received, "nobody was granted anything"
        await it.event(DATA, ident, size=min(1424, message.granted - message.received))
        order.append(ident)
    assert len(set(order)) == 20


@cocotb.test()
async def changes_place(dut: Any) -> None:
    """A message that waits goes before another when so many bytes have come, and not before."""
    it = Bench(dut, random.Random(SEED), DEPTH)
    for more in (-1, 0, 1):
        await it.start(Settings(overcommit=1))
        assert it.engine
        step = it.engine.step
        await it.event(ANNOUNCE, 0, 0, 20_000, 0)
        await it.event(ANNOUNCE, 1, 1, 50_000, 0)
        await it.event(ANNOUNCE, 2, 2, 50_000 + step - 2, 9328)
        await it.event(DATA, 2, size=step + more)
        found = await it.event(END, 0)
        assert {ident for ident, _, _ in found} == ({1} if more < 0 else {2}), f"{more}: {found}"


@cocotb.test()
async def lag(dut: Any) -> None:
    """How long it takes from bytes to their grant; docs/hardware.md has these numbers."""
    it = Bench(dut, random.Random(SEED), DEPTH)
    it.steady = True
    await it.start(Settings())
    for ident in range(7):
        await it.event(ANNOUNCE, ident, ident, 900_000 - ident, 9328)
    it.lags.clear()
    it.cycles.clear()
    for number in range(50):
        await it.event(DATA, number % 7, size=1424)
    lags = {lag for _, _, lag in it.lags}
    cocotb.log.info("bytes to grant: %s cycles; an event: %s", lags, set(it.cycles))
    assert max(lags) <= LAG and max(it.cycles) <= EVENT
    for ident in range(7, 14):
        await it.event(ANNOUNCE, ident, ident, 950_000, 0)
    it.lags.clear()
    for ident in range(7):
        assert len(await it.event(END, ident)) == 1
    lags = {lag for _, _, lag in it.lags}
    cocotb.log.info("an end to the grant of the next: %s cycles", lags)
    assert max(lags) <= FOLLOWS


@cocotb.test()
async def reset_inside(dut: Any) -> None:
    """A reset at any time: it knows nothing any more, and works."""
    rng = random.Random(SEED)
    it = Bench(dut, rng, DEPTH)
    for gap in range(0, 24, 3):
        await it.start(Settings())
        for ident in range(12):
            await it.event(ANNOUNCE, ident, ident % 9, 100_000 + ident, 9328)
        dut.s_valid.value = 1
        dut.s_event.value, dut.s_id.value = END, 3
        for _ in range(gap):
            await RisingEdge(dut.clk)
