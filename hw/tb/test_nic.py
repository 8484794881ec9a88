# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa_nic: the blocks together, their registers and their counters."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from hw.registers import load
from hw.tb import frames, supers, units
from hw.tb.axil import OKAY, SLVERR, counters, names, place
from hw.tb.bench_lso import OTHER, compare
from hw.tb.bench_nic import QUEUES, Card, start
from hw.tb.layout import constants
from hw.tb.reference import judge
from hw.tb.supers import Super
from hw.tb.units import Rpc

WIDTH = int(os.environ.get("HW_WIDTH", "512"))
FRAMES = int(os.environ.get("HW_FRAMES", "1000"))
SEED = int(os.environ.get("HW_SEED", "1"))
PATIENCE = 150_000
# Cycles by which a counter may be behind.
BEHIND = 50
# Registers that a test changes at any moment, and how many values they may have.
CHANGES = (
    *(("CONTROL", 32), ("LRO_LIMIT", 65_536), ("LRO_PATIENCE", 3000)),
    *(("PACE_LIMIT", 5000), ("PACE_EXTRA", 256), ("TIME_STEP", 1 << 27)),
)
# Registers that change by themselves.
MOVING = ("PACE_IN_PORT", "TIME_LOW", "TIME_HIGH")
# Cycles after a reset until the indirection table is written.
FILLING = 300


async def card(dut: Any, rng: random.Random, steady: bool = False) -> Card:
    await start(dut)
    it = Card(dut, rng, WIDTH, steady)
    await it.idle(FILLING)
    return it


async def all_leaves(it: Card, items: list[Super], others: int) -> None:
    """Until each frame has its completion, each of the second input and from the port has left."""
    tx, rx = it.transmit, it.receive
    idle = 0
    while len(tx.done) < len(items) or len(tx.others) < others or rx.left:
        idle = 0 if await it.step() else idle + 1
        assert idle < PATIENCE, f"it hangs: {len(tx.done)} of {len(items)}, {rx.left} to come"
    # A completion comes before the last packet has left the FIFO.
    await it.idle(3000)


def check_sent(it: Card, items: list[Super]) -> Counter[int]:
    """Every completion, every packet; how often each status was."""
    packets = list(it.transmit.packets)
    for item, have in zip(items, it.transmit.done, strict=True):
        compare(item, have, packets)
    assert not packets, f"{len(packets)} packets came too many"
    return Counter(status for _, status, _ in it.transmit.done)


def check_departures(it: Card) -> None:
    """Each frame has one, in order, with its input and number there; the times go up."""
    counts = [0, 0]
    for other, (said, number, _) in zip(it.transmit.order, it.port.departures, strict=True):
        assert (said, number) == (other, counts[other] & 0xFFFF)
        counts[other] += 1
    times = [time for _, _, time in it.port.departures]
    assert times == sorted(times)


@cocotb.test()
async def both_ways(dut: Any) -> None:
    """Frames of every kind in both directions at once, and every counter says what was seen."""
    rng = random.Random(SEED)
    cocotb.log.info("seed %d", SEED)
    it = await card(dut, rng)
    items = supers.make(rng, max(20, FRAMES // 150))
    others = [OTHER + rng.randbytes(rng.randint(1, 300)) for _ in items]
    came = units.traffic(rng, max(200, FRAMES // 25))
    it.transmit.feed(items)
    it.transmit.short.send(others)
    it.receive.send(came)
    await all_leaves(it, items, len(others))
    statuses = check_sent(it, items)
    rx = it.receive
    rx.counts()
    want = {
        "TX_BYTES": sum(map(len, it.transmit.packets + others)),
        "TX_FRAMES": len(it.transmit.packets) + len(others),
        "RX_BYTES": sum(map(len, came)),
        "RX_FRAMES": len(came),
        "LSO_OTHER": len(others),
        "REGISTER_REFUSED": 0,
        "RSS_PLACED": 0,
        **dict.fromkeys(("PACE_WAITED", "PACE_LIED", "STAMP_UNTAKEN", "STAMP_CROWDED"), 0),
    }
    c = constants()
    for status in ("SENT", "REFUSED", "CUT"):
        want[f"LSO_{status}"] = statuses[c[f"DONE_{status}"]]
    want |= {f"LRO_{name}": rx.events[name] for name in rx.names.values()}
    seen = Counter(rx.classes)
    for name in (n for n in c if n.startswith("CLASS_")):
        want[f"RSS_{name.removeprefix('CLASS_')}"] = seen[c[name]]
    want |= it.stalled()
    assert set(want) | {"RSS_UNDECODED"} == set(counters()), set(want) ^ set(counters())
    for name, value in want.items():
        have = await it.registers.count(name)
        assert have == value, f"{name} is {have}, not {value}"
    check_departures(it)
    # Of a frame that contradicts itself it is not known whether its Homa header decodes.
    have = await it.registers.count("RSS_UNDECODED")
    assert rx.undecoded <= have <= rx.undecoded + rx.events["BAD"]
    assert want["LRO_MERGED"] > 20 and want["LSO_REFUSED"] and want["TX_STALLED"]


@cocotb.test()
async def identification(dut: Any) -> None:
    """What the card says that it is; where nothing was written, and what may not be."""
    rng = random.Random(SEED)
    it = await card(dut, rng)
    registers = it.registers
    fixed = {
        "ID": names()["ID_VALUE"],
        "VERSION": names()["VERSION_VALUE"],
        "WIDTH": WIDTH,
        "QUEUES": QUEUES,
        "COUNTERS": len(counters()),
        "PAGES": 1024,
    }
    for name, value in fixed.items():
        for wrong in (0, ~value & 0xFFFFFFFF):
            assert await registers.write(names()[name], wrong) == SLVERR, name
            assert await registers.get(name) == value, name
    for register in load().registers:
        if register.writable:
            assert await registers.get(register.name) == register.reset, register.name
            for value in (register.least, register.most):
                await registers.set(register.name, value)
            for value in (register.least - 1, register.most + 1):
                if 0 <= value < 1 << 32:
                    assert await registers.write(names()[register.name], value) == SLVERR
            assert await registers.get(register.name) == register.most, register.name
        else:
            known = register.name in fixed or register.name in MOVING
            assert known, f"nobody looks at {register.name}"
    await it.idle(BEHIND)
    assert await registers.count("REGISTER_REFUSED") == registers.refused


@cocotb.test()
async def accesses(dut: Any) -> None:
    """Reads and writes anywhere, with any strobes: each has one answer, and what is refused has no
    effect. A high word can be read after its low word only."""
    rng = random.Random(SEED)
    it = await card(dut, rng)
    registers = it.registers
    known = load()
    begin = place("RSS_TABLE", 0)
    limits = {r.at: (r.least, r.most) for r in known.registers if r.writable}
    limits |= {begin + 4 * n: (0, QUEUES - 1) for n in range(256)}
    values = {r.at: r.reset for r in known.registers if r.writable}
    values |= {begin + 4 * n: n % QUEUES for n in range(256)}
    low = range(place("COUNTER", 0), place("COUNTER", len(counters())), 8)
    fixed = {r.at for r in known.registers if not r.writable}
    kept = -1
    for _ in range(max(300, FRAMES // 10)):
        at = rng.choice((rng.randrange(4096), rng.choice(list(limits)), 4 * rng.randrange(256)))
        if rng.random() < 0.1:
            at = rng.choice(low) + rng.choice((0, 4))
        if rng.random() < 0.5:
            said, value = await registers.read(at)
            readable = at in values or at in fixed or at in low or (at == kept and kept > 0)
            assert said == (OKAY if readable else SLVERR), f"read {at:x}"
            assert at not in values or value == values[at], f"read {at:x}: {value:x}"
            kept = at + 4 if at in low else -1
        else:
            strobes = rng.choice((15, 15, 15, rng.randrange(16)))
            value = rng.choice((rng.randrange(32), rng.getrandbits(17), rng.getrandbits(32)))
            allowed = at in limits and limits[at][0] <= value <= limits[at][1] and strobes == 15
            said = await registers.write(at, value, strobes)
            assert said == (OKAY if allowed else SLVERR), f"write {at:x} {value:x} {strobes:x}"
            if allowed:
                values[at] = value
    for at, value in values.items():
        assert await registers.read(at) == (OKAY, value), f"{at:x}"
    await it.idle(BEHIND)
    assert await registers.count("REGISTER_REFUSED") == registers.refused > 10


@cocotb.test()
async def whole_counters(dut: Any) -> None:
    """A counter that passes 2^32 between the reads of its two words is read as it was at the first,
    and one that passes 2^64 begins again."""
    rng = random.Random(SEED)
    it = await card(dut, rng, steady=True)
    await it.idle(200)
    number = names()["COUNT_RX_BYTES"]
    for before in ((1 << 32) - 10, (1 << 64) - 10):
        at = place("COUNTER", number)
        # The block may just be writing what was there before.
        for _ in range(3):
            it.dut.stats.memory[number].value = before
            await it.idle(1)
            said = await it.registers.read(at)
            if said == (OKAY, before & 0xFFFFFFFF):
                break
        assert said == (OKAY, before & 0xFFFFFFFF)
        it.receive.send([frames.good(rng, 60)])
        await it.receive.finish()
        await it.idle(100)
        assert await it.registers.read(at + 4) == (OKAY, before >> 32)
        sent = len(it.receive.units[-1][0][0])
        assert await it.registers.count("RX_BYTES") == (before + sent) % (1 << 64)


@cocotb.test()
async def switches(dut: Any) -> None:
    """Each block off and on: super-frames are refused, nothing is merged, all go to queue 0; and the
    indirection table that was written is used."""
    rng = random.Random(SEED)
    it = await card(dut, rng)
    bits = names()
    table = [rng.randrange(QUEUES) for _ in range(256)]
    for at, queue in enumerate(table):
        assert await it.registers.write(place("RSS_TABLE", at), queue) == OKAY
    items: list[Super] = []
    for control in (0, bits["CONTROL_LSO"], bits["CONTROL_LRO"], bits["CONTROL_RSS"]):
        await it.registers.set("CONTROL", control)
        rpc = Rpc(control + 1, 100_000, 500)
        long = Super(units.Rpc(1, 3000, 3000).data(rng), True, 1000, control)
        plain = Super(rpc.grant(rng), False, 0, 77)
        rx, tx = it.receive, it.transmit
        rx.queue = (
            (lambda said: table[said & 255]) if control & bits["CONTROL_RSS"] else lambda _: 0
        )
        units_before, packets, done = len(rx.units), len(tx.packets), len(tx.done)
        items = [long, plain]
        tx.feed(items)
        rx.send([rpc.data(rng) for _ in range(20)])
        split = control & bits["CONTROL_LSO"]
        leaves = 4 if split else 1
        # The last packets may wait for the port long after the completions.
        for _ in range(PATIENCE):
            if len(tx.done) >= done + 2 and len(tx.packets) >= packets + leaves and not rx.left:
                break
            await it.step()
        await it.idle(100)
        merged = len(rx.units) - units_before < 20
        assert merged == bool(control & bits["CONTROL_LRO"]), f"control {control}"
        assert len(tx.packets) - packets == leaves, f"control {control}"
        refused = constants()["DONE_REFUSED"]
        assert (tx.done[done][1] == refused) == (not split)
    assert await it.registers.count("LSO_REFUSED") == 3


@cocotb.test()
async def by_load(dut: Any) -> None:
    """With the mode on, first packets go where the fewest wait; ticks come as the register says, and
    free the places of RPCs that are silent."""
    rng = random.Random(SEED)
    it = await card(dut, rng, steady=True)
    bits = names()
    await it.registers.set("CONTROL", bits["CONTROL_RSS"] | bits["CONTROL_BY_LOAD"])
    await it.registers.set("RSS_TICK", 100_000)
    await it.idle(1100)
    rx = it.receive
    rx.queue = lambda _: None
    rpcs = [Rpc(i + 1, 10_000, 200) for i in range(2 * QUEUES)]
    for rpc in rpcs:
        rx.send([rpc.data(rng)])
        await rx_empty(it)
    assert sorted(rx.queues) == sorted(list(range(QUEUES)) * 2), "the load is not even"
    await it.idle(BEHIND)
    placed = await it.registers.count("RSS_PLACED")
    assert placed == len(rpcs)
    first = dict(zip((rpc.number for rpc in rpcs), rx.queues))
    await it.registers.set("RSS_TICK", 20)
    await it.idle(100)
    for rpc in rpcs[:QUEUES]:
        rx.send([rpc.data(rng)])
        await rx_empty(it)
    moved = sum(first[rpc.number] != queue for rpc, queue in zip(rpcs, rx.queues[2 * QUEUES :]))
    assert moved, "ticks change nothing"


@cocotb.test()
async def tick_refused(dut: Any) -> None:
    """A number of cycles that RSS_TICK does not take has no effect, however often it is written: the
    ticks come as before."""
    rng = random.Random(SEED)
    it = await card(dut, rng, steady=True)
    await it.registers.set("RSS_TICK", 200)
    ticks = cycles = 0

    async def count() -> None:
        nonlocal ticks, cycles
        while True:
            await RisingEdge(dut.clk)
            ticks += int(dut.rss_tick.value)
            cycles += 1

    counting = cocotb.start_soon(count())
    for _ in range(150):
        assert await it.registers.write(names()["RSS_TICK"], 0) == SLVERR
    counting.cancel()
    assert cycles > 1000 and abs(ticks - cycles / 200) <= 1, f"{ticks} ticks in {cycles} cycles"


async def rx_empty(it: Card) -> None:
    while it.receive.left:
        await it.step()
    await it.idle(8)


@cocotb.test()
async def pacing(dut: Any) -> None:
    """Switched on, the port never holds more than its limit and one frame, which its register tells
    of; a rate slows all down. Switched off, the port holds all."""
    rng = random.Random(SEED)
    it = await card(dut, rng, steady=True)
    bits, port = names(), it.port
    items = [Super(units.Rpc(1, 30_000, 30_000).data(rng), True, 1000, 0)]
    before = 0
    for on, limit in ((1, 2000), (0, 2000)):
        await it.registers.set("CONTROL", bits["CONTROL_LSO"] | on * bits["CONTROL_PACE"])
        await it.registers.set("PACE_LIMIT", limit)
        port.most = port.longest = 0
        it.transmit.feed(items)
        await it.idle(6000)
        inside = await it.registers.get("PACE_IN_PORT")
        assert (inside > 25_000) == (not on), f"{inside} bytes in the port"
        port.most = 5
        while len(it.transmit.order) < before + 30 or port.told < it.transmit.sink.bytes:
            await it.step()
        before += 30
        port.most = 127
        assert (port.longest <= limit + 1200 + WIDTH // 8) == bool(on), f"{port.longest} bytes"
        await it.idle(BEHIND)
        assert await it.registers.get("PACE_IN_PORT") == 0
    check_departures(it)
    assert await it.registers.count("PACE_WAITED") > 1000
    await it.registers.set("CONTROL", bits["CONTROL_LSO"] | bits["CONTROL_PACE"])
    await it.registers.set("PACE_RATE", 4 << 16)
    it.transmit.feed(items)
    await it.idle(6000)
    sent = len(it.transmit.order) - before
    assert 6000 * 4 / 1200 - 5 < sent < 6000 * 4 / 1000 + 2, f"{sent} packets in 6000 cycles"


@cocotb.test()
async def time(dut: Any) -> None:
    """The time goes by what the register says for each cycle, and its two words are of one
    moment."""
    rng = random.Random(SEED)
    it = await card(dut, rng, steady=True)
    for step in (4 << 24, (3 << 24) + 12_345, 255 << 24):
        await it.registers.set("TIME_STEP", step)
        begin = int(dut.now.value)
        await it.idle(2000)
        passed = int(dut.now.value) - begin
        assert abs(passed - (2000 * step >> 24)) <= 2 * (step >> 24) + 2, f"{passed} ns"
    it.dut.clock.now.value = (5 << 32) - 300
    await it.idle(1)
    low = await it.registers.get("TIME_LOW")
    await it.idle(20)
    high = await it.registers.get("TIME_HIGH")
    assert (5 << 32) - 300 <= high << 32 | low < (5 << 32) + 300 + 255 * 10
    assert high == (4 if low > 1 << 31 else 5)
    low, high = await it.registers.get("TIME_LOW"), await it.registers.get("TIME_HIGH")
    assert high == 5 and low < 1 << 20


@cocotb.test()
async def settings_change(dut: Any) -> None:
    """Switches and limits that change at any moment: nothing is lost, doubled or damaged."""
    rng = random.Random(SEED)
    it = await card(dut, rng)
    it.receive.queue = lambda _: None
    items = [Super(frames.good(rng, 200), False, 0, i & 255) for i in range(60)]
    it.transmit.feed(items)
    it.receive.send(units.traffic(rng, 250))
    while it.receive.left or len(it.transmit.done) < len(items):
        name, most = rng.choice(CHANGES)
        await it.registers.set(name, rng.choice((0, most - 1, rng.randrange(most))))
        await it.idle(rng.choice((0, 10, 200)))
    await it.idle(300)
    check_sent(it, items)
    it.receive.counts()


@cocotb.test()
async def host_sleeps(dut: Any) -> None:
    """A host that takes nothing that was received stops the port's input when the memory is full,
    and neither the transmit path nor the registers; what came is there when it wakes up."""
    rng = random.Random(SEED)
    it = await card(dut, rng, steady=True)
    it.receive.sink.pauses.ready = lambda: False  # type: ignore[method-assign]
    rpcs = [Rpc(i + 1, 60_000, 9000) for i in range(8)]
    it.receive.send([rpc.data(rng) for _ in range(6) for rpc in rpcs])
    await it.idle(48 * 9000 * 8 // WIDTH)
    assert not it.receive.source.done and not it.receive.units
    items = [Super(frames.good(rng, 200), False, 0, i) for i in range(10)]
    it.transmit.feed(items)
    await it.idle(3000)
    check_sent(it, items)
    assert await it.registers.count("RX_STALLED") > 100
    assert await it.registers.count("HOST_STALLED") > 100
    it.receive.sink.pauses.ready = lambda: True  # type: ignore[method-assign]
    await it.receive.finish()


@cocotb.test()
async def reset_inside(dut: Any) -> None:
    """A reset in the middle of frames and of an access: counters are 0, settings as at first, and
    those frames that come after it whole."""
    rng = random.Random(SEED)
    for _ in range(3):
        it = await card(dut, rng)
        it.receive.send(units.traffic(rng, 30))
        it.transmit.feed(supers.make(rng, 5))
        await it.registers.set("LRO_LIMIT", 100)
        await it.idle(rng.randint(1, 1000))
        dut.reg_awvalid.value, dut.reg_arvalid.value = 1, 1
        await it.idle(rng.randint(1, 3))
        it = await card(dut, rng)
        for name in rng.sample(counters(), 5):
            if "STALLED" not in name:
                assert await it.registers.count(name) == 0, name
        assert await it.registers.get("LRO_LIMIT") == 65_535
        items = supers.make(rng, 3)
        it.transmit.feed(items)
        it.receive.send(units.traffic(rng, 20))
        await all_leaves(it, items, 0)
        check_sent(it, items)
        assert all(not judge(unit[0][0]).bad for unit in it.receive.units if len(unit) > 1)


@cocotb.test()
async def short_reset(dut: Any) -> None:
    """A reset of one cycle, while frames wait at both ends: nothing that was before it is counted
    after it, and those frames that come then are whole."""
    rng = random.Random(SEED)
    for _ in range(4):
        it = await card(dut, rng)
        for end in (it.receive.sink, it.transmit.sink):
            end.pauses.ready = lambda: False  # type: ignore[method-assign]
        it.receive.send([frames.good(rng, 300) for _ in range(30)])
        it.transmit.feed([Super(frames.good(rng, 300), False, 0, i) for i in range(10)])
        await it.idle(rng.randint(300, 600))
        dut.rst.value, dut.pm_left.value = 1, rng.choice((0, 60))
        await RisingEdge(dut.clk)
        dut.rst.value, dut.pm_left.value = 0, 0
        it = Card(dut, rng, WIDTH)
        await it.idle(FILLING)
        for name in counters():
            assert await it.registers.count(name) == 0, name
        it.receive.send(units.traffic(rng, 20))
        await it.receive.finish()
